#!/usr/bin/env bash
# Memory near to the network card and far from it: what the worker says of it. Runs in one guest of the lab, started
# with --numa 2: all CPUs are on node 0, the card is on node 1.
set -euo pipefail
python=${PYTHON:-/usr/bin/python3}
dscli() { "$python" -m yr.datasystem.cli "$@"; }
cd "$(mktemp -d)"

flags=(--worker_address "$MY_IP:31501" --shared_memory_size_mb 64 --shared_memory_populate true --enable_fallocate false
  --arena_per_tenant 1)
dscli doctor --membind 1 -w "${flags[@]}" | grep -E "^(ok|warning|failure) +numa" -A 2
for option in --membind=0 --membind=1 --interleave=0,1; do
  dscli start "$option" -w "${flags[@]}"
  dscli status -w "$MY_IP:31501" --json >status.json
  "$python" -c 'import json; memory = json.load(open("status.json"))["memory"]
print("'"$option"'", memory["network_device"], memory["network_device_node"], memory["nodes"])'
  dscli stop -w "$MY_IP:31501"
  echo "$option warnings: $(grep -o "[0-9]* % of the cache memory.*" datasystem/logs/datasystem_worker.WARNING.log || true)"
  rm -f datasystem/logs/*
done
