"""The image: its root file system is built by the Dockerfile's own steps, and the worker is run in
it by its entry script and looked at by its probes, as Kubernetes does."""

import signal
from pathlib import Path

import pytest

import rootfs
from cluster import wait_until
from container import Container
from pod import HEALTH, HOME, LOGS, READINESS

STARTUP = [f"{HOME}/file_check.sh", "startupProbe", f"{HEALTH}/liveness"]
LIVENESS = [f"{HOME}/liveness_check.sh", "-f", f"{HEALTH}/liveness"]
# The worker writes its liveness file every 5 s.
LIVENESS_S = 6

PYTHON_CLIENT = """
import sys
from yr.datasystem import KVClient
client = KVClient("127.0.0.1", int(sys.argv[1]))
client.init()
"""


def test_the_image_serves_by_its_entry_script_and_term_ends_it_with_exit_0(pod):
    container = pod.launch()
    wait_until(lambda: container.run(*STARTUP)[0] == 0, 60, "start")
    wait_until(lambda: container.run(*READINESS)[0] == 0, 60, "readiness")
    assert container.run(*LIVENESS, "-t", "150") == (0, "")
    assert container.run("python3", "-c", PYTHON_CLIENT + "client.set('k', b'v' * 2000000)\n"
                         "print(client.get(['k']) == [b'v' * 2000000])", pod.port) == (0, "True\n")
    status = Path(f"/proc/{container.worker_pid()}/status").read_text()
    assert "\nUid:\t1002\t1002\t1002\t1002\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status
    assert container.stop() == 0
    assert "the worker ended, exit code 0" in pod.scripts_log()
    assert not (pod.volumes[HEALTH] / "ready").exists()


def test_dscli_and_the_package_are_in_the_image(pod):
    container = pod.start()
    version = (rootfs.SOURCE / "VERSION").read_text().strip()
    assert container.run("dscli", "--version") == (0, f"dscli ({version})\n")
    code, output = container.run("dscli", "status", "--worker_address", pod.address)
    assert code == 0 and pod.address in output
    code, output = container.run("python3", "-c", "import importlib.metadata as m; "
                                 "print(m.version('openyuanrong-datasystem'))")
    assert (code, output) == (0, f"{version}\n")


def test_the_user_of_the_image_cannot_change_its_programs(image):
    for path in ["worker_entry.sh", "datasystem/service/datasystem_worker",
                 "datasystem/python/yr/datasystem/__init__.py"]:
        status = (image.root / "home/yuanrong" / path).stat()
        assert (status.st_uid, status.st_mode & 0o022) == (0, 0), path
    for folder in ["logs", "health", "rocksdb", "unix_domain_socket_dir"]:
        assert (image.root / "home/yuanrong/datasystem" / folder).stat().st_uid == 1002


def test_the_image_holds_each_library_once(image):
    service = image.root / "home/yuanrong/datasystem/service"
    package = service.parent / "python/yr/datasystem"
    for name in ["datasystem_worker", "lib/libucp.so.0", "lib/ucx/libuct_ib.so.0"]:
        assert (package / name).is_symlink() and (package / name).resolve() == service / name


def test_the_environment_fills_in_what_the_arguments_leave_out(pod):
    container = pod.run_image("-unix_domain_socket_dir=/home/uds", f"-bind_address={pod.address}",
                              WORKER_IP="127.0.0.1", WORKER_PORT=pod.port, BIND_IP="127.0.0.9",
                              SHARE_MEMORY_SIZE=48, ENABLE_RDMA="false")
    wait_until(lambda: container.run(*READINESS)[0] == 0, 60, "readiness")
    arguments = Path(f"/proc/{container.worker_pid()}/cmdline").read_text().split("\0")
    assert f"-worker_address={pod.address}" in arguments
    assert "-shared_memory_size_mb=48" in arguments
    assert "-enable_rdma=false" in arguments
    assert not [word for word in arguments if "127.0.0.9" in word], "bind_address was named"


