import json
import os
import signal
import time
from pathlib import Path

import pytest

from waiting import alive, eventually


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_start_prints_the_three_lines_and_leaves_a_detached_worker(stand_in, address):
    result = stand_in("start", "-w", "--worker_address", address, "--etcd_address", "127.0.0.1:2379")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"[INFO] Log directory configured at: {stand_in.folder}/datasystem/logs",
        f"[INFO] Starting worker service with PID: {result.pid}",
        f"[INFO] [  OK  ] Start worker service @ {address} success, PID: {result.pid}",
    ]
    assert os.getsid(result.pid) == result.pid
    assert (stand_in.folder / "datasystem/logs/datasystem_worker.out").read_text() == "started\n"


def test_start_returns_as_soon_as_the_worker_is_ready(stand_in, address):
    begin = time.monotonic()
    assert stand_in("start", "-w", "--worker_address", address).code == 0
    assert time.monotonic() - begin < 5  # a wait in steps of seconds would show


def test_without_etcd_one_line_says_that_it_is_a_single_node_cluster(stand_in, address):
    result = stand_in("start", "-w", "--worker_address", address)
    assert result.code == 0
    assert len([line for line in result.out.splitlines() if "single-node" in line]) == 1


def test_shipped_defaults_fill_in_what_was_not_given_and_empty_ones_are_not_passed(stand_in, address):
    result = stand_in("start", "-w", "--worker_address", address, "--enable_rdma=true")
    arguments = command_line(result.pid)
    assert f"--worker_address={address}" in arguments
    assert "--enable_rdma=true" in arguments
    assert "--shared_memory_size_mb=1024" in arguments
    assert f"--unix_domain_socket_dir={stand_in.folder}/datasystem/uds" in arguments
    assert not [a for a in arguments if a.startswith(("--etcd_address", "--log_filename"))]


def test_the_home_folder_takes_the_place_of_the_current_one(stand_in, address, tmp_path):
    result = stand_in("start", "-d", str(tmp_path / "elsewhere"), "-w", "--worker_address", address)
    assert result.code == 0
    assert f"--log_dir={tmp_path}/elsewhere/datasystem/logs" in command_line(result.pid)
    assert files_below(stand_in.folder) == []


def test_files_of_the_worker_are_readable_by_its_user_only(stand_in, address):
    stand_in("start", "-w", "--worker_address", address)
    assert (stand_in.folder / "datasystem/logs").stat().st_mode & 0o077 == 0
    assert (stand_in.folder / "datasystem/probe/ready").stat().st_mode & 0o077 == 0


def test_a_config_file_starts_the_worker_and_names_what_it_changes(stand_in, address):
    file = stand_in.folder / "worker_config.json"
    file.write_text(json.dumps({
        "worker_address": {"value": address, "description": "any"},
        "shared_memory_size_mb": {"value": 2048},
        "log_dir": {"value": "./mine"},
        "etcd_address": {"value": ""},
        "ready_check_path": {"value": "./datasystem/probe/ready"},
    }))
    result = stand_in("start", "-d", str(stand_in.folder / "d"), "-f", str(file))
    assert result.code == 0
    assert [line for line in result.out.splitlines() if "Modifed" in line] == [
        "[INFO] Modifed config - worker_address",
        "[INFO] Modifed config - shared_memory_size_mb",
        "[INFO] Modifed config - log_dir",
    ]
    arguments = command_line(result.pid)
    assert "--shared_memory_size_mb=2048" in arguments
    assert f"--log_dir={stand_in.folder}/mine" in arguments  # a path of the user: not below -d
    assert f"--ready_check_path={stand_in.folder}/d/datasystem/probe/ready" in arguments


def test_a_worker_that_exits_fails_the_start_at_once_with_its_own_reason(stand_in, address):
    begin = time.monotonic()
    result = stand_in("start", "-w", "--worker_address", address, "--stand_in", "refuse")
    assert time.monotonic() - begin < 5
    assert result.code == 1
    assert result.err.splitlines() == [
        "[ERROR] [  FAILED  ] Worker exited with code 255",
        " output: a warning of a library",
        "cannot listen on port 31501: address in use",
        "(--help explains every flag)",
        f"[ERROR] [  FAILED  ] Start worker service @ {address} failed: "
        "cannot listen on port 31501: address in use",
        "[ERROR] Start failed: The worker service exited abnormally",
    ]
    assert files_below(stand_in.folder) == []


