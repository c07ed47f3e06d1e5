"""Files that dscli generates: complete or absent, and of use to the programs they are for."""

import json
import os
import pty
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from waiting import eventually


@contextmanager
def full_disk(folder, size):
    """A file system of `size` at `folder`."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
                             capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_generated_files_start_a_worker_without_an_edit_but_the_address(real, address):
    folder = real.folder
    result = real("generate_config", "-o", ".")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"[INFO] Cluster configuration file has been generated to {folder}/cluster_config.json",
        f"[INFO] Worker configuration file has been generated to {folder}/worker_config.json",
        "[INFO] Configuration generation completed successfully",
    ]
    cluster = json.loads((real.folder / "cluster_config.json").read_text())
    assert cluster == {
        "ssh_auth": {
            "ssh_private_key": "~/.ssh/id_rsa",
            "ssh_user_name": "root"
        },
        "worker_config_path": "./worker_config.json",
        "worker_nodes": ["127.0.0.1"],
        "worker_port": 31501
    }
    file = real.folder / "worker_config.json"
    worker = json.loads(file.read_text())
    worker["worker_address"]["value"] = address
    worker["shared_memory_size_mb"]["value"] = 64
    file.write_text(json.dumps(worker))
    start = real("start", "-f", "worker_config.json")
    assert (start.code, start.err) == (0, "")
    assert [line for line in start.out.splitlines() if "Modifed" in line] == [
        "[INFO] Modifed config - worker_address", "[INFO] Modifed config - shared_memory_size_mb"]
    # A file that has become wrong elsewhere still stops the worker.
    worker["shared_memory_size_mb"]["value"] = "much"
    file.write_text(json.dumps(worker))
    stop = real("stop", "-f", "worker_config.json")
    assert (stop.code, stop.err) == (0, "")
    assert f"Stop worker service @ {address} normally, PID: {start.pid}" in stop.out


def test_the_worker_names_all_values_it_would_not_take_and_nothing_is_started(real, address):
    (real.folder / "w.json").write_text(
        json.dumps({
            "worker_address": {
                "value": address
            },
            "shared_memory_size_mb": {
                "value": "much"
            },
            "heartbeat_interval_ms": {
                "value": 0
            },
            "enable_rdma": {
                "value": 7
            },
            "shared_memory_size": {
                "value": ""
            }
        }))
    result = real("start", "-f", "w.json")
    assert result.code == 1
    assert "w.json has 4 mistakes, nothing was done:" in result.err
    for part in ("shared_memory_size_mb=much", "heartbeat_interval_ms=0", "enable_rdma=7",
                 "unknown key 'shared_memory_size'; did you mean 'shared_memory_size_mb'?"):
        assert part in result.err
    assert sorted(p.name for p in real.folder.iterdir()) == ["w.json"]


@pytest.mark.parametrize("command, made", [
    (("generate_config",), "worker_config.json"),
    (("generate_systemd",), "datasystem-worker.env"),
])
def test_what_exists_is_not_overwritten(stand_in, command, made):
    (stand_in.folder / made).write_text("mine")
    result = stand_in(*command, "-o", ".")
    assert result.code == 1
    assert f"{made} exists already and is not overwritten" in result.err
    assert [p.name for p in stand_in.folder.iterdir()] == [made]
    assert (stand_in.folder / made).read_text() == "mine"


@pytest.mark.parametrize("command, reason", [
    (("generate_config", "-o", "absent"), "does not exist; make it first"),
    (("generate_config", "-o", "file"), "is not a folder"),
    (("generate_config", "-o", "/etc"), "outside the allowed directory"),
    (("generate_config", "-o", "/sys/fs"), "outside the allowed directory"),
])
def test_a_wrong_output_folder_is_named(stand_in, command, reason):
    (stand_in.folder / "file").write_text("")
    result = stand_in(*command)
    assert result.code == 1
    assert result.err.startswith("[ERROR] Generate config failed: ")
    assert reason in result.err


def test_a_full_disk_leaves_nothing_half_written(stand_in, tmp_path):
    with full_disk(tmp_path / "small", "4k") as folder:
        result = stand_in("generate_systemd", "-o", str(folder))
        assert result.code == 1
        assert "No space left on device; make room there or choose another folder" in result.err
        assert list(folder.iterdir()) == []


def test_a_full_disk_leaves_no_half_project(real, tmp_path):
    with full_disk(tmp_path / "small", "64k") as folder:
        result = real("generate_cpp_template", "-o", str(folder / "deep/er"))
        assert result.code == 1
        assert "No space left on device" in result.err
        assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"),
                    reason="setpriv is not installed")
def test_a_folder_that_is_not_writable_is_named(stand_in, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    folder.chmod(0o555)
    if os.geteuid(
    ) == 0:  # to root every folder is writable, but for the immutable ones: drop the right
        argv = [
            "setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", sys.executable,
            "-m", "yr.datasystem.cli", "generate_systemd", "-o",
            str(folder)
        ]
        result = subprocess.run(argv,
                                env=stand_in._environment,
                                capture_output=True,
                                text=True,
                                check=False)
        assert result.returncode == 1
        assert "Permission denied; choose a folder that you may write to with -o" in result.stderr
    else:
        assert "Permission denied; choose a folder" in stand_in("generate_systemd", "-o",
                                                                str(folder)).err


def test_the_cpp_template_builds_and_runs_against_a_worker(real, address):
    real("start", "-w", "--worker_address", address, "--shared_memory_size_mb", "64")
    result = real("generate_cpp_template", "-o", ".")
    assert (result.code, result.err) == (0, "")
    project = real.folder / "cpp_template"
    assert result.out.splitlines()[0] == f"[INFO] Cpp template generated successfully at: {project}"
    assert sorted(p.name for p in project.iterdir()) == [
        "CMakeLists.txt", "README.md", "include", "kv_cache_example.cpp", "lib", "run.sh"]
    host, port = address.split(":")
    ran = subprocess.run([project / "run.sh", host, port],
                         capture_output=True,
                         text=True,
                         check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("set, got and deleted ")
    assert subprocess.run([project / "run.sh", host], capture_output=True,
                          check=False).returncode == 2
    assert "exists already" in real("generate_cpp_template", "-o", ".").err


@pytest.mark.skipif(not shutil.which("systemd-analyze"),
                    reason="systemd-analyze is not installed (package systemd)")
@pytest.mark.parametrize("options", [(), ("--numa_node", "0", "--user", "root")])
def test_systemd_accepts_the_unit(stand_in, options):
    result = stand_in("generate_systemd", "-o", ".", *options)
    assert (result.code, result.err) == (0, "")
    unit = stand_in.folder / "datasystem-worker.service"
    verified = subprocess.run(["systemd-analyze", "verify", unit],
                              capture_output=True,
                              text=True,
                              check=False)
    complaints = [line for line in verified.stderr.splitlines() if "datasystem-worker" in line]
    assert complaints == []
    assert verified.returncode == 0, verified.stderr
    for line in ("LimitMEMLOCK=infinity", "LimitNOFILE=1048576", "Restart=on-failure",
                 "KillSignal=SIGTERM"):
        assert line in unit.read_text().splitlines()


def test_the_units_commands_run_a_worker_and_end_it(real, address):
    """Its ExecStart and ExecStartPost with paths of the test instead of /run and /var/log."""
    text = real("generate_systemd").out.replace("/run/datasystem", f"{real.folder}/run")
    text = text.replace("/var/log/datasystem", f"{real.folder}/log").replace("\\\n", " ")
    commands = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("Exec"))
    (real.folder / "run").mkdir()
    post = commands["ExecStartPost"].split("'")[1].replace("$$", "$")
    environment = {
        **os.environ, "WORKER_FLAGS": f"--worker_address={address} --shared_memory_size_mb=64"
    }
    worker = subprocess.Popen(["sh", "-c", f"exec {commands['ExecStart']}"], env=environment)
    try:
        subprocess.run(["sh", "-c", post], check=True, timeout=30, env={"MAINPID": str(worker.pid)})
        assert real("status", "-w", address).code == 0
    finally:
        worker.terminate()
        assert worker.wait(30) == 0
    gone = subprocess.run(["sh", "-c", post], check=False, timeout=30, capture_output=True,
                          env={"MAINPID": str(worker.pid)})
    assert gone.returncode == 1  # the start has failed, and at once


def complete_bash(script, *words):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    program = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
        "compopt() { :; }; _dscli; "
        'printf "%s\\n" "${COMPREPLY[@]}"')
    return subprocess.run(["bash", "--norc", "-euc", program],
                          check=True,
                          capture_output=True,
                          text=True,
                          cwd=script.parent).stdout.split()


def test_bash_completes_commands_options_files_and_worker_flags(stand_in):
    script = stand_in.folder / "completion.bash"
    script.write_text(stand_in("completion", "bash").out)
    assert complete_bash(script, "dscli", "st") == ["start", "stop", "status"]
    assert complete_bash(script, "dscli", "start", "--worker_c") == ["--worker_config_path"]
    assert complete_bash(script, "dscli", "start", "-f", "compl") == ["completion.bash"]
    assert complete_bash(script, "dscli", "start", "-w", "--shared") == ["--shared_memory_size_mb"]
    assert complete_bash(script, "dscli", "completion", "z") == ["zsh"]
    assert complete_bash(script, "dscli", "help", "ru") == ["runscript"]
    assert complete_bash(script, "dscli", "runscript", "compl") == ["completion.bash"]


def test_an_interactive_bash_completes(stand_in):
    script = stand_in.folder / "completion.bash"
    script.write_text(stand_in("completion", "bash").out)
    shown = subprocess.run(["bash", "--norc", "-c", f"source {script}; complete -p dscli"],
                           check=True,
                           capture_output=True,
                           text=True).stdout
    assert shown == "complete -F _dscli dscli\n"


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completes_in_a_terminal(stand_in):
    """Types into a zsh of its own pseudo-terminal, and reads what TAB makes of it."""
    functions = stand_in.folder / "functions"
    functions.mkdir()
    (functions / "_dscli").write_text(stand_in("completion", "zsh").out)
    (stand_in.folder / ".zshrc").write_text(
        f"fpath=({functions} $fpath)\nautoload -U compinit\ncompinit -u -D\n"
        "PS1='ready> '\nunsetopt zle_bracketed_paste 2>/dev/null\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(ZDOTDIR=str(stand_in.folder), TERM="dumb")
        os.execvp("zsh", ["zsh", "-i"])
    os.set_blocking(terminal, False)
    seen = b""

    def shows(text):
        nonlocal seen
        try:
            seen += os.read(terminal, 65536)
        except (BlockingIOError, OSError):
            pass
        return text in seen

    try:
        eventually(lambda: shows(b"ready> "), 20)
        os.write(terminal, b"dscli collect\t")
        eventually(lambda: shows(b"collect_log "), 20)
        os.write(terminal, b"--clus\t")
        eventually(lambda: shows(b"--cluster_config_path "), 20)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
