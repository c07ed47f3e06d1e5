#!/usr/bin/env bash
# Sets everything up and runs all tests. The last line counts them.
#   ./test.sh              unit tests, Python tests, end-to-end tests
#   ./test.sh --sanitize   the unit tests once more, under the address and undefined-behaviour sanitizers
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
source scripts/progress.sh

sanitize=no
case "${1:-}" in
  '') ;;
  --sanitize) sanitize=yes ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "$0"; if [[ "$1" == -h || "$1" == --help ]]; then exit 0; else exit 2; fi ;;
esac

step "system packages"
bash scripts/install_deps.sh || exit 1
bash scripts/install_chart_tools.sh

# Leftovers of an earlier run must not be counted.
rm -f build/ctest.xml build/pytest.xml build-address-undefined/ctest.xml
step "build and test"
bash build.sh -A on -X off -i on -t run
status=$?
suites=(build/ctest.xml build/pytest.xml)

if [[ "$sanitize" == yes ]]; then
  step "unit tests under sanitizers"
  bash build.sh -A on -X off -i on -S address,undefined -t run_cpp || status=1
  suites+=(build-address-undefined/ctest.xml)
fi

finished
/usr/bin/python3 scripts/count_tests.py "${suites[@]}" || status=1
exit $status
