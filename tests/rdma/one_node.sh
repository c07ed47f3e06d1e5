#!/usr/bin/env bash
# What one guest of the lab, started with --numa 2, is enough for.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
bash "$here/wrong_gid.sh"
bash "$here/numa.sh"
