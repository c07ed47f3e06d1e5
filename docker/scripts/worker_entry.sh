#!/usr/bin/env bash
# What the container runs: checks what the worker cannot see, starts it, passes signals on, watches
# the node's taints. `worker_entry.sh --help` is the manual.
set -uo pipefail

readonly home=/home/yuanrong
readonly worker=$home/datasystem/service/datasystem_worker
readonly hugepage=2MB               # the size that the chart requests
readonly memlock_reserve_mb=64      # the worker's other registered memory, see docs/rdma.md
readonly token=/var/run/secrets/kubernetes.io/serviceaccount/token

usage() {
  cat <<'USAGE'
Usage: worker_entry.sh -name=value...     flags of datasystem_worker

Starts the worker of this container and ends with its exit code. TERM and INT stop it cleanly.

Environment; an empty one counts as not set
  WORKER_IP, WORKER_PORT     default of -worker_address
  BIND_IP                    with them: default of -bind_address
  SHARE_MEMORY_SIZE          MiB, default of -shared_memory_size_mb
  ENABLE_RDMA                true or false, default of -enable_rdma
  WORKER_LOG_DIR             default of -log_dir; container.log is written there too
  HEALTH_CHECK_PATH, READY_CHECK_PATH, LIVENESS_CHECK_PATH
                             defaults of -health_check_path, -ready_check_path, -liveness_check_path
  POD_MEMORY_LIMIT_MB        the container's memory limit. Not set: the cgroup is asked. The start
                             is refused when the cache memory is above it
  NUMACTL_ARGS               placement, by numactl: any of --cpunodebind=N, --physcpubind=N,
                             --membind=N, --preferred=N, --interleave=N, --localalloc
  STATUS_FILE_PATH           file that tells the worker that it leaves for good, and others that it
                             may be killed
  SCALE_IN_TAINT             key=value:Effect, several separated by commas. When the node NODE_ID
                             has such a taint, the worker migrates its data and leaves. Needs the
                             right to get nodes
  UCX_TLS, UCX_*             reach the network library unchanged

Examples
  worker_entry.sh -worker_address=10.0.0.1:31501 -etcd_address=10.0.0.9:2379
  NUMACTL_ARGS='--cpunodebind=0 --localalloc' worker_entry.sh -worker_address=10.0.0.1:31501

The flags of the worker:
USAGE
}

# Also for whoever has only the log folder.
say() {
  local line
  line="$(date -u +%FT%TZ) worker_entry.sh: $*"
  echo "$line" >&2
  [[ ! -d "$log_dir" || ! -w "$log_dir" ]] || echo "$line" >>"$log_dir/container.log"
}

refuse() {
  say "ERROR: $*"
  exit 1
}

flags=("$@")
log_dir=''

# value_of FLAG: what the arguments say last about it, as the worker reads them; false if they do
# not name it.
value_of() {
  local i word value='' found=1
  for ((i = 0; i < ${#flags[@]}; i++)); do
    word=${flags[i]#-}
    word=${word#-}
    case $word in
      "$1="*) value=${word#*=} found=0 ;;
      "$1")
        value=${flags[i + 1]:-true} found=0
        [[ "$value" != -* ]] || value=true ;;
    esac
  done
  echo "$value"
  return $found
}

# default FLAG VALUE: the environment's say on a flag that the arguments do not name.
default() {
  [[ -z "$2" ]] || value_of "$1" >/dev/null || flags+=("-$1=$2")
}

take_environment() {
  if [[ -n "${WORKER_IP:-}" && -n "${WORKER_PORT:-}" ]]; then
    default worker_address "$(with_port "$WORKER_IP")"
    default bind_address "$(with_port "${BIND_IP:-}")"
  fi
  default shared_memory_size_mb "${SHARE_MEMORY_SIZE:-}"
  default enable_rdma "${ENABLE_RDMA:-}"
  default log_dir "${WORKER_LOG_DIR:-}"
  default health_check_path "${HEALTH_CHECK_PATH:-}"
  default ready_check_path "${READY_CHECK_PATH:-}"
  default liveness_check_path "${LIVENESS_CHECK_PATH:-}"
}

with_port() {
  case $1 in
    '') ;;
    *:*) echo "[$1]:$WORKER_PORT" ;;  # IPv6
    *) echo "$1:$WORKER_PORT" ;;
  esac
}

is_true() { [[ "${1,,}" == true || "$1" == 1 ]]; }

# The first of the files that exists holds a number of bytes, or the word max; prints MiB.
limit_of_cgroup() {
  local file bytes
  for file in "$@"; do
    [[ -r "/sys/fs/cgroup/$file" ]] || continue
    read -r bytes <"/sys/fs/cgroup/$file"
    [[ "$bytes" =~ ^[0-9]+$ ]] || return
    echo $((bytes / 1048576))
    return
  done
}

check_memory() {
  local limit_mb from
  if is_true "$(value_of enable_huge_tlb)"; then
    # Huge pages do not count against the memory limit: they have one of their own.
    limit_mb=$(limit_of_cgroup "hugetlb.$hugepage.max" "hugetlb/hugetlb.$hugepage.limit_in_bytes")
    from="the container's limit of huge pages (resource hugepages-2Mi)"
  elif [[ -n "${POD_MEMORY_LIMIT_MB:-}" ]]; then
    [[ "$POD_MEMORY_LIMIT_MB" =~ ^[1-9][0-9]*$ ]] ||
      refuse "POD_MEMORY_LIMIT_MB is '$POD_MEMORY_LIMIT_MB': a number of MiB is needed"
    limit_mb=$POD_MEMORY_LIMIT_MB
    from="the container's memory limit (POD_MEMORY_LIMIT_MB)"
  else
    limit_mb=$(limit_of_cgroup memory.max memory/memory.limit_in_bytes)
    from="the container's memory limit (cgroup)"
  fi
  [[ -n "$limit_mb" ]] || return 0
  ((cache_mb <= limit_mb)) ||
    refuse "the cache memory, $cache_mb MiB, is above $from, $limit_mb MiB; lower sharedMemory" \
      "(shared_memory_size_mb), or raise the limit: objects need it, and the worker some more"
}

worker_default() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]]["value"])' \
    "${worker%/*}/worker_config.json" "$1"
}

