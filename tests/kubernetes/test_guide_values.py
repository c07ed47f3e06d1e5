"""Keys that the guide edits, and what the chart says after the installation."""

import shutil

import pytest
import yaml

import chart

# Key, and its value before anything is edited.
GUIDE = {
    "imageRegistry": "",
    "etcd.etcdAddress": "",
    "resources.datasystemWorker.sharedMemory": 2048,
    "log.enableUcxLog": False,
    "log.ucxLogLevel": "ERROR",
    "performance.arenaPerTenant": 1,
    "performance.enableRdma": False,
    "performance.ucxTransportLayerSelection": "rc_x",
    "performance.enableHugeTlb": False,
    "mount": [{"hostPath": "", "mountPath": ""}],
    "port.datasystemWorker": 31501,
    "ipc.udsDir": "/home/uds",
    "multiSpec": [],
}


@pytest.mark.parametrize("key", GUIDE)
def test_keys_of_the_guide_are_where_it_edits_them(key):
    value = yaml.safe_load((chart.CHART / "values.yaml").read_text())["global"]
    for name in key.split("."):
        value = value[name]
    assert value == GUIDE[key] and type(value) is type(GUIDE[key])


def test_the_image_is_of_this_version():
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())["global"]
    version = (chart.SOURCE / "VERSION").read_text().strip()
    assert values["images"]["datasystem"] == f"openyuanrong-datasystem:{version}"


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """notes(setting...): NOTES.txt, as a ConfigMap: Helm prints it where there is a cluster only."""
    folder = tmp_path_factory.mktemp("notes") / "datasystem"
    shutil.copytree(chart.CHART, folder)
    text = (folder / "templates" / "NOTES.txt").read_text()
    (folder / "templates" / "notes.yaml").write_text(
        '{{- define "notes" -}}\n' + text + '{{- end }}\napiVersion: v1\nkind: ConfigMap\n'
        'metadata: {name: notes}\ndata: {text: {{ include "notes" . | quote }}}\n')

    def render(*settings):
        words = [word for setting in settings for word in ("--set", f"global.{setting}")]
        result = chart.helm("template", "ds", folder, "-s", "templates/notes.yaml", *words)
        assert result.returncode == 0, result.stderr
        return chart.objects(result.stdout)[0]["data"]["text"]
    return render


def test_notes_tell_how_to_check(notes):
    text = notes("namespace=cache", "etcd.etcdAddress=10.0.0.9:2379")
    assert "kubectl -n cache get pods -l app=ds-worker" in text
    assert "helm test ds" in text
    assert "WARNING" not in text


def test_notes_warn_of_nodes_that_stay_alone(notes):
    assert "etcdAddress is empty, so each worker is a cluster by itself" in notes()


def test_notes_warn_of_devices_that_a_container_may_not_open(notes):
    assert "WARNING: with enableRdma" in notes("performance.enableRdma=true",
                                               "performance.rdma.privileged=false")
    assert "WARNING: with enableRdma" not in notes("performance.enableRdma=true",
                                                   "performance.rdma.deviceResource=rdma/hca")


def test_notes_say_that_workers_are_privileged_and_how_to_do_without(notes):
    text = notes("performance.enableRdma=true")
    assert "the workers run privileged" in text
    assert "global.performance.rdma.deviceResource" in text
    assert "privileged" not in notes("performance.enableRdma=true",
                                     "performance.rdma.deviceResource=rdma/hca")
