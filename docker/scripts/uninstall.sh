#!/usr/bin/env bash
# preStop: has the worker leave the cluster, and returns once it may be killed.
set -uo pipefail

usage() {
  cat <<'USAGE'
Usage: uninstall.sh -f STATUS_FILE [-t SECONDS]

  -f   the file in which scripts and worker tell each other how far the exit is (STATUS_FILE_PATH
       of the worker)
  -t   how long to wait for the worker, in seconds. Default 1800

Sends TERM to the worker of this container, waits until the file says worker_stop_status:ready or
the worker has ended, and removes the probe files. Exit code 0 then, 1 when the time is over, 2 for
wrong arguments.
USAGE
}

refuse() {
  echo "uninstall.sh: $*" >&2
  usage >&2
  exit 2
}

say() {
  local line
  line="$(date -u +%FT%TZ) uninstall.sh: $*"
  echo "$line"
  [[ ! -d "${WORKER_LOG_DIR:-}" || ! -w "$WORKER_LOG_DIR" ]] ||
    echo "$line" >>"$WORKER_LOG_DIR/container.log"
}

status_file='' timeout_s=1800
[[ "${1:-}" != --help ]] || { usage; exit 0; }
while getopts :f:t:h option; do
  case $option in
    f) status_file=$OPTARG ;;
    t) timeout_s=$OPTARG ;;
    h) usage; exit 0 ;;
    *) refuse "wrong option -$OPTARG, or it has no value" ;;
  esac
done
((OPTIND > $#)) || refuse "unexpected argument '${!OPTIND}'"
[[ -n "$status_file" ]] || refuse "-f is needed"
[[ "$timeout_s" =~ ^[1-9][0-9]{0,8}$ ]] ||
  refuse "-t is '$timeout_s': a number of seconds from 1 is needed"

# By its program: containers have neither pidof nor pgrep.
workers() {
  local folder program
  for folder in /proc/[0-9]*; do
    program=$(readlink "$folder/exe" 2>/dev/null) || continue
    [[ "$program" != */datasystem_worker ]] || echo "${folder#/proc/}"
  done
}

status_says() { grep -qsF "$1" "$status_file"; }

mapfile -t pids < <(workers)
if ((${#pids[@]} == 0)); then
  say "there is no worker, nothing to stop"
else
  # Before the signal, as the worker answers in the same file. And the worker must not forget that
  # it leaves for good.
  if ! status_says 'voluntary scale in' && ! status_says 'worker_stop_status:ready'; then
    { echo 'waitting worker exit' >"$status_file.new" && mv "$status_file.new" "$status_file"; } ||
      say "WARNING: cannot write $status_file; waiting for the end of the worker"
  fi
  say "stopping the worker, pid ${pids[*]}"
  kill -TERM "${pids[@]}" 2>/dev/null
fi

end=$((SECONDS + timeout_s))
until status_says 'worker_stop_status:ready' || [[ -z "$(workers)" ]]; do
  if ((SECONDS >= end)); then
    say "WARNING: the worker has not stopped within $timeout_s s; what it has not migrated is" \
      "lost if it is killed now"
    exit 1
  fi
  sleep 0.2
done
health=/home/yuanrong/datasystem/health
rm -f "${HEALTH_CHECK_PATH:-$health/healthy}" "${READY_CHECK_PATH:-$health/ready}" \
  "${LIVENESS_CHECK_PATH:-$health/liveness}"
say "the worker may be killed"
