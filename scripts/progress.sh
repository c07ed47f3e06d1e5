# shellcheck shell=bash
# Sourced: one line per step, with the time since the start.
progress_start=$SECONDS
progress_name=$(basename "$0")

elapsed() { local s=$((SECONDS - progress_start)); printf '%d:%02d' $((s / 60)) $((s % 60)); }
step() { echo "[$(elapsed)] $progress_name: $*"; }
finished() { echo "[$(elapsed)] $progress_name: done"; }
