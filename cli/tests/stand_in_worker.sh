#!/bin/bash
# Behaves as a worker does towards dscli, for paths that a real worker does not take on demand. Its
# process looks like one: the program's name is datasystem_worker, the flags are on its command line.
#   --stand_in=refuse    says why on standard error and exits with 255
#   --stand_in=silent    never becomes ready, ignores SIGTERM
#   --print_flags=values takes all flags, and ends
#   otherwise            writes the ready file, ends on SIGTERM
for flag in "$@"; do
  case $flag in
    --print_flags=*) exit 0 ;;
    --ready_check_path=*) ready=${flag#*=} ;;
    --stand_in=*) mode=${flag#*=} ;;
  esac
done
if [ "$mode" = refuse ]; then
  echo "a warning of a library" >&2
  echo "cannot listen on port 31501: address in use" >&2
  echo "(--help explains every flag)" >&2
  exit 255
fi
mkdir -p "$(dirname "$ready")"
if [ "$mode" = silent ]; then
  exec -a "$0" bash -c 'trap "" TERM; while :; do read -r -t 1 <> <(:); done' "$0" "$@"
fi
echo "started"
exec -a "$0" bash -c 'trap "rm -f \"$1\"; exit 0" TERM; echo ok > "$1"
  while :; do read -r -t 1 <> <(:); done' "$0" "$ready" "$@"
