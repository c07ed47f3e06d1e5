"""up, down, runscript and collect_log over real ssh, with real workers and a real etcd."""

import getpass
import json
import os
import shutil
import signal
import subprocess
from types import SimpleNamespace

import pytest

from dscli_command import Dscli
from ssh_machines import ADDRESSES, SSHD, Machines, accepts, free_port
from waiting import alive, eventually
from yr.datasystem.cli import cluster_file
from yr.datasystem.cli import remote as remote_work
from yr.datasystem.cli.console import CommandError

pytestmark = [
    pytest.mark.skipif(not os.access(SSHD, os.X_OK), reason="openssh-server is not installed"),
    pytest.mark.skipif("DATASYSTEM_WORKER_BINARY" not in os.environ,
                       reason="DATASYSTEM_WORKER_BINARY is not set"),
]


@pytest.fixture(scope="module")
def machines():
    made = Machines(os.environ["DATASYSTEM_WORKER_BINARY"])
    yield made
    made.close()


@pytest.fixture(scope="module")
def etcd(machines):
    client, peer = free_port(), free_port()
    with open(machines.folder / "etcd.log", "wb") as log:
        process = subprocess.Popen(
            ["etcd", "--data-dir", machines.folder / "etcd",
             "--listen-client-urls", f"http://127.0.0.1:{client}",
             "--advertise-client-urls", f"http://127.0.0.1:{client}",
             "--listen-peer-urls", f"http://127.0.0.1:{peer}",
             "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
             "--initial-cluster", f"default=http://127.0.0.1:{peer}"], stdout=log, stderr=log)
    eventually(lambda: accepts("127.0.0.1", client))
    yield f"127.0.0.1:{client}"
    process.terminate()
    process.wait()


@pytest.fixture
def dscli(machines, tmp_path):
    """dscli of the machine from which the others are worked on; afterwards no worker runs."""
    yield Dscli(tmp_path, {})
    for worker in machines.workers():
        os.kill(worker.pid, signal.SIGKILL)
        eventually(lambda: not alive(worker.pid))


def remote(machines, *arguments):
    """Arguments of a command over ssh."""
    return (arguments[0], "--ssh_config", str(machines.ssh_config), *map(str, arguments[1:]))


def leftovers(machines):
    return [path for address in ADDRESSES for path in machines.home(address).glob(".dscli.*")]


def port_of(machines, file):
    return json.loads(file.read_text())["worker_port"]


def test_a_cluster_goes_up_is_seen_gives_its_logs_and_goes_down(machines, etcd, dscli):
    machines.worker_file(etcd_address=etcd, shared_memory_size_mb=64, cluster_name="updown")
    file = machines.cluster_file()
    port = port_of(machines, file)

    up = dscli(*remote(machines, "up", "-f", file))
    assert (up.code, up.err) == (0, "")
    lines = up.out.splitlines()
    assert sorted(
        lines[1:4]) == [f"[INFO] Start worker service @ {a}:{port} success." for a in ADDRESSES]
    assert lines[4] == "[INFO] 3 of 3 nodes succeeded"
    assert sorted(w.address for w in machines.workers()) == [f"{a}:{port}" for a in ADDRESSES]
    for address in ADDRESSES:
        assert f"{address}:{port}" in dscli("status", "-w", f"{ADDRESSES[0]}:{port}").out

    again = dscli(*remote(machines, "up", "-f", file))
    assert again.code == 1
    assert again.err.count("runs already") == 3

    logs = dscli(*remote(machines, "collect_log", "-f", file, "-d",
                         machines.home("127.0.0.2") / "datasystem/logs", "-o", "logs"))
    assert (logs.code, logs.err) == (0, "")
    for address in ADDRESSES:
        assert f"[INFO] Collect logs from {address} successfully." in logs.out.splitlines()
        assert list((dscli.folder / "logs" / address / "logs").iterdir())

    down = dscli(*remote(machines, "down", "-f", file))
    assert (down.code, down.err) == (0, "")
    for address in ADDRESSES:
        assert f"[INFO] Stop worker service @ {address}:{port} success." in down.out.splitlines()
    assert machines.workers() == []
    assert leftovers(machines) == []

    nothing = dscli(*remote(machines, "down", "-f", file))
    assert nothing.code == 1
    assert nothing.err.count("No matching process found") == 3
    assert nothing.err.splitlines(
    )[-1] == "[ERROR] Down cluster failed: Some nodes failed during processing"


