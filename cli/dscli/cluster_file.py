"""The cluster file of up, down, runscript and collect_log: which nodes, and how to log in to them.

It is checked completely, and every mistake named, before the first node is contacted.
"""

import ipaddress
import os
import re
import stat
from dataclasses import dataclass
from typing import Any, Dict, List

from . import json_file
from .console import CommandError
from .validation import check_argument, checked_path

_KEYS = ("ssh_auth", "worker_config_path", "worker_nodes", "worker_port")
_SSH_KEYS = ("ssh_private_key", "ssh_user_name")
_USER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_NODES_MAX = 10000

DEFAULTS: Dict[str, Any] = {
    "ssh_auth": {"ssh_private_key": "~/.ssh/id_rsa", "ssh_user_name": "root"},
    "worker_config_path": "./worker_config.json",
    "worker_nodes": ["127.0.0.1"],
    "worker_port": 31501,
}


@dataclass(frozen=True)
class Cluster:
    private_key: str
    user: str
    worker_config_path: str  # absolute; it may not exist
    nodes: List[str]  # IP addresses without brackets
    port: int

    def address(self, node: str) -> str:
        return f"[{node}]:{self.port}" if ":" in node else f"{node}:{self.port}"


def load(path: str) -> Cluster:
    document = json_file.load_object(path)
    mistakes: List[str] = []
    known = (*_KEYS, "metastore_head_node")
    mistakes += [json_file.unknown_key(name, known) for name in document if name not in known]
    if document.get("metastore_head_node"):
        mistakes.append(
            "metastore_head_node: there is no metastore in this version; leave it empty "
            "and give etcd_address in the worker's file")
    mistakes += [f"missing key {name!r}" for name in _KEYS if name not in document]
    auth = document.get("ssh_auth", DEFAULTS["ssh_auth"])
    if not isinstance(auth, dict):
        mistakes.append("ssh_auth must be an object with ssh_private_key and ssh_user_name")
        auth = DEFAULTS["ssh_auth"]
    mistakes += [f"ssh_auth: {json_file.unknown_key(name, _SSH_KEYS)}" for name in auth
                 if name not in _SSH_KEYS]
    mistakes += [f"missing key 'ssh_auth.{name}'" for name in _SSH_KEYS if name not in auth]

    def checked(check, name: str, holder: Dict[str, Any]) -> Any:
        if name not in holder:
            return None  # named above
        try:
            return check(holder[name])
        except CommandError as reason:
            mistakes.append(f"{name}: {reason}")
            return None

    folder = os.path.dirname(os.path.abspath(path))
    cluster = Cluster(
        private_key=checked(_private_key, "ssh_private_key", auth),
        user=checked(_user, "ssh_user_name", auth),
        worker_config_path=checked(lambda value: _config_path(value, folder), "worker_config_path",
                                   document),
        nodes=_nodes(document.get("worker_nodes", ["127.0.0.1"]), mistakes),
        port=checked(_port, "worker_port", document))
    json_file.refuse(path, mistakes)
    return cluster


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise CommandError("must be a text that is not empty")
    check_argument("value", value)
    return value


def _private_key(value: Any) -> str:
    path = os.path.abspath(os.path.expanduser(_text(value)))
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            beginning = file.read(64)
    except OSError as reason:
        raise CommandError(f"cannot read {path}: {reason.strerror}; "
                           "ssh-keygen makes a key, ssh-copy-id gives it to a node") from reason
    if beginning.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        raise CommandError(f"{path} is a public key; name the private one, usually without .pub")
    if not re.match(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----", beginning):
        raise CommandError(f"{path} is not a private key of ssh")
    if stat.S_IMODE(mode) & 0o077:
        raise CommandError(f"{path} can be read by others, which ssh refuses; chmod 600 it")
    return path


def _user(value: Any) -> str:
    if not isinstance(value, str) or not _USER_NAME.fullmatch(value):
        raise CommandError(f"{value!r} is not a user name")
    return value


def _config_path(value: Any, folder: str) -> str:
    """A relative path is meant from the cluster file: both are usually moved together."""
    return checked_path(os.path.join(folder, os.path.expanduser(_text(value))))


def _port(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,5}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise CommandError(f"{value!r} is not a port between 1 and 65535")
    return value


def _nodes(value: Any, mistakes: List[str]) -> List[str]:
    if not isinstance(value, list) or not value:
        mistakes.append(
            'worker_nodes must be a list of IP addresses, e.g. ["10.0.0.7", "10.0.0.8"]')
        return []
    if len(value) > _NODES_MAX:
        mistakes.append(f"worker_nodes: more than {_NODES_MAX} nodes")
        return []
    nodes: List[str] = []
    for item in value:
        try:
            if not isinstance(item, str) or "%" in item:
                raise ValueError
            bare = item[1:-1] if item.startswith("[") and item.endswith("]") else item
            address = ipaddress.ip_address(bare)
            if address.is_unspecified or address.is_multicast:
                raise ValueError
        except ValueError:
            mistakes.append(f"worker_nodes: {item!r} is not an IPv4 or IPv6 address of a node (the "
                            "worker announces it, so a host name will not do)")
            continue
        if str(address) in nodes:
            mistakes.append(f"worker_nodes: {item!r} is there twice")
        nodes.append(str(address))
    return nodes