def test_a_flag_that_the_worker_refuses_ends_the_container_with_the_workers_exit_code(pod):
    container = pod.launch("-no_such_flag=1")
    assert container.wait() == 1
    assert "unknown flag --no_such_flag" in container.output()


def test_int_stops_like_term_and_a_killed_worker_ends_the_container_with_its_code(pod):
    assert pod.start().stop(signal.SIGINT) == 0
    container = pod.start()
    container.signal_worker(signal.SIGKILL)
    assert container.wait() == 128 + signal.SIGKILL


def test_help_names_the_environment_and_the_workers_flags(image):
    container = Container(image, ["--help"])
    assert container.wait() == 0
    assert "POD_MEMORY_LIMIT_MB" in container.output()
    assert "--worker_address" in container.output()
    container.end()


# Memory.

def test_cache_memory_above_the_pods_limit_is_refused(pod):
    output = pod.refused(SHARE_MEMORY_SIZE="128", POD_MEMORY_LIMIT_MB="127")
    assert "the cache memory, 128 MiB, is above the container's memory limit" in output
    assert "(POD_MEMORY_LIMIT_MB), 127 MiB" in output
    assert "the cache memory, 64 MiB, is above" in pod.refused(POD_MEMORY_LIMIT_MB="63")
    assert "a number of MiB is needed" in pod.refused(POD_MEMORY_LIMIT_MB="4Gi")
    assert "shared_memory_size_mb is 'many'" in pod.refused(SHARE_MEMORY_SIZE="many")
    assert "ERROR: the cache memory, 64 MiB" in pod.scripts_log()


def test_without_a_flag_the_workers_own_default_is_compared(pod):
    container = pod.run_image(f"-worker_address={pod.address}", POD_MEMORY_LIMIT_MB="1023")
    assert container.wait() == 1
    assert "the cache memory, 1024 MiB, is above" in container.output()


@pytest.mark.parametrize("file", ["memory.max", "memory/memory.limit_in_bytes"])
def test_without_a_limit_in_the_environment_the_cgroup_is_asked(pod, file):
    cgroup = pod.folder("cgroup")
    (cgroup / file).parent.mkdir(exist_ok=True)
    (cgroup / file).write_text(str(63 << 20))
    assert "memory limit (cgroup), 63 MiB" in pod.refused(volumes={"/sys/fs/cgroup": cgroup})
    (cgroup / file).write_text("max\n" if file == "memory.max" else "9223372036854771712\n")
    assert pod.start(volumes={"/sys/fs/cgroup": cgroup}).stop() == 0


def test_huge_pages_have_a_limit_of_their_own(pod):
    cgroup = pod.folder("cgroup")
    (cgroup / "memory.max").write_text(str(16 << 20))
    (cgroup / "hugetlb.2MB.max").write_text(str(62 << 20))
    output = pod.refused("-enable_huge_tlb=true", volumes={"/sys/fs/cgroup": cgroup})
    assert "limit of huge pages (resource hugepages-2Mi), 62 MiB" in output


def test_too_little_locked_memory_for_rdma_is_told_with_the_remedy(pod):
    container = pod.launch("-enable_rdma=true", memlock_bytes=8 << 20)
    assert container.wait() != 0  # there is no device either
    assert "RDMA locks 128 MiB, and this container may lock 8 MiB" in container.output()
    assert "IPC_LOCK" in container.output()


# Placement.

@pytest.mark.parametrize("options, words", [
    ("--cpunodebind=0;reboot", "NUMACTL_ARGS has '--cpunodebind=0;reboot'"),
    ("--localalloc sleep", "NUMACTL_ARGS has 'sleep'"),
    ("--shm=/x", "NUMACTL_ARGS has '--shm=/x'"),
    ("--cpunodebind=4095", "is not possible here"),
])
def test_wrong_numa_options_are_refused(pod, options, words):
    assert words in pod.refused(NUMACTL_ARGS=options)


