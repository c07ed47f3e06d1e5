"""Three "machines": sshd on 127.0.0.2 to 127.0.0.4, each with a home folder of its own.

They share this machine's processes, but nothing in their homes. A throw-away key opens them.
"""

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from waiting import eventually
from yr.datasystem.cli.processes import running_workers

ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"

_SSHD_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
Subsystem sftp internal-sftp
SetEnv HOME={home}
"""
_PROFILE = """\
export PATH={home}/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={python_path}
export DATASYSTEM_WORKER_BINARY={worker} UCX_TLS=tcp
"""
_DSCLI = """\
#!/bin/bash
exec {python} -m yr.datasystem.cli "$@"
"""


def free_port() -> int:
    """A port that nothing uses on any of the machines."""
    while True:
        probes = []
        try:
            port = 0
            for address in ADDRESSES:
                probes.append(socket.socket())
                probes[-1].bind((address, port))
                port = probes[-1].getsockname()[1]
            return port
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()


def accepts(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0


class Machines:
    def __init__(self, worker: str):
        # Not pytest's folder: the path of a Unix socket has a limit of about 100 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="dscli-"))
        self.ssh_port = free_port()
        self.key = self.folder / "user_key"
        self._processes = []
        for name in ("user_key", "host_key", "other_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name],
                check=True)
        self.ssh_config = self.folder / "ssh_config"
        self.ssh_config.write_text(
            f"Host *\n Port {self.ssh_port}\n UserKnownHostsFile {self.folder}/known\n"
            " StrictHostKeyChecking accept-new\n IdentitiesOnly yes\n")
        try:
            for address in ADDRESSES:
                self._start(address, worker)
        except BaseException:
            self.close()
            raise

    def home(self, address: str) -> Path:
        return self.folder / address

    def cluster_file(self, **changes) -> Path:
        """A cluster file of all machines, whose worker file is beside it."""
        document = {
            "ssh_auth": {"ssh_private_key": str(self.key), "ssh_user_name": getpass.getuser()},
            "worker_config_path": "./worker.json",
            "worker_nodes": list(ADDRESSES),
            "worker_port": free_port(),
            **changes,
        }
        path = self.folder / "cluster.json"
        path.write_text(json.dumps(document))
        return path

    def worker_file(self, **flags) -> None:
        (self.folder / "worker.json").write_text(
            json.dumps({k: {
                "value": v
            }
                        for k, v in flags.items()}))

    def workers(self):
        """Those that run in one of the homes."""
        return [
            w for w in running_workers() if w.flags.get("log_dir", "").startswith(f"{self.folder}/")
        ]

    def close(self) -> None:
        for worker in self.workers():
            os.kill(worker.pid, signal.SIGKILL)
        for process in self._processes:
            process.terminate()
            process.wait()
        shutil.rmtree(self.folder)

    def _start(self, address: str, worker: str) -> None:
        home = self.home(address)
        (home / "bin").mkdir(parents=True)
        (home / "bin/dscli").write_text(_DSCLI.format(python=sys.executable))
        (home / "bin/dscli").chmod(0o755)
        (home / ".profile").write_text(_PROFILE.format(
            home=home, python_path=os.environ["PYTHONPATH"], worker=worker))
        config = self.folder / f"sshd_{address}"
        config.write_text(
            _SSHD_CONFIG.format(port=self.ssh_port, address=address, folder=self.folder, home=home))
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # where sshd's child without rights lives
        log = open(self.folder / f"sshd_{address}.log", "wb")
        with log:
            self._processes.append(subprocess.Popen([SSHD, "-D", "-e", "-f", config], stderr=log))
        eventually(lambda: accepts(address, self.ssh_port))
