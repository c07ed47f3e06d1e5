#!/usr/bin/env bash
# The guide's way, on two nodes with RDMA: etcd, a worker on each, set on node 1, get on node 2. Runs in both guests of
# the lab (rdma-lab). PYTHON has the package installed; or PYTHONPATH and DATASYSTEM_WORKER_BINARY are set.
#   guide.sh UCX_TLS [FLAG VALUE]...      flags for the workers
set -euo pipefail
export UCX_TLS=$1
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
python=${PYTHON:-/usr/bin/python3}
dscli() { "$python" -m yr.datasystem.cli "$@"; }
cd "$(mktemp -d)"

if [[ $NODE == 1 ]]; then
  etcd --data-dir etcd --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$NODE1_IP:2379" \
    --log-level error >"$OUT/etcd.log" 2>&1 &
  rdma-lab listening 2379 120
fi
rdma-lab barrier etcd 180

flags=(--worker_address "$MY_IP:31501" --etcd_address "$NODE1_IP:2379" --enable_rdma true --arena_per_tenant 1
  --shared_memory_size_mb 256 --node_timeout_s 60 "${@:2}")
dscli doctor -w "${flags[@]}"
dscli start -w "${flags[@]}"
dscli status -w "$MY_IP:31501" | grep -E "^  (page|network device) "
rdma-lab barrier started 300

[[ $NODE == 2 ]] || "$python" "$here/exchange.py" set "$MY_IP"
rdma-lab barrier set 300
[[ $NODE == 1 ]] || "$python" "$here/exchange.py" get "$MY_IP" "$PEER_IP:31501"
rdma-lab barrier got 600
[[ $NODE == 2 ]] || "$python" "$here/exchange.py" lanes "$MY_IP" "$PEER_IP:31501"
[[ $NODE == 2 || $# -gt 1 ]] || dscli doctor --worker_address "$MY_IP:31501" --peer "$PEER_IP:31501"
rdma-lab barrier checked 300

dscli stop --worker_address "$MY_IP:31501"
rdma-lab barrier stopped 120
cp datasystem/logs/datasystem_worker.INFO.log "$OUT/worker$NODE.log"