def test_numa_options_place_the_worker(pod):
    container = pod.start(NUMACTL_ARGS="--physcpubind=0 --localalloc")
    status = Path(f"/proc/{container.worker_pid()}/status").read_text()
    assert "\nCpus_allowed_list:\t0\n" in status


# Probes.

def test_liveness_fails_while_the_worker_is_stopped_and_recovers(pod):
    container = pod.start()
    container.signal_worker(signal.SIGSTOP)
    probe = [*LIVENESS, "-t", LIVENESS_S]
    wait_until(lambda: container.run(*probe)[0] == 1, 30, "a failing liveness probe")
    assert "it hangs, or is stopped" in container.run(*probe)[1]
    assert container.run(*READINESS)[0] == 0, "readiness is not for that"
    container.signal_worker(signal.SIGCONT)
    wait_until(lambda: container.run(*probe)[0] == 0, 30, "a green liveness probe")


def test_liveness_stays_green_while_the_worker_is_busy(pod):
    container = pod.start()
    load = container.start("python3", "-c", PYTHON_CLIENT + "number = 0\n"
                           "while True:\n"
                           "    client.set(f'key{number % 40}', b'x' * 1000000)\n"
                           "    number += 1\n"
                           "    if number == 20: print('busy', flush=True)", pod.port)
    assert load.stdout.readline() == "busy\n"
    liveness = pod.volumes[HEALTH] / "liveness"
    beats = {liveness.stat().st_mtime_ns}

    def beaten_twice_more():
        code, reason = container.run(*LIVENESS, "-t", 2 * LIVENESS_S)
        assert code == 0, reason
        beats.add(liveness.stat().st_mtime_ns)
        return len(beats) == 3
    wait_until(beaten_twice_more, 60, "two more beats")
    assert load.poll() is None, load.stdout.read()


# Leaving.

def test_prestop_has_the_worker_leave_with_exit_0(pod):
    container = pod.start()
    # It ends with its container, when the worker was faster.
    prestop = container.start(f"{HOME}/uninstall.sh", "-f", f"{LOGS}/worker-status", "-t", "30")
    assert container.wait() == 0
    prestop.communicate(timeout=30)
    assert prestop.returncode in (0, 137, -signal.SIGKILL)
    assert "uninstall.sh: stopping the worker" in pod.scripts_log()
    assert pod.status_file.exists()


def test_prestop_returns_when_the_worker_says_that_it_may_be_killed(pod):
    container = pod.start()
    container.signal_worker(signal.SIGSTOP)  # it will not end by itself
    prestop = container.start(f"{HOME}/uninstall.sh", "-f", f"{LOGS}/worker-status", "-t", "60")
    wait_until(pod.status_file.exists, 30, "the status file")
    assert pod.status_file.read_text() == "waitting worker exit\n"
    assert prestop.poll() is None
    pod.status_file.write_text("worker_stop_status:ready\n")
    output, _ = prestop.communicate(timeout=30)
    assert prestop.returncode == 0, output
    assert not list(pod.volumes[HEALTH].iterdir())
    container.signal_worker(signal.SIGCONT)
    assert container.wait() == 0


def test_prestop_keeps_what_a_taint_has_said_and_gives_up_when_its_time_is_over(pod):
    container = pod.start()
    container.signal_worker(signal.SIGSTOP)
    pod.status_file.write_text("voluntary scale in\n")
    code, output = container.run(f"{HOME}/uninstall.sh", "-f", f"{LOGS}/worker-status", "-t", "1")
    assert code == 1
    assert "has not stopped within 1 s" in output
    assert pod.status_file.read_text() == "voluntary scale in\n"


def test_a_new_container_forgets_the_status_of_the_last_one(pod):
    pod.status_file.write_text("voluntary scale in\n")
    pod.start()
    assert not pod.status_file.exists()
