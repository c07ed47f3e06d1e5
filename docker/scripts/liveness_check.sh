#!/usr/bin/env bash
# Liveness probe: the worker has lately written that it is alive. Says why not.
set -uo pipefail

usage() {
  cat <<'USAGE'
Usage: liveness_check.sh -f LIVENESS_FILE [-t SECONDS]

  -f   the file of the worker's flag liveness_check_path
  -t   how old it may be, in seconds. Default 150

Exit code 0 when the file says so and is fresh, 1 and a reason when not, 2 for wrong arguments.
USAGE
}

refuse() {
  echo "liveness_check.sh: $*" >&2
  usage >&2
  exit 2
}

fail() {
  echo "livenessProbe: $*"
  exit 1
}

file='' timeout_s=150
[[ "${1:-}" != --help ]] || { usage; exit 0; }
while getopts :f:t:h option; do
  case $option in
    f) file=$OPTARG ;;
    t) timeout_s=$OPTARG ;;
    h) usage; exit 0 ;;
    *) refuse "wrong option -$OPTARG, or it has no value" ;;
  esac
done
((OPTIND > $#)) || refuse "unexpected argument '${!OPTIND}'"
[[ -n "$file" ]] || refuse "-f is needed"
[[ "$timeout_s" =~ ^[1-9][0-9]{0,8}$ ]] ||
  refuse "-t is '$timeout_s': a number of seconds from 1 is needed"

content=$(cat "$file" 2>&1) || fail "cannot read the worker's file: $content"
[[ "$content" == *'liveness check success'* ]] ||
  fail "the worker says in $file: ${content:-nothing}"
written=$(stat -c %Y "$file" 2>&1) || fail "cannot read the worker's file: $written"
age_s=$(($(date +%s) - written))
((age_s <= timeout_s)) ||
  fail "the worker wrote $file $age_s s ago, allowed are $timeout_s s: it hangs, or is stopped"
