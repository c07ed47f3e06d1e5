#!/usr/bin/env bash
# Measures this cache and its peers in one run and prints ratios. Builds what it needs into build-bench (or
# --build DIR), starts every server itself, stops all of them. How to read the table: bench/README.md.
#   bench/run.sh [--runs N] [--seconds S] [--only local|node|remote|start|memory] [--markdown] [--json FILE] [--build DIR]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

build=$root/build-bench
options=()
while (($#)); do
  case "$1" in
    --build) build=${2:?"--build needs a folder"}; shift 2 ;;
    *) options+=("$1"); shift ;;
  esac
done

missing=()
need_program() { command -v "$1" >/dev/null || missing+=("$2"); }
need_library() { pkg-config --exists "$1" 2>/dev/null || missing+=("$2"); }
need_module() { /usr/bin/python3 -c "import $1" 2>/dev/null || missing+=("$2"); }
need_program etcd etcd-server
need_program redis-server redis-server
need_program memcached memcached
need_program ucx_perftest ucx-utils
need_program cmake cmake
need_program ninja ninja-build
need_program pkg-config pkg-config
need_library hiredis libhiredis-dev
need_library libmemcached libmemcached-dev
need_module redis python3-redis
need_module pymemcache python3-pymemcache
if ((${#missing[@]})); then
  echo "bench/run.sh: missing packages (Debian's names): ${missing[*]}" >&2
  exit 1
fi

mkdir -p "$build"
log=$build/bench-build.log
echo "bench: building into $build" >&2
if ! { cmake -S "$root" -B "$build" -G Ninja -DDS_BUILD_TESTS=OFF -DDS_BUILD_PYTHON=ON -DDS_BUILD_BENCH=ON &&
       ninja -C "$build" datasystem_worker ds_python_package bench_driver bench_shard_keys; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "bench/run.sh: the build failed; all of its output: $log" >&2
  exit 1
fi
# The distribution's interpreter: the module is built for it, and it has the rivals' clients.
export PYTHONPATH=$build/python:$root/bench PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 -m suite --build "$build" ${options[@]+"${options[@]}"}