def test_a_worker_that_does_not_start_fails_its_own_node_only(machines, etcd, dscli):
    machines.worker_file(etcd_address=etcd, shared_memory_size_mb=64, cluster_name="onefails")
    file = machines.cluster_file()
    # The folder of the logs cannot be made there.
    blocked = machines.home("127.0.0.3") / "datasystem"
    shutil.rmtree(blocked, ignore_errors=True)
    blocked.write_text("")
    try:
        up = dscli(*remote(machines, "up", "-f", file))
    finally:
        blocked.unlink()
    assert up.code == 1
    assert "[ERROR] Node 127.0.0.3 execute failed: " in up.err
    assert "Not a directory" in up.err
    assert up.err.splitlines(
    )[-1] == "[ERROR] Up cluster failed: Some nodes failed during processing"
    assert "[INFO] 2 of 3 nodes succeeded, failed: 127.0.0.3" in up.out
    assert sorted(w.address.split(":")[0] for w in machines.workers()) == ["127.0.0.2", "127.0.0.4"]


def test_a_node_that_is_down_and_one_without_dscli_are_named_and_stop_nobody_else(
        machines, etcd, dscli):
    machines.worker_file(etcd_address=etcd, shared_memory_size_mb=64, cluster_name="twofail")
    file = machines.cluster_file(worker_nodes=["127.0.0.2", "127.0.0.3", "127.0.0.99"])
    hidden = machines.home("127.0.0.3") / "bin/hidden"
    (machines.home("127.0.0.3") / "bin/dscli").rename(hidden)
    try:
        up = dscli(*remote(machines, "up", "-f", file))
    finally:
        hidden.rename(machines.home("127.0.0.3") / "bin/dscli")
    assert up.code == 1
    assert "[ERROR] Node 127.0.0.99 execute failed: ssh: connect to host 127.0.0.99" in up.err
    assert "Connection refused" in up.err
    assert "dscli is not on PATH in a login shell of" in up.err
    assert [w.address.split(":")[0] for w in machines.workers()] == ["127.0.0.2"]


def test_a_key_that_the_nodes_do_not_know_is_the_reason_given(machines, dscli):
    auth = {
        "ssh_private_key": str(machines.folder / "other_key"),
        "ssh_user_name": getpass.getuser()
    }
    down = dscli(*remote(machines, "down", "-f", machines.cluster_file(ssh_auth=auth)))
    assert down.code == 1
    assert down.err.count("Permission denied (publickey)") == 3
    assert "ssh-copy-id" in down.err


def test_a_script_runs_on_every_node_and_is_gone_afterwards(machines, dscli):
    script = dscli.folder / "script.sh"
    script.write_text(
        "echo \"$HOME\"; printf '\\033]0;title\\007\\n'\n"
        "[[ $HOME != *127.0.0.3 ]] || { echo 'not \"me\" $HERE' >&2; exit 3; }\n")
    result = dscli(*remote(machines, "runscript", "-f", machines.cluster_file(), script))
    assert result.code == 1
    # What would steer the terminal is shown instead.
    said = f"  {machines.home('127.0.0.2')}\n  \\x1b]0;title\\x07\n"
    assert f"[INFO] Script executed successfully on 127.0.0.2.\n{said}[INFO]" in result.out
    assert "[INFO] Script executed successfully on 127.0.0.4." in result.out
    assert "[ERROR] Node 127.0.0.3 execute failed: " in result.err
    assert 'not "me" $HERE' in result.err
    assert result.err.splitlines(
    )[-1] == "[ERROR] Run script failed: Some nodes failed during processing"
    assert leftovers(machines) == []


