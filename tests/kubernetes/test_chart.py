"""What the chart renders: compared with golden files, with Kubernetes' schemas, with the worker.

After a wanted change: UPDATE_GOLDEN=1 pytest tests/kubernetes writes tests/kubernetes/golden anew.
"""

import os
import subprocess

import pytest

import chart
import make_chart

CASES = ["default", "rdma", "rdma-huge-pages", "rdma-root", "ucx-log", "extra-mounts",
         "multi-spec", "etcd-tls"]


@pytest.fixture(params=CASES)
def text(request, tls_chart):
    """What a values file renders."""
    folder = tls_chart if request.param == "etcd-tls" else chart.CHART
    return chart.rendered(request.param, folder)


@pytest.fixture
def items(text):
    return chart.objects(text)


def only(name):
    """The one DaemonSet of a values file."""
    daemon_set, = chart.of_kind(chart.objects(chart.rendered(name)), "DaemonSet")
    return daemon_set


def test_generated_files_are_as_make_chart_writes_them(worker_flags):
    for name, content in make_chart.generated(worker_flags).items():
        assert (chart.CHART / name).read_text() == content, (
            f"{name} differs: scripts/make_chart.py --worker WORKER writes it anew")


def test_a_live_flag_is_in_the_configuration_file_only_so_that_no_pod_restarts(worker_flags):
    items = chart.objects(chart.rendered("default"))
    live = chart.of_kind(items, "ConfigMap")[0]["data"]["datasystem.config"].split()
    assert "--v=0" in live and "--max_log_file_num=25" in live
    arguments = chart.worker_of(chart.of_kind(items, "DaemonSet")[0])["args"]
    named = {word.lstrip("-").split("=")[0]: words for words in (live, arguments) for word in words}
    for name, words in named.items():
        assert worker_flags[name]["live"] is (words is live), name


def test_lint_finds_nothing():
    for name in CASES:
        if name == "etcd-tls":
            continue
        result = chart.helm("lint", "--strict", chart.CHART, "--values", chart.values_file(name))
        assert result.returncode == 0, f"{name}: {result.stdout}{result.stderr}"


@pytest.mark.parametrize("name", CASES)
def test_rendered_as_the_golden_file_says(name, tls_chart):
    text = chart.rendered(name, tls_chart if name == "etcd-tls" else chart.CHART)
    # The version changes with each release, and nothing else by that.
    version = (chart.SOURCE / "VERSION").read_text().strip()
    text = text.replace(version, "VERSION")
    golden = chart.HERE / "golden" / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text(), f"{golden} differs; see the top of {__file__}"


def test_objects_are_what_kubernetes_takes(items):
    assert chart.schema_faults(items) == []


def test_a_misspelt_field_and_a_wrong_type_would_be_found():
    daemon_set = only("default")
    daemon_set["spec"]["template"]["spec"]["hostNetwrok"] = True
    assert chart.schema_faults([daemon_set]) == [
        "DaemonSet ds-worker: /spec/template/spec/hostNetwrok is no field of DaemonSet"]
    daemon_set = only("default")
    daemon_set["spec"]["template"]["spec"]["hostNetwork"] = "yes"
    assert "hostNetwork" in " ".join(chart.schema_faults([daemon_set]))


