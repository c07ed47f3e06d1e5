"""What outlives a container: folders of the host, an address."""

import os

from cluster import free_port, wait_until
from container import Container

HOME = "/home/yuanrong"
HEALTH = f"{HOME}/datasystem/health"
LOGS = f"{HOME}/datasystem/logs"
READINESS = [f"{HOME}/file_check.sh", "readinessProbe", f"{HEALTH}/healthy", f"{HEALTH}/ready"]


class Pod:
    """Containers with the same folders of the host, which a container that ends leaves behind."""

    def __init__(self, image, folder):
        self._image = image
        self._folder = folder
        self._containers = []
        self.port = free_port("127.0.0.1")
        self.address = f"127.0.0.1:{self.port}"
        self.volumes = {path: self.folder(name) for path, name in
                        ((LOGS, "logs"), (HEALTH, "health"), ("/home/uds", "uds"))}
        self.status_file = self.volumes[LOGS] / "worker-status"

    def folder(self, name):
        """One that the image's user may write."""
        path = self._folder / name
        path.mkdir()
        os.chown(path, 1002, 1002)
        return path

    def folder_of(self, name):
        return self._folder / name

    def run_image(self, *arguments, volumes=None, command=None, memlock_bytes=None, **environment):
        """A container with just these arguments for the entry script."""
        environment = {name: str(value) for name, value in environment.items()}
        container = Container(self._image, arguments, environment,
                              {**self.volumes, **(volumes or {})}, command,
                              memlock_bytes=memlock_bytes)
        self._containers.append(container)
        return container

    def launch(self, *flags, **options):
        """A container with a worker at this pod's address; whether it starts, the caller sees."""
        own = [f"-worker_address={self.address}", "-unix_domain_socket_dir=/home/uds"]
        if "SHARE_MEMORY_SIZE" not in options:
            own.append("-shared_memory_size_mb=64")
        return self.run_image(*own, *flags, **options)

    def start(self, *flags, **options):
        """A container whose readiness probe is green."""
        container = self.launch(*flags, **options)
        wait_until(lambda: container.run(*READINESS)[0] == 0, 60, "readiness")
        return container

    def refused(self, *flags, **options):
        """What a container says that must not start."""
        container = self.launch(*flags, **options)
        assert container.wait(30) == 1, container.output()
        assert not list(self.volumes[LOGS].glob("worker/*.INFO.log")), "the worker was started"
        return container.output()

    def scripts_log(self):
        return (self.volumes[LOGS] / "worker" / "container.log").read_text()

    def end(self):
        for container in self._containers:
            container.end()
