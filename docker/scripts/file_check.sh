#!/usr/bin/env bash
# Startup and readiness probe: the worker's files exist. Says what is missing.
set -uo pipefail

usage() {
  cat <<'USAGE'
Usage: file_check.sh startupProbe LIVENESS_FILE
       file_check.sh readinessProbe HEALTHY_FILE READY_FILE

Exit code 0 when the files exist, 1 and a reason when not, 2 for wrong arguments.
USAGE
}

probe=${1:-}
shift || true
case $probe:$# in
  -h:* | --help:*) usage; exit 0 ;;
  startupProbe:1) meanings=("it has not started to serve") ;;
  readinessProbe:2)
    meanings=("it has not registered, or is leaving" "it does not answer requests") ;;
  *)
    echo "file_check.sh: expected startupProbe with one file, or readinessProbe with two" >&2
    usage >&2
    exit 2 ;;
esac

for file in "$@"; do
  if [[ ! -e "$file" ]]; then
    echo "$probe: the worker has no file $file: ${meanings[0]}"
    exit 1
  fi
  meanings=("${meanings[@]:1}")
done
