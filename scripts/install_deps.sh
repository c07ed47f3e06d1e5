#!/usr/bin/env bash
# Installs the system packages that building, testing and quickstart.sh need. Says what it installs; does
# nothing when all are there.
#   install_deps.sh            for build, tests and quickstart
#   install_deps.sh --bench    also what the benchmarks compare with
#   install_deps.sh --image    only what a worker's container runs with; leaves no package lists
set -euo pipefail

debian=(
  # tools
  binutils ca-certificates ccache cmake g++ git make mold ninja-build patchelf pkg-config
  # transport, messages, membership
  ibverbs-providers libasio-dev libgrpc++-dev libibverbs-dev libprotobuf-dev libprotozero-dev librdmacm-dev
  libucx-dev protobuf-compiler protobuf-compiler-grpc etcd-server etcd-client
  # memory, logs, hashing, reports
  libfmt-dev libjemalloc-dev libspdlog-dev libxxhash-dev nlohmann-json3-dev zlib1g-dev
  # Python client, wheel, tests
  libgmock-dev libgtest-dev mypy pybind11-dev python3 python3-dev python3-numpy python3-pytest
  python3-pytest-rerunfailures python3-venv python3-wheel procps numactl
  # dscli up and its tests; completion; units
  openssh-client openssh-server systemd zsh
  # tests of the container image
  openssl python3-yaml shellcheck
)
debian_bench=(libbenchmark-dev libhiredis-dev libmemcached-dev memcached python3-pymemcache python3-redis
  redis-server ucx-utils)
# Python client and scripts, NUMA placement, drivers of RDMA devices.
debian_image=(ibverbs-providers numactl python3)
openeuler_image=(coreutils libibverbs numactl python3 shadow)
openeuler=(
  binutils ccache cmake gcc-c++ git make ninja-build patchelf pkgconf
  asio-devel grpc-devel grpc-plugins libibverbs librdmacm rdma-core-devel ucx-devel protobuf-devel protozero-devel etcd
  fmt-devel jemalloc-devel spdlog-devel xxhash-devel json-devel zlib-devel
  gmock-devel gtest-devel pybind11-devel python3-devel python3-numpy python3-pytest python3-wheel procps-ng
  numactl openssl python3-pyyaml openssh-clients openssh-server systemd zsh
)

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "install_deps.sh: root is needed to install packages; run as root: $*" >&2
    exit 1
  fi
}

if command -v apt-get >/dev/null; then
  wanted=("${debian[@]}")
  [[ "${1:-}" != --bench ]] || wanted+=("${debian_bench[@]}")
  [[ "${1:-}" != --image ]] || wanted=("${debian_image[@]}")
  mapfile -t missing < <(
    # It fails when it knows nothing of one of them, which is no error here.
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null | awk '$1 == "ii" {print $2}') || true
    for package in "${wanted[@]}"; do grep -qxF "$package" <<<"$installed" || echo "$package"; done)
  if ((${#missing[@]} == 0)); then
    echo "install_deps.sh: all ${#wanted[@]} packages are installed"
    exit 0
  fi
  echo "install_deps.sh: installing ${#missing[@]} packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null |
    grep -E '^(Setting up|E:|W:)' | sed 's/^/  /' || true
  # grep hides apt's status, so ask again.
  dpkg-query -W "${wanted[@]}" >/dev/null || { echo "install_deps.sh: apt-get could not install everything" >&2; exit 1; }
  [[ "${1:-}" != --image ]] || rm -rf /var/lib/apt/lists/*
elif command -v dnf >/dev/null; then
  echo "install_deps.sh: WARNING: the package names for dnf (openEuler) are untested"
  wanted=("${openeuler[@]}")
  [[ "${1:-}" != --image ]] || wanted=("${openeuler_image[@]}")
  echo "install_deps.sh: installing: ${wanted[*]}"
  as_root dnf install -y "${wanted[@]}" </dev/null
  [[ "${1:-}" != --image ]] || as_root dnf clean all
else
  echo "install_deps.sh: neither apt-get nor dnf found; install by hand what the list in this script names" >&2
  exit 1
fi
