"""What operators change and watch while a worker runs: live flags, probes, the status file."""

import os
import signal
import stat
import subprocess
from pathlib import Path

from cluster import wait_until
from yr.datasystem.cli.package import worker_binary

_LOOK_S = 30  # monitor_config_file is looked at every 10 s


def _replace(path, text):
    scratch = path.with_name("new")
    scratch.write_text(text)
    scratch.rename(path)


def test_flags_change_while_the_worker_runs(cluster):
    live = cluster.folder / "live"
    live.write_text("--minloglevel=0 --heartbeat_interval_ms=700")
    worker, = cluster.start(monitor_config_file=live, node_timeout_s=5)
    assert f"flag heartbeat_interval_ms=700 by {live}" in worker.log()

    _replace(live, "--v=1\n--shared_memory_size_mb=5\n--obs_secret_key=hunter2 --heartbeat_interval_ms=300")
    wait_until(lambda: f"flag v=1 by {live}" in worker.log(), _LOOK_S, "the new file")
    log = worker.log()
    assert f"monitor_config_file {live}: line 2: --shared_memory_size_mb cannot change" in log
    assert "hunter2" not in log
    worker.client().set("key", b"value")
    wait_until(lambda: " | D | " in worker.log(), what="lines of a single connection")

    live.unlink()
    os.mkfifo(live)
    wait_until(lambda: "is no regular file" in worker.log(), _LOOK_S, "the refusal of a pipe")
    assert worker.client().get(["key"]) == [b"value"]
    assert worker.stop() == 0


def test_the_liveness_file_grows_old_while_the_process_is_stopped(cluster):
    probes = cluster.folder / "probe"
    liveness = probes / "liveness"
    worker, = cluster.start(liveness_check_path=liveness, health_check_path=probes / "health",
                            liveness_probe_timeout_s=1)
    wait_until(liveness.exists, what="the liveness file")
    assert stat.S_IMODE(probes.stat().st_mode) == 0o700
    assert stat.S_IMODE((probes / "health").stat().st_mode) == 0o600
    assert (probes / "health").read_text() == "health check success\n"
    assert liveness.read_text() == "liveness check success\n"
    seen = liveness.stat().st_mtime_ns
    wait_until(lambda: liveness.stat().st_mtime_ns > seen, what="another beat")

    worker.kill(signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{worker.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T",
               what="the stop of all threads")
    stopped_at = liveness.stat().st_mtime_ns
    # Longer than the timeout: `now` is the file system's clock.
    def age_s():
        (cluster.folder / "now").write_text("")
        return ((cluster.folder / "now").stat().st_mtime_ns - stopped_at) / 1e9
    wait_until(lambda: age_s() > 1.5, what="an age above the timeout")
    assert liveness.stat().st_mtime_ns == stopped_at
    worker.kill(signal.SIGCONT)
    wait_until(lambda: liveness.stat().st_mtime_ns > stopped_at, what="a beat after the stop")
    assert liveness.read_text() == "liveness check success\n"
    assert worker.stop() == 0
    assert not liveness.exists() and not (probes / "health").exists()


def test_the_status_file_says_when_the_worker_may_be_killed(cluster):
    status = cluster.folder / "worker-status"
    status.write_text("worker_stop_status:ready\n")
    worker, = cluster.start(environment={"STATUS_FILE_PATH": str(status)})
    assert not status.exists(), "the file of an earlier life would end the wait of the next exit at once"
    status.write_text("voluntary scale in\n")
    assert worker.stop() == 0
    assert status.read_text() == "worker_stop_status:ready\n"


def test_secrets_do_not_stay_in_the_command_line(cluster):
    worker, = cluster.start(obs_secret_key="hunter2", obs_access_key="hunter3")
    assert b"hunter" not in Path(f"/proc/{worker.pid}/cmdline").read_bytes()
    assert "hunter" not in worker.log() and "obs_secret_key=xxx" in worker.log()


def test_a_check_of_flags_names_every_mistake_and_starts_nothing(folder):
    def check(*flags):
        return subprocess.run([worker_binary(), "--check_flags", f"--log_dir={folder}/log", *flags],
                              capture_output=True, text=True, timeout=60)
    good = check("--worker_address=127.0.0.1:1")
    assert (good.returncode, good.stdout, good.stderr) == (0, "", "")
    bad = check("--v=9", "--worker_adress=127.0.0.1:1")
    assert bad.returncode == 1
    assert bad.stderr.splitlines() == ["--v=9 is not allowed; allowed: 0 to 3",
                                       "unknown flag --worker_adress; did you mean --worker_address?"]
    assert not (folder / "log").exists()