def test_a_node_that_takes_too_long_is_given_up_and_what_ran_there_ends(machines):
    """As `dscli up` with its 300 seconds, but with a limit that a test can wait for."""
    nodes = remote_work.Nodes(cluster_file.load(str(machines.cluster_file())),
                              SimpleNamespace(ssh_config=str(machines.ssh_config)))
    with pytest.raises(CommandError, match="it did not end within 3 seconds"):
        nodes.run("127.0.0.2", "slow", "", "echo $$ >~/slow; while :; do sleep 1; done", limit_s=3)
    pid = int((machines.home("127.0.0.2") / "slow").read_text())
    eventually(lambda: not alive(pid))
    eventually(lambda: leftovers(machines) == [])


def test_a_node_whose_host_key_is_not_known_is_not_trusted(machines, dscli):
    config = machines.folder / "strict_config"
    config.write_text(machines.ssh_config.read_text().replace("accept-new", "yes").replace(
        f"{machines.folder}/known", "/dev/null"))
    down = dscli("down", "--ssh_config", str(config), "-f", str(machines.cluster_file()))
    assert down.code == 1
    assert down.err.count("the host key is not known: connect once by hand") == 3


def test_an_interrupt_ends_what_runs_on_the_nodes_and_says_what_was_done(machines, dscli):
    # The first node is quick; the others hold a file open until they are ended.
    script = dscli.folder / "script.sh"
    script.write_text('[[ $HOME == *127.0.0.2 ]] && exit; echo $$ >~/pid.new; mv ~/pid.new ~/pid\n'
                      "while :; do read -r -t 1 <> <(:); done\n")
    process = dscli.popen(*remote(machines, "runscript", "-f", machines.cluster_file(), script))
    assert process.stdout.readline() == "[INFO] Script executed successfully on 127.0.0.2.\n"
    files = [machines.home(address) / "pid" for address in ADDRESSES[1:]]
    eventually(lambda: all(file.exists() for file in files), 20)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err == ("[ERROR] Run script failed: interrupted; done: 127.0.0.2; failed: none; "
                   "given up: 127.0.0.3, 127.0.0.4\n")
    for file in files:
        pid = int(file.read_text())
        file.unlink()
        eventually(lambda: not alive(pid))
    eventually(lambda: leftovers(machines) == [])


def test_an_interrupted_up_leaves_no_half_started_worker(machines, dscli):
    # No etcd is there: the workers wait for it.
    machines.worker_file(etcd_address=f"127.0.0.1:{free_port()}", shared_memory_size_mb=64)
    process = dscli.popen(*remote(machines, "up", "-f", machines.cluster_file()))
    eventually(lambda: machines.workers() or process.poll() is not None, 20)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 1
    eventually(lambda: machines.workers() == [], 20)
    eventually(lambda: leftovers(machines) == [])


def test_a_log_folder_that_a_node_does_not_have_leaves_nothing_here(machines, dscli):
    result = dscli(*remote(machines, "collect_log", "-f", machines.cluster_file(), "-d",
                           "/tmp/no/such", "-o", "logs"))
    assert result.code == 1
    assert result.err.count("No such file or directory") == 3
    assert result.err.splitlines(
    )[-1] == "[ERROR] Collect log failed: Some nodes failed during processing"
    assert not (dscli.folder / "logs").exists()


def test_numa_options_reach_the_worker_of_each_node(machines, etcd, dscli):
    machines.worker_file(etcd_address=etcd, shared_memory_size_mb=64, cluster_name="numa")
    file = machines.cluster_file(worker_nodes=["127.0.0.2"])
    up = dscli(*remote(machines, "up", "-f", file, "--physcpubind", "0", "-d", machines.folder /
                       "d"))
    assert (up.code, up.err) == (0, "")
    worker = machines.workers()[0]
    assert worker.flags["log_dir"].startswith(f"{machines.folder}/d/")
    assert os.sched_getaffinity(worker.pid) == {0}
