"""Runs the pod of a rendered DaemonSet as a kubelet does: variables, volumes, users, capabilities,
init containers, probes and preStop are those of the manifest; only the image is the test's.

What a manifest asks for and this does not know is an error, not a silence.
"""

import base64
import re
from pathlib import Path

from container import Container

# What an engine gives to root when nothing is said.
_DEFAULT_CAPABILITIES = ["chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid",
                         "setpcap", "net_bind_service", "net_raw", "sys_chroot", "mknod",
                         "audit_write", "setfcap"]
_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "k": 1000, "M": 10**6, "G": 10**9}


def quantity(text):
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()
    return int(float(number) * _UNITS[unit])


class KubeletPod:
    """The pod of one of the DaemonSets among `objects`, all that was rendered, on a node.

    `folder` holds what stands for the node's folders; `node` is {"name": ..., "address": ...}.
    """

    def __init__(self, image, objects, folder, node, daemon_set):
        self._image = image
        self._folder = Path(folder)
        self._objects = objects
        self.spec = daemon_set["spec"]["template"]["spec"]
        self._facts = {"metadata.name": "ds-worker-test", "metadata.namespace": "default",
                       "spec.nodeName": node["name"], "status.hostIP": node["address"],
                       "status.podIP": node["address"]}
        self._sources = {volume["name"]: volume for volume in self.spec.get("volumes", [])}
        assert len(self.spec["containers"]) == 1
        self.manifest = self.spec["containers"][0]
        self.container = None
        self._containers = []

    def start(self):
        """Init containers, one after the other, then the container."""
        for manifest in self.spec.get("initContainers", []):
            container = self._launch(manifest)
            assert container.wait(60) == 0, f"{manifest['name']}: {container.output()}"
        self.container = self._launch(self.manifest)
        return self.container

    def probe(self, kind):
        """(exit code, output) of startupProbe, readinessProbe or livenessProbe."""
        return self.container.run(*self._exec(self.manifest[kind]))

    def pre_stop(self):
        """The process of the hook, started."""
        return self.container.start(*self._exec(self.manifest["lifecycle"]["preStop"]))

    def folder_at(self, place):
        """What is mounted there in the container."""
        return self._mounts(self.manifest)[place]

    def run_beside(self, manifest):
        """A further container of the pod's image on this node, to its end: (exit code, output)."""
        container = self._launch(manifest)
        return container.wait(60), container.output()

    def end(self):
        for container in self._containers:
            container.end()

    def environment(self, manifest):
        values = {}
        for row in manifest.get("env", []):
            values[row["name"]] = self._value_of(row, manifest, values)
        return values

    def _launch(self, manifest):
        environment = self.environment(manifest)
        arguments = [_expand(word, environment) for word in manifest.get("args", [])]
        command = [_expand(word, environment) for word in manifest.get("command", [])]
        user, capabilities = self._identity(manifest)
        context = manifest.get("securityContext", {})
        container = Container(self._image, arguments, environment, self._mounts(manifest),
                              command or None, user=user, capabilities=capabilities,
                              read_only=context.get("readOnlyRootFilesystem", False))
        self._containers.append(container)
        return container

    def _value_of(self, row, manifest, earlier):
        if "valueFrom" not in row:
            return _expand(str(row.get("value", "")), earlier)
        source = row["valueFrom"]
        if "fieldRef" in source:
            return self._facts[source["fieldRef"]["fieldPath"]]
        wanted = source["resourceFieldRef"]  # nothing else is known
        kind, name = wanted["resource"].split(".", 1)
        amount = quantity(manifest["resources"][kind][name])
        return str(amount // quantity(wanted.get("divisor", 1)))

    def _mounts(self, manifest):
        # A folder before what is mounted in it.
        rows = sorted(manifest.get("volumeMounts", []), key=lambda row: row["mountPath"])
        return {row["mountPath"]: self._volume(row["name"]) / row.get("subPath", "")
                for row in rows}

    def _volume(self, name):
        source = self._sources[name]
        if "hostPath" in source:
            path = source["hostPath"]["path"]
            if path == "/etc/localtime":
                return Path(path)
            return _made(self._folder / "host" / path.lstrip("/"))
        if "emptyDir" in source:
            return _made(self._folder / "empty" / name, 0o777)
        folder = _made(self._folder / "data" / name)
        if "configMap" in source:
            texts = self._object("ConfigMap", source["configMap"]["name"])["data"]
            files = {key: text.encode() for key, text in texts.items()}
        else:
            secret = self._object("Secret", source["secret"]["secretName"])
            files = {key: base64.b64decode(text) for key, text in secret["data"].items()}
        for key, content in files.items():
            (folder / key).write_bytes(content)
        return folder

    def _object(self, kind, name):
        return next(item for item in self._objects
                    if item["kind"] == kind and item["metadata"]["name"] == name)

    def _identity(self, manifest):
        """(user, capabilities); None for those of a privileged container."""
        context = {**self.spec.get("securityContext", {}), **manifest.get("securityContext", {})}
        image_uid, image_gid = self._image.user.split(":")
        uid = context.get("runAsUser", image_uid)
        gid = context.get("runAsGroup", image_gid if str(uid) == image_uid else 0)
        assert not (context.get("runAsNonRoot") and str(uid) == "0"), "refused by a kubelet"
        if context.get("privileged"):
            return f"{uid}:{gid}", None
        capabilities = context.get("capabilities", {})
        dropped = [name.lower() for name in capabilities.get("drop", [])]
        kept = [] if "all" in dropped else [name for name in _DEFAULT_CAPABILITIES
                                            if name not in dropped]
        kept += [name.lower() for name in capabilities.get("add", [])]
        # Kubernetes gives none of them to a process that is not root.
        return f"{uid}:{gid}", kept if str(uid) == "0" else []

    @staticmethod
    def _exec(handler):
        return handler["exec"]["command"]


def _expand(text, values):
    """$(NAME) of a name that is known, as Kubernetes has it."""
    return re.sub(r"\$\((\w+)\)", lambda match: values.get(match.group(1), match.group(0)), text)


def _made(folder, mode=0o755):
    """Of root, as a kubelet makes it: an init container has to hand it over."""
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(mode)
    return folder
