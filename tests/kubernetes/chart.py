"""The chart as Helm renders it; tools as scripts/install_chart_tools.sh installs them."""

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

SOURCE = Path(__file__).resolve().parents[2]
CHART = SOURCE / "docker" / "chart" / "datasystem"
HERE = Path(__file__).resolve().parent
TOOLS = Path(os.environ.get("DATASYSTEM_TOOLS_DIR") or
             Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "datasystem-tools")


def helm_program():
    program = shutil.which("helm") or str(TOOLS / "helm" / "helm")
    if not os.access(program, os.X_OK):
        pytest.skip("there is no Helm; scripts/install_chart_tools.sh fetches it")
    return program


def helm(*arguments):
    # Away from the user's own settings, and from any cluster.
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "KUBECONFIG": "/nonexistent"}
    return subprocess.run([helm_program(), *map(str, arguments)], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def values_file(name):
    return HERE / "values" / f"{name}.yaml"


@functools.lru_cache(maxsize=None)
def rendered(name, chart=CHART):
    """All that the values file of tests/kubernetes/values makes, as text."""
    result = helm("template", "datasystem", chart, "--values", values_file(name))
    assert result.returncode == 0, result.stderr
    return result.stdout


def objects(text):
    return [item for item in yaml.safe_load_all(text) if item]


def of_kind(items, kind):
    return [item for item in items if item["kind"] == kind]


def worker_of(daemon_set):
    """The manifest of its worker's container."""
    return daemon_set["spec"]["template"]["spec"]["containers"][0]


def environment_of(manifest):
    return {row["name"]: row.get("value") for row in manifest["env"]}


def refusal(*settings, values=None):
    """What Helm says of values that it must not render."""
    words = [word for setting in settings for word in ("--set-json", f"global.{setting}")]
    if values:
        words += ["--values", values]
    result = helm("template", "datasystem", CHART, *words)
    assert result.returncode != 0, "it was rendered"
    return result.stderr


def schema_faults(items):
    """Of each object against Kubernetes' schema, one line for each fault."""
    node = shutil.which("node")
    if node is None or not (TOOLS / "node_modules" / "kubernetes-models").is_dir():
        pytest.skip("there are no schemas; scripts/install_chart_tools.sh fetches them")
    result = subprocess.run([node, str(HERE / "validate.js")], input=json.dumps(items), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "NODE_PATH": str(TOOLS / "node_modules")})
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()