def test_a_worker_that_does_not_become_ready_is_killed(stand_in, address):
    result = stand_in("start", "-t", "0.5", "-w", "--worker_address", address, "--stand_in", "silent")
    assert result.code == 1
    lines = result.err.splitlines()
    assert lines[0] == "[ERROR] [  FAILED  ] Worker service is not ready within 0.5 seconds"
    assert lines[-2].startswith(f"[ERROR] [  FAILED  ] Start worker service @ {address} failed: ")
    assert lines[-1] == "[ERROR] Start failed: The worker service exited abnormally"
    pid = int(result.out.splitlines()[-1].split()[-1])
    assert not alive(pid)
    assert files_below(stand_in.folder) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_leaves_nothing_behind(stand_in, address, how):
    process = stand_in.popen("start", "-w", "--worker_address", address, "--stand_in", "silent")
    pid = None
    while pid is None:
        line = process.stdout.readline()
        assert line
        if "with PID" in line:
            pid = int(line.split()[-1])
    process.send_signal(how)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err == "[ERROR] Start failed: interrupted\n"
    assert not alive(pid)
    assert files_below(stand_in.folder) == []


def test_what_a_running_worker_says_later_still_lands_in_its_log_folder(stand_in, address):
    result = stand_in("start", "-w", "--worker_address", address)
    target = os.readlink(f"/proc/{result.pid}/fd/2")
    assert target == f"{stand_in.folder}/datasystem/logs/datasystem_worker.out"


def test_a_second_worker_of_one_folder_does_not_share_files_with_the_first(stand_in):
    first = stand_in("start", "-w", "--worker_address", "127.0.0.1:31988")
    second = stand_in("start", "-w", "--worker_address", "127.0.0.2:31988")
    assert (first.code, second.code) == (0, 0)
    assert (stand_in.folder / "datasystem/probe/ready").exists()
    assert (stand_in.folder / "127.0.0.2_31988/datasystem/probe/ready").exists()


def test_a_ready_file_of_a_running_worker_is_not_taken_away(stand_in):
    ready = str(stand_in.folder / "ready")
    first = stand_in("start", "-w", "--worker_address", "127.0.0.1:31988", "--ready_check_path", ready)
    second = stand_in("start", "-w", "--worker_address", "127.0.0.2:31988", "--ready_check_path", ready)
    assert second.code == 1
    assert f"belongs to the running worker @ 127.0.0.1:31988, PID: {first.pid}" in second.err
    assert os.path.exists(ready)


def test_the_same_address_twice_is_refused_with_the_running_ones_pid(stand_in, address):
    first = stand_in("start", "-w", "--worker_address", address)
    second = stand_in("start", "-w", "--worker_address", address)
    assert second.code == 1
    assert second.err == (f"[ERROR] Start failed: a worker @ {address} runs already, PID: {first.pid}; "
                          f"end it with: dscli stop -w {address}\n")


def test_a_ready_file_of_an_earlier_worker_is_not_taken_for_readiness(stand_in, address):
    ready = stand_in.folder / "datasystem/probe/ready"
    ready.parent.mkdir(parents=True)
    ready.write_text("old")
    result = stand_in("start", "-t", "0.3", "-w", "--worker_address", address, "--stand_in", "silent")
    assert result.code == 1


