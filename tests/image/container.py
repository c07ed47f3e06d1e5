"""Processes in the image's root file system, as an engine would run them: own mounts and own
process numbers, the image's user without a capability, the host's network (as the chart has it)."""

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from cluster import wait_until

# Mounts are the process's own, so that they end with it.
# Arguments: build (changes stay in the image), own (they are the container's own and end with it) or
# ro (there are none), root, source and target of each volume, --, command.
_MOUNTS = r"""
set -e
mode=$1 root=$2; shift 2
if [ "$mode" = build ]; then
  mount --bind "$root" "$root"
else
  mount -t tmpfs layer /mnt
  mkdir /mnt/upper /mnt/work
  mount -t overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" image "$root"
fi
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for name in null zero full random urandom; do
  touch "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/1 "$root/dev/stdout"; ln -s fd/2 "$root/dev/stderr"
mkdir -m 1777 "$root/dev/shm"
while [ "$1" != -- ]; do
  # /var/run is a link to /run: to the one inside.
  target=$root$(chroot "$root" realpath -m "$2")
  if [ -d "$1" ]; then mkdir -p "$target"; else mkdir -p "$(dirname "$target")"; touch "$target"; fi
  mount --bind "$1" "$target"
  shift 2
done
shift
[ "$mode" != ro ] || mount -o remount,bind,ro "$root"
exec chroot "$root" "$@"
"""


def enter(root, command, volumes=None, mode="build"):
    """The command line that runs `command` in `root` with {target: source} mounted there."""
    places = [place for target, source in (volumes or {}).items() for place in (source, target)]
    return ["/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child",
            "--propagation", "private", "/bin/sh", "-c", _MOUNTS, "sh",
            *map(str, [mode, root, *places, "--", *command])]


def as_user(user, folder, capabilities=()):
    """In front of a command inside: these capabilities, and no others to get; None: all."""
    uid, gid = user.split(":")
    identity = ["/usr/bin/env", "-C", folder, "/usr/bin/setpriv", "--reuid", uid, "--regid", gid,
                "--clear-groups"]
    if capabilities is None:
        return identity
    return [*identity, "--no-new-privs", "--inh-caps=-all",
            "--bounding-set=" + ",".join(["-all", *("+" + name for name in capabilities)])]


def _children(pid):
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except (FileNotFoundError, ProcessLookupError):
        return []  # it has just ended


class Container:
    """One life of a container. `volumes` is {folder inside: folder outside}; `environment` adds to
    the image's, `command` is in place of its entry point, `user` in place of its user."""

    def __init__(self, image, arguments, environment=None, volumes=None, command=None, user=None,
                 capabilities=(), read_only=False, memlock_bytes=None):
        self._root = image.root
        self._prefix = as_user(user or image.user, image.folder, capabilities)
        self._environment = {"HOME": "/home/yuanrong", **image.environment, **(environment or {})}
        self._output = tempfile.TemporaryFile()
        limit = [] if memlock_bytes is None else ["/usr/bin/prlimit", f"--memlock={memlock_bytes}"]
        inside = [*self._prefix, *(command or image.entrypoint), *arguments]
        entering = enter(image.root, inside, volumes, "ro" if read_only else "own")
        self.process = subprocess.Popen(
            [*limit, *entering], env=self._environment,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
            # A suite that runs in the background of a shell ignores SIGINT; no engine hands that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def output(self):
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def main_pid(self):
        """Of the container's process 1, as the host numbers it, once it is in its root."""
        def inside():
            assert self.process.poll() is None, f"the container has ended: {self.output()}"
            for pid in _children(self.process.pid):
                if os.readlink(f"/proc/{pid}/root") == str(self._root):
                    return pid
            return None
        return wait_until(inside, 30, "the container's process 1")

    def worker_pid(self):
        """None as long as there is no worker."""
        for pid in _children(self.main_pid()):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "datasystem_work":
                return pid
        return None

    def start(self, *command):
        """A further process inside, like a probe or `kubectl exec`."""
        return subprocess.Popen(
            ["/usr/bin/nsenter", "--target", str(self.main_pid()), "--mount", "--pid", "--root",
             "--wd", *self._prefix, *map(str, command)], env=self._environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, *command, deadline_s=60):
        """(exit code, output)"""
        process = self.start(*command)
        output, _ = process.communicate(timeout=deadline_s)
        return process.returncode, output

    def signal_worker(self, number):
        os.kill(self.worker_pid(), number)

    def stop(self, number=signal.SIGTERM, deadline_s=30):
        """The signal to process 1, as an engine does; the exit code."""
        os.kill(self.main_pid(), number)
        return self.process.wait(deadline_s)

    def wait(self, deadline_s=30):
        return self.process.wait(deadline_s)

    def end(self):
        if self.process.poll() is None:
            # Process 1 has changed its user, and thereby forgotten to end with its parent. All others
            # inside end with it.
            for pid in _children(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        self._output.close()
