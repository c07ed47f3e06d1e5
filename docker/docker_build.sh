#!/usr/bin/env bash
# Builds the image of a worker. `docker_build.sh --help` explains the options.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'USAGE'
Usage: bash docker/docker_build.sh [options]

Compiles in a container, then makes a small image of the result.

  -n name       name of the image. Default openyuanrong-datasystem
  -t tag        its tag. Default: the file VERSION
  -s system     debian or openeuler: what the base image is. Default debian
  -b image      base image. Default debian:12-slim, openeuler/openeuler:22.03-lts-sp4
                It needs bash, and a compiler as new as GCC 12 among its packages
  --dry-run     print the command, and do nothing

  -h, --help    this text

The engine is docker, or podman where there is no docker; CONTAINER_ENGINE names another one.
Packages come from the system's repositories: http_proxy, https_proxy and no_proxy are passed on.

Examples
  bash docker/docker_build.sh
  bash docker/docker_build.sh -n registry.example.com/cache/datasystem -t 0.6.5 -s openeuler
  bash docker/docker_build.sh -b mirror.example.com/library/debian:12-slim
USAGE
}

refuse() {
  echo "docker_build.sh: $*" >&2
  usage >&2
  exit 1
}

name=openyuanrong-datasystem tag=$(<"$source_dir/VERSION") system=debian base='' dry_run=no
while (($# > 0)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --dry-run) dry_run=yes; shift; continue ;;
    -n | -t | -s | -b) ;;
    *) refuse "unexpected argument '$1'" ;;
  esac
  [[ -n "${2:-}" ]] || refuse "option $1 needs a value"
  case $1 in
    -n) name=$2 ;;
    -t) tag=$2 ;;
    -s) system=$2 ;;
    -b) base=$2 ;;
  esac
  shift 2
done

# As the engines have them: what they refuse, they refuse after minutes.
[[ "$name" =~ ^[a-z0-9]+([._:/-]+[a-z0-9]+)*$ ]] ||
  refuse "invalid value '$name' for option -n: expected lower-case letters, digits and ._-/:"
[[ "$tag" =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]] ||
  refuse "invalid value '$tag' for option -t: expected at most 128 letters, digits, . _ -"
case $system in
  debian) base=${base:-debian:12-slim} ;;
  openeuler) base=${base:-openeuler/openeuler:22.03-lts-sp4} ;;
  *) refuse "invalid value '$system' for option -s: expected debian, openeuler" ;;
esac
[[ "$base" =~ ^[A-Za-z0-9][A-Za-z0-9._:/@-]*$ ]] ||
  refuse "invalid value '$base' for option -b: expected an image such as debian:12-slim"

engine=${CONTAINER_ENGINE:-}
if [[ -z "$engine" ]]; then
  engine=docker
  if ! command -v docker >/dev/null && command -v podman >/dev/null; then engine=podman; fi
fi
[[ "$dry_run" == yes ]] || command -v "$engine" >/dev/null ||
  refuse "$engine is not installed; install docker or podman, or name an engine by CONTAINER_ENGINE"

commit=$(git -C "$source_dir" rev-parse HEAD 2>/dev/null) || commit=unknown
command=("$engine" build --file "$source_dir/docker/Dockerfile" --tag "$name:$tag"
  --build-arg "BASE_IMAGE=$base" --build-arg "COMMIT_ID=$commit")
for variable in http_proxy https_proxy no_proxy; do
  # By name: a proxy's password is not shown to who lists processes.
  [[ -z "${!variable:-}" ]] || command+=(--build-arg "$variable")
done
command+=("$source_dir")
echo "docker_build.sh: ${command[*]}"
[[ "$dry_run" == no ]] || exit 0
"${command[@]}"
echo "docker_build.sh: built $name:$tag"
