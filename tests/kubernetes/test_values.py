"""Values that Helm must refuse, each with its key and a reason."""

import pytest

import chart


@pytest.mark.parametrize("setting, key", [
    ('clusterNmae="a"', "clusterNmae"),
    ('performance.enableRDMA=true', "enableRDMA"),
    ('multiSpec=[{"name":"a","affinityLabel":{"x":"y"},"sharedMemory":1}]', "sharedMemory"),
    ('mount=[{"hostpath":"/a"}]', "hostpath"),
])
def test_a_misspelt_key_is_named(setting, key):
    error = chart.refusal(setting)
    assert key in error and "not allowed" in error


@pytest.mark.parametrize("setting, key", [
    ('performance.enableRdma="yes"', "enableRdma"),
    ('performance.arenaPerTenant="two"', "arenaPerTenant"),
    ('mount={}', "mount"),
    ('etcd.etcdAddress=2379', "etcdAddress"),
    ('resources.datasystemWorker.limits.memory="much"', "memory"),
    ('resources.datasystemWorker.pageSize="1 MiB"', "pageSize"),
    ('log.ucxLogLevel="LOUD"', "ucxLogLevel"),
    ('metadata.rocksdbWriteMode="soon"', "rocksdbWriteMode"),
    ('ipc.udsDir="uds"', "udsDir"),
    ('clusterName="a b"', "clusterName"),
    ('etcd.etcdAddress="10.0.0.9"', "etcdAddress"),
    ('performance.numa.membind="first"', "membind"),
    ('gracefulShutdown.scaleInTaint="offline"', "scaleInTaint"),
    ('namespace="A_B"', "namespace"),
])
def test_a_value_of_the_wrong_kind_is_named(setting, key):
    assert f".{key}" in chart.refusal(setting)


@pytest.mark.parametrize("setting, key, limit", [
    ('port.datasystemWorker=65536', "datasystemWorker", "65535"),
    ('port.datasystemWorker=0', "datasystemWorker", "1"),
    ('performance.arenaPerTenant=33', "arenaPerTenant", "32"),
    ('resources.datasystemWorker.sharedMemory=0', "sharedMemory", "1"),
    ('reliability.nodeTimeoutS=4', "nodeTimeoutS", "5"),
    ('log.logLevel=-1', "logLevel", "0"),
    ('reliability.heartbeatIntervalMs=2147483648', "heartbeatIntervalMs", "2.147483647e+09"),
])
def test_a_number_out_of_range_is_named_with_the_limit(setting, key, limit):
    error = chart.refusal(setting)
    assert f".{key}" in error and limit in error


def test_all_faults_are_reported_at_once():
    error = chart.refusal('performance.enableRdma="yes"', 'port.datasystemWorker=0', 'typo=1')
    assert "enableRdma" in error and "datasystemWorker" in error and "typo" in error


@pytest.mark.parametrize("setting, reason", [
    ('rpc.enableCurveZmq=true', "global.rpc.enableCurveZmq: not supported, this version"),
    ('l2Cache.l2CacheType="obs"', "global.l2Cache.l2CacheType: not supported"),
    ('etcd.enableEtcdAuth=true', "global.etcd.enableEtcdAuth: not supported"),
    ('performance.enableUrma=true', "use enable_rdma"),
    ('tenantAuth.authorizationEnable=true', "authorizationEnable: not supported"),
])
def test_what_the_worker_would_refuse_is_refused_with_its_reason(setting, reason):
    assert reason in chart.refusal(setting)


def test_a_refused_secret_is_not_shown():
    error = chart.refusal('akSk.systemSecretKey="hunter2"')
    assert "global.akSk.systemSecretKey: not supported" in error and "hunter2" not in error


@pytest.mark.parametrize("settings, reason", [
    (['resources.datasystemWorker.sharedMemory=4097'],
     "global.resources.datasystemWorker: sharedMemory, 4097 MiB, is above the limit of memory, 4G"),
    (['resources.datasystemWorker.sharedMemory=16385', 'performance.enableHugeTlb=true'],
     "above the limit of hugepages2Mi, 16Gi"),
    (['resources.datasystemWorker.limits.hugepages2Mi="20Gi"', 'performance.enableHugeTlb=true'],
     "request and limit of hugepages2Mi differ"),
    (['multiSpec=[{"name":"a","affinityLabel":{"x":"y"},"workerResources":{"sharedMemory":9000}}]'],
     "global.multiSpec[0]: sharedMemory, 9000 MiB"),
    (['multiSpec=[{"name":"a","affinityLabel":"x=y"},{"name":"a","affinityLabel":"x=z"}]'],
     "two entries named a"),
    (['mount=[{"hostPath":"/a","mountPath":""}]'],
     "global.mount[0]: hostPath and mountPath belong together"),
    (['performance.rdma.deviceResource="rdma/x"'], "set enableRdma: true"),
])
def test_values_that_do_not_fit_each_other_are_refused_with_a_remedy(settings, reason):
    assert reason in chart.refusal(*settings)


def test_a_key_that_is_taken_away_is_named_and_an_empty_list_may_be(tmp_path):
    assert "datasystemWorker is required" in chart.refusal("port.datasystemWorker=null")
    values = tmp_path / "values.yaml"
    values.write_text("global:\n  mount:\n  multiSpec:\n  annotations:\n"
                      "  affinity: {nodeSelector: , tolerations: , nodeAffinity: }\n")
    result = chart.helm("template", "x", chart.CHART, "--values", values)
    assert result.returncode == 0, result.stderr


def test_certificates_that_are_missing_or_no_base64_are_named(tls_chart):
    result = chart.helm("template", "x", tls_chart, "--set-json", "global.etcd.enableEtcdAuth=true")
    assert "needs etcdCa, etcdCert and etcdKey" in result.stderr
    result = chart.helm("template", "x", tls_chart, "--set-json",
                        'global.etcd.etcdCa="-----BEGIN CERTIFICATE-----"')
    assert "etcdCa" in result.stderr
