#!/usr/bin/env bash
# A GID by which nothing arrives: the worker must say so instead of starting. Runs in one guest of the lab.
set -euo pipefail
export UCX_TLS=rc UCX_IB_GID_INDEX=1   # the IPv4 address, which UCX 1.13 cannot use over software RoCE
python=${PYTHON:-/usr/bin/python3}
cd "$(mktemp -d)"
# It is foretold, in the same words.
if "$python" -m yr.datasystem.cli doctor -w --worker_address "$MY_IP:31501" --enable_rdma true --shared_memory_size_mb 64; then
  echo "doctor sees nothing wrong"
  exit 1
fi
if "$python" -m yr.datasystem.cli start -w --worker_address "$MY_IP:31501" --enable_rdma true --shared_memory_size_mb 64; then
  echo "started though nothing arrives"
  exit 1
fi
echo "refused"
