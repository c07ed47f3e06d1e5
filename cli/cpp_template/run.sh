#!/usr/bin/env bash
# Builds the example and runs it against a worker: run.sh [IP PORT], by default 127.0.0.1 31501.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

case $# in
  0) ip=127.0.0.1 port=31501 ;;
  2) ip=$1 port=$2 ;;
  *) echo "usage: run.sh [IP PORT]" >&2; exit 2 ;;
esac

cmake -S . -B build
cmake --build build
exec build/kv_cache_example "$ip" "$port"