def test_the_worker_accepts_all_arguments_and_the_configuration_file(name_and_items, worker_binary):
    name, items = name_and_items
    for daemon_set in chart.of_kind(items, "DaemonSet"):
        arguments = chart.worker_of(daemon_set)["args"]
        live = chart.of_kind(items, "ConfigMap")[0]["data"]["datasystem.config"].split()
        assert len(arguments) > 15 and len(live) > 3
        for words in (arguments, live):
            result = subprocess.run([worker_binary, *words, "--check_flags"], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert result.returncode == 0, f"{name}: {result.stdout}"


@pytest.fixture(params=[name for name in CASES if name != "etcd-tls"])
def name_and_items(request):
    return request.param, chart.objects(chart.rendered(request.param))


def test_no_argument_is_given_twice_and_no_value_looks_like_a_float(items):
    for daemon_set in chart.of_kind(items, "DaemonSet"):
        arguments = chart.worker_of(daemon_set)["args"]
        names = [word.split("=")[0] for word in arguments]
        assert len(names) == len(set(names))
        assert not [word for word in arguments if "e+" in word]


def test_a_changed_key_without_effect_reaches_the_worker_which_says_so(tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text("global:\n  rpc: {rpcThreadNum: 32}\n  resources:\n"
                      "    datasystemWorker: {pageSize: 2097152}\n")
    result = chart.helm("template", "datasystem", chart.CHART, "--values", values)
    assert result.returncode == 0, result.stderr
    daemon_set, = chart.of_kind(chart.objects(result.stdout), "DaemonSet")
    arguments = chart.worker_of(daemon_set)["args"]
    assert "-rpc_thread_num=32" in arguments
    assert "-page_size=2097152" in arguments
    assert not [word for word in arguments if word.startswith("-oc_thread_num")]


def test_rights_are_no_more_than_needed():
    def context(name):
        return chart.worker_of(only(name))["securityContext"]
    assert context("default")["runAsNonRoot"] is True
    assert context("default")["capabilities"] == {"drop": ["ALL"]}
    assert context("rdma")["privileged"] is True, "no device plug-in is named: nothing else would do"
    assert context("rdma-root")["privileged"] is False
    assert context("rdma-root")["runAsUser"] == 0
    assert context("rdma-root")["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert context("rdma-huge-pages")["runAsUser"] == 1002
    assert context("rdma-huge-pages")["capabilities"]["add"] == ["IPC_LOCK", "SYS_NICE"]


def test_huge_pages_are_requested_and_only_with_enable_huge_tlb():
    resources = chart.worker_of(only("rdma-huge-pages"))["resources"]
    assert resources["limits"]["hugepages-2Mi"] == resources["requests"]["hugepages-2Mi"] == "64Gi"
    assert resources["limits"]["rdma/hca_shared_devices_a"] == "1"
    assert "hugepages-2Mi" not in chart.worker_of(only("rdma"))["resources"]["limits"]


def test_the_ucx_log_is_in_the_container_s_folder_wherever_the_node_s_is():
    daemon_set = only("ucx-log")
    environment = chart.environment_of(chart.worker_of(daemon_set))
    assert environment["UCX_LOG_LEVEL"] == "DEBUG"
    assert environment["UCX_LOG_FILE"] == "/home/yuanrong/datasystem/logs/worker/ucx.log"
    volumes = {row["name"]: row for row in daemon_set["spec"]["template"]["spec"]["volumes"]}
    assert volumes["logs"]["hostPath"]["path"] == "/data/datasystem/logs"
    assert "UCX_LOG_FILE" not in chart.environment_of(chart.worker_of(only("default")))


def test_without_taints_to_watch_the_pod_has_no_rights_in_the_cluster():
    items = chart.objects(chart.rendered("multi-spec"))
    assert not chart.of_kind(items, "ClusterRole")
    assert all(row["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
               for row in chart.of_kind(items, "DaemonSet"))
    role, = chart.of_kind(chart.objects(chart.rendered("default")), "ClusterRole")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]


def test_each_class_of_nodes_has_a_daemon_set_that_selects_other_pods():
    large, small = chart.of_kind(chart.objects(chart.rendered("multi-spec")), "DaemonSet")
    assert [large["metadata"]["name"], small["metadata"]["name"]] == ["ds-worker-large",
                                                                      "ds-worker-small"]
    assert large["spec"]["selector"] != small["spec"]["selector"]
    for daemon_set, selected, size_mb in ((large, "large", 65536), (small, "small", 2048)):
        pod = daemon_set["spec"]["template"]
        labels = daemon_set["spec"]["selector"]["matchLabels"]
        assert labels.items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["nodeSelector"] == {"cache-class": selected, "kubernetes.io/os": "linux"}
        assert f"-shared_memory_size_mb={size_mb}" in chart.worker_of(daemon_set)["args"]


def test_the_chart_is_also_where_the_reference_has_it():
    assert (chart.SOURCE / "k8s" / "helm_chart" / "datasystem" / "Chart.yaml").samefile(
        chart.CHART / "Chart.yaml")
