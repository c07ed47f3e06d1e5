#!/usr/bin/env bash
# From a fresh clone to a value that crosses from one node to another: installs what is missing, builds, starts
# etcd and two workers on this machine, sets a value through the first and gets it through the second.
#   ./quickstart.sh           and stops everything again
#   ./quickstart.sh --keep    leaves the cluster running
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/progress.sh

keep=no
case "${1:-}" in
  '') ;;
  --keep) keep=yes ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0"; if [[ "$1" == -h || "$1" == --help ]]; then exit 0; else exit 2; fi ;;
esac

venv=$PWD/.quickstart/venv
dscli=$venv/bin/dscli
run_dir=$(mktemp -d "${TMPDIR:-/tmp}/datasystem-quickstart.XXXXXX")
etcd_pid=''
workers=()

stop_everything() {
  local status=$?
  trap - EXIT
  if [[ "$keep" == no || $status -ne 0 ]]; then
    for address in "${workers[@]}"; do
      "$dscli" stop --worker_address "$address" >>"$run_dir/stop.log" 2>&1 || cat "$run_dir/stop.log" >&2
    done
    if [[ -n "$etcd_pid" ]]; then
      kill "$etcd_pid" 2>/dev/null || true
      wait "$etcd_pid" 2>/dev/null || true
    fi
    if [[ $status -eq 0 ]]; then
      step "stopped workers and etcd"
      rm -rf "$run_dir"
    else
      echo "quickstart.sh: failed; logs are in $run_dir" >&2
    fi
  fi
  exit $status
}
trap stop_everything EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# newer_than FILE: something that goes into the packages was changed after FILE was made.
newer_than() {
  [[ -n "$(find src include python cli cmake scripts CMakeLists.txt VERSION build.sh \
    -name __pycache__ -prune -o -type f -newer "$1" -print -quit)" ]]
}

# free_port FIRST ADDRESS...: the first port from FIRST on that nothing uses on any of the addresses.
free_port() {
  /usr/bin/python3 - "$@" <<'PYTHON'
import socket, sys
def free(address, port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            return True
        except OSError:
            return False
first, addresses = int(sys.argv[1]), sys.argv[2:]
print(next(port for port in range(first, 65536) if all(free(address, port) for address in addresses)))
PYTHON
}

# wait_for SECONDS WHAT COMMAND...
wait_for() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= deadline)); then echo "quickstart.sh: $what did not become ready" >&2; exit 1; fi
    sleep 0.05
  done
}

step "system packages"
bash scripts/install_deps.sh

wheel=$(compgen -G 'output/openyuanrong_datasystem-*.whl' || true)
if [[ -z "$wheel" ]] || newer_than "$wheel"; then
  step "build (a few minutes the first time)"
  incremental=()
  [[ ! -e build/.datasystem-build ]] || incremental=(-i on)
  bash build.sh -A on -X off "${incremental[@]}"
  wheel=$(compgen -G 'output/openyuanrong_datasystem-*.whl')
else
  step "build: $wheel is up to date"
fi

if [[ ! -e "$venv/.installed" || "$wheel" -nt "$venv/.installed" ]]; then
  step "install the wheel into $venv"
  [[ -x "$venv/bin/pip" ]] || /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --no-index --force-reinstall "$wheel"
  touch "$venv/.installed"
fi

etcd_port=$(free_port 23790 127.0.0.1)
peer_port=$(free_port $((etcd_port + 1)) 127.0.0.1)
worker_port=$(free_port 31501 127.0.0.1 127.0.0.2)
step "etcd on 127.0.0.1:$etcd_port"
# In a session of its own, so that Ctrl-C reaches the workers' exit before etcd is gone.
setsid etcd --data-dir "$run_dir/etcd" --log-level error \
  --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
  --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
  --initial-cluster "default=http://127.0.0.1:$peer_port" >"$run_dir/etcd.log" 2>&1 </dev/null &
etcd_pid=$!
etcd_is_healthy() {
  /usr/bin/python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=1)' \
    "http://127.0.0.1:$etcd_port/health"
}
wait_for 20 "etcd (see $run_dir/etcd.log)" etcd_is_healthy

# Without RDMA hardware the same code runs over TCP.
if [[ -z "${UCX_TLS:-}" && -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ]]; then
  export UCX_TLS=tcp
  step "no RDMA device here: UCX_TLS=tcp"
fi
for node in 1 2; do
  address=127.0.0.$node:$worker_port
  step "worker $node at $address"
  "$dscli" start -d "$run_dir/node$node" -w --worker_address "$address" --etcd_address "127.0.0.1:$etcd_port" \
    --enable_rdma true --arena_per_tenant 1 | sed 's/^/    /'
  workers+=("$address")
done

step "set through worker 1, get through worker 2, in two processes"
"$venv/bin/python" scripts/cross_node_check.py set 127.0.0.1 "$worker_port"
"$venv/bin/python" scripts/cross_node_check.py get 127.0.0.2 "$worker_port"
"$venv/bin/python" scripts/cross_node_check.py lanes 127.0.0.2 "$worker_port"

if [[ "$keep" == yes ]]; then
  cat <<TEXT

The cluster runs on. Use it:
    $venv/bin/python
    >>> from yr.datasystem import KVClient
    >>> client = KVClient("127.0.0.1", $worker_port)
    >>> client.init()
    >>> client.set("key", b"value")
    $dscli status --worker_address ${workers[0]}

Stop it:
    $dscli stop --worker_address ${workers[0]}
    $dscli stop --worker_address ${workers[1]}
    kill $etcd_pid && rm -r $run_dir
TEXT
fi
finished
