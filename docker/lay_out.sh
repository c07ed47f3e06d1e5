#!/usr/bin/env bash
# Lays out what the image holds below /home/yuanrong, from the packages that build.sh made. Used by
# the Dockerfile and by the tests.
#   lay_out.sh OUTPUT_DIR TARGET_DIR
#
#   TARGET_DIR/*.sh, *.py            entry and probes
#   TARGET_DIR/bin/dscli             command line
#   TARGET_DIR/datasystem/service    worker
#   TARGET_DIR/datasystem/python     Python package, for PYTHONPATH: no pip is needed in the image
set -euo pipefail

if (($# != 2)); then
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
fail() {
  echo "lay_out.sh: $*" >&2
  exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
output=$1 target=$2

packages=("$output"/yr-datasystem-v*.tar.gz "$output"/openyuanrong_datasystem-*.whl)
for package in "${packages[@]}"; do
  [[ -f "$package" ]] || fail "no $package; make it: bash build.sh -A on -X off"
done
((${#packages[@]} == 2)) || fail "more than one version in $output: ${packages[*]}"

mkdir -p "$target/bin"
tar -xzf "${packages[0]}" -C "$target" --no-same-owner datasystem/service
/usr/bin/python3 -m wheel unpack --dest "$target/unpacked" "${packages[1]}" >/dev/null
mv "$target"/unpacked/* "$target/datasystem/python"
rmdir "$target/unpacked"

# The wheel has the same worker and libraries once more.
(
  cd "$target/datasystem/service"
  find . -type f -printf '%P\n' | while read -r file; do
    copy=../python/yr/datasystem/$file
    if cmp -s "$file" "$copy"; then
      ln -sf "$(realpath --relative-to="$(dirname "$copy")" "$file")" "$copy"
    fi
  done
)

cp "$here"/scripts/*.sh "$here"/scripts/*.py "$target/"
printf '#!/bin/sh\nexec python3 -m yr.datasystem.cli "$@"\n' >"$target/bin/dscli"
chmod 755 "$target"/*.sh "$target"/*.py "$target/bin/dscli"