@pytest.mark.parametrize("arguments, reason", [
    (("-w", "--worker_address"), "Param worker_address is missing a value"),
    (("-w", "--worker_address", "--x", "1"), "Param worker_address is missing a value"),
    (("-w", "127.0.0.1:1"), "No parameter name specified: 127.0.0.1:1"),
    (("-w",), "no worker flags after -w"),
    (("-w", "--worker_address", "127.0.0.1"), "is not an address"),
    (("-w", "--worker_address", "127.0.0.1:65536"), "is not an address"),
    (("-w", "--worker_address", "300.0.0.1:1"), "is not an address"),
    (("-w", "--log_dir", "a;b"), "potential command-injection characters: ';'"),
    (("-w", "--log_dir=$(x)"), "potential command-injection characters"),
    (("-w", "--worker_address", "127.0.0.1:1", "-l"), "NUMA options must come before -w/--worker_args: -l"),
    (("-w", "--x", "1", "--membind=0"), "NUMA options must come before -w/--worker_args: --membind=0"),
    (("-N", "0;1", "-w", "--x", "1"), "potential command-injection characters"),
    (("-d", "/etc/x", "-w", "--x", "1"), "outside the allowed directory"),
    (("-w", "--ready_check_path", "/proc/x"), "outside the allowed directory"),
    (("-w", "--ready_check_path", ""), "ready_check_path must not be empty"),
    (("-f", "missing.json"), "missing.json: No such file"),
    (("-f", "/etc/passwd"), "outside the allowed directory"),
])
def test_bad_input_is_refused_before_anything_is_started(stand_in, arguments, reason):
    result = stand_in("start", *arguments)
    assert result.code == 1
    assert reason in result.err
    assert result.err.startswith("[ERROR] Start failed: ")
    assert "PID" not in result.out
    assert files_below(stand_in.folder) == []


@pytest.mark.parametrize("text, reason", [
    ("{", "is not JSON: line 1 column 2"),
    ('{\n  "worker_address": {"value": "127.0.0.1:1",}\n}', "is not JSON: line 2 column"),
    ('{"log_dir": {"value": ""}, "log_dir": {"value": "x"}}', "the same key twice in one object: log_dir"),
    ('{"log_dirs": {"value": ""}}', "unknown key 'log_dirs'; did you mean 'log_dir'?"),
    ('{"log_dir": {"value": "a;b"}}', "log_dir: input contains potential command-injection"),
    ('{"log_dir": {"value": "a\\u0000b"}}', "command-injection characters: '\\x00'"),
    ('{"log_dir": {"value": "\\u001b[31m"}}', "command-injection characters: '\\x1b'"),
    ('{"log_dir": {"value": "\\ud800"}}', "command-injection characters: '\\ud800'"),
    ('{"log_dir": ' + "1" * 5000 + "}", "digits"),
    ('{"log_dir": {"vaule": "x"}}', "log_dir: unknown key 'vaule'; did you mean 'value'?"),
    ("[" * 100000, "nested"),
    ("[]", "must hold one JSON object"),
    ('{"worker_address": "127.0.0.1:1"}', 'worker_address must be {"value"'),
    ('{"worker_address": {"value": ["127.0.0.1:1"]}}', 'worker_address must be {"value"'),
])
def test_a_malformed_config_file_is_refused(stand_in, text, reason):
    (stand_in.folder / "c.json").write_text(text)
    result = stand_in("start", "-f", "c.json")
    assert result.code == 1
    assert result.err.startswith("[ERROR] Start failed: ")
    assert reason in result.err


@pytest.mark.parametrize("arguments", [
    (), ("-w", "--x", "1", "-f", "y")[2:], ("--time", "5", "-w", "--x", "1"),
    ("-t", "0", "-w", "--x", "1"), ("-t", "soon", "-w", "--x", "1"), ("-f", "a", "-w", "--x", "1"),
])
def test_bad_usage_exits_with_2(stand_in, arguments):
    result = stand_in("start", *arguments)
    assert result.code == 2
    assert "usage: dscli" in result.err


def test_numa_options_run_the_worker_under_numactl(stand_in, address):
    result = stand_in("start", "--cpunodebind", "0", "-l", "-w", "--worker_address", address)
    assert result.code == 0
    shown = [line for line in result.out.splitlines() if "Command: " in line]
    assert "numactl --cpunodebind=0 --localalloc" in shown[0]
    eventually(lambda: command_line(result.pid)[0].endswith("datasystem_worker"))


def test_without_numactl_numa_options_are_refused(stand_in, address, monkeypatch):
    stand_in._environment["PATH"] = "/nowhere"
    result = stand_in("start", "-N", "0", "-w", "--worker_address", address)
    assert result.code == 1
    assert "numactl" in result.err