has_ipc_lock() {
  local name value
  while read -r name value; do
    [[ "$name" != CapEff: ]] || { (((0x$value >> 14) & 1)); return; }
  done </proc/self/status
  return 1
}

# RDMA locks the whole cache memory. The worker refuses by itself what it cannot lock; only here is
# the remedy known.
raise_memlock() {
  ! ulimit -l unlimited 2>/dev/null || return 0
  ! has_ipc_lock || return 0
  local limit_kb need_mb=$((cache_mb + memlock_reserve_mb))
  limit_kb=$(ulimit -l)
  [[ "$limit_kb" == unlimited ]] || ((limit_kb >= need_mb * 1024)) ||
    say "WARNING: RDMA locks $need_mb MiB, and this container may lock $((limit_kb / 1024)) MiB;" \
      "give it the capability IPC_LOCK as root, start it with --ulimit memlock=-1, or set" \
      "LimitMEMLOCK=infinity for the service of the container runtime"
}

# Sets `numactl`, the command in front of the worker.
numactl=()
place() {
  local words word error numbers='(all|[!+]?[0-9]+([-,][0-9]+)*)'
  read -ra words <<<"${NUMACTL_ARGS:-}"
  ((${#words[@]} > 0)) || return 0
  for word in "${words[@]}"; do
    [[ "$word" == --localalloc ||
       "$word" =~ ^--(cpunodebind|physcpubind|membind|preferred|interleave)=$numbers$ ]] ||
      refuse "NUMACTL_ARGS has '$word': expected --cpunodebind=, --physcpubind=, --membind=," \
        "--preferred= or --interleave= with numbers such as 0 or 0-1,3, or --localalloc"
  done
  command -v numactl >/dev/null ||
    refuse "NUMACTL_ARGS is set and numactl is not in this image; install it"
  error=$(numactl "${words[@]}" true 2>&1) ||
    refuse "NUMACTL_ARGS='$NUMACTL_ARGS' is not possible here: ${error//$'\n'/ };" \
      "'numactl --hardware' shows the nodes, and a container needs the capability SYS_NICE, or a" \
      "seccomp profile that lets it set a memory policy"
  numactl=(numactl "${words[@]}")
}

check_taints() {
  local taint taints
  IFS=, read -ra taints <<<"${SCALE_IN_TAINT:-}"
  for taint in "${taints[@]}"; do
    [[ "$taint" =~ ^[^=:]+(=[^=:]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$ ]] ||
      refuse "SCALE_IN_TAINT has '$taint': expected key=value:NoExecute, or another effect"
  done
  ((${#taints[@]} == 0)) || [[ -n "${STATUS_FILE_PATH:-}" ]] ||
    refuse "SCALE_IN_TAINT needs STATUS_FILE_PATH: there the worker learns that it leaves for good"
}

worker_pid='' watcher_pid='' signalled=no
pass_on() {
  signalled=yes
  [[ -z "$worker_pid" ]] || kill -TERM "$worker_pid" 2>/dev/null
}

run_worker() {
  trap pass_on TERM INT
  ${numactl[@]+"${numactl[@]}"} "$worker" ${flags[@]+"${flags[@]}"} &
  worker_pid=$!
  # It may have come before there was somebody to pass it on to.
  [[ "$signalled" == no ]] || pass_on
  if [[ -n "${SCALE_IN_TAINT:-}" ]]; then
    if [[ -r "$token" ]]; then
      python3 "$home/scale_in_watch.py" --taints "$SCALE_IN_TAINT" \
        --status-file "$STATUS_FILE_PATH" --pid "$worker_pid" &
      watcher_pid=$!
    else
      say "WARNING: SCALE_IN_TAINT is not watched: there is no $token; is this a pod with a" \
        "service account?"
    fi
  fi
  local code
  while signalled=no; do
    wait "$worker_pid"
    code=$?
    # A signal ends the waiting, and not the worker.
    [[ "$signalled" == yes ]] || break
  done
  [[ -z "$watcher_pid" ]] || kill "$watcher_pid" 2>/dev/null
  say "the worker ended, exit code $code"
  exit "$code"
}

case ${1:-} in
  -h | -help | --help)
    usage
    shift
    exec "$worker" --help "$@" ;;
  -version | --version) exec "$worker" --version ;;
esac

take_environment
log_dir=$(value_of log_dir)
[[ -z "$log_dir" ]] || mkdir -p "$log_dir" 2>/dev/null  # if it cannot be made, the worker says so
cache_mb=$(value_of shared_memory_size_mb) ||
  cache_mb=$(worker_default shared_memory_size_mb)
[[ "$cache_mb" =~ ^[1-9][0-9]{0,9}$ ]] ||
  refuse "shared_memory_size_mb is '$cache_mb': a number of MiB from 1 is needed"
check_memory
check_taints
place
! is_true "$(value_of enable_rdma)" || raise_memlock
# What an earlier container wrote says nothing about this worker.
[[ -z "${STATUS_FILE_PATH:-}" ]] || rm -f "$STATUS_FILE_PATH"
run_worker
