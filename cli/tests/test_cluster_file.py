"""What is wrong in a cluster file is named, all at once, before any node is contacted."""

import json
import subprocess

import pytest


@pytest.fixture
def key(stand_in):
    path = stand_in.folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


@pytest.fixture
def down(stand_in, key):
    """Runs dscli down with a cluster file that differs from a right one."""
    def run(text=None, **changes):
        document = {
            "ssh_auth": {"ssh_private_key": str(key), "ssh_user_name": "somebody"},
            "worker_config_path": "./worker_config.json",
            "worker_nodes": ["127.0.0.99"],
            "worker_port": 31501,
            **changes,
        }
        document = {name: value for name, value in document.items() if value is not None}
        (stand_in.folder / "c.json").write_text(json.dumps(document) if text is None else text)
        result = stand_in("down", "-f", "c.json")
        assert result.code == 1
        assert result.err.startswith("[ERROR] Down cluster failed: ")
        assert result.out == ""  # "Stopping workers on ..." comes after the checks
        return result.err
    return run


@pytest.mark.parametrize("changes, reason", [
    ({"worker_nodes": []}, "must be a list of IP addresses"),
    ({"worker_nodes": "127.0.0.1"}, "must be a list of IP addresses"),
    ({"worker_nodes": ["node-7"]}, "'node-7' is not an IPv4 or IPv6 address"),
    ({"worker_nodes": ["10.0.0.300"]}, "'10.0.0.300' is not an IPv4 or IPv6 address"),
    ({"worker_nodes": ["-oProxyCommand=x"]}, "is not an IPv4 or IPv6 address"),
    ({"worker_nodes": ["10.0.0.1;reboot"]}, "is not an IPv4 or IPv6 address"),
    ({"worker_nodes": ["fe80::1%eth0"]}, "is not an IPv4 or IPv6 address"),
    ({"worker_nodes": ["0.0.0.0"]}, "is not an IPv4 or IPv6 address"),
    ({"worker_nodes": [7]}, "7 is not an IPv4 or IPv6 address"),
    ({"worker_nodes": ["::1", "[0:0::1]"]}, "'[0:0::1]' is there twice"),
    ({"worker_port": 0}, "0 is not a port"),
    ({"worker_port": 65536}, "65536 is not a port"),
    ({"worker_port": True}, "True is not a port"),
    ({"worker_port": "31501x"}, "'31501x' is not a port"),
    ({"worker_port": None}, "missing key 'worker_port'"),
    ({"worker_nods": []}, "unknown key 'worker_nods'; did you mean 'worker_nodes'?"),
    ({"worker_port": "9" * 5000}, "is not a port"),
    ({"worker_config_path": "a;b"}, "command-injection"),
    ({"worker_config_path": "a\0b"}, "worker_config_path: value: input contains"),
    ({"ssh_auth": {"ssh_private_key": "a\ud800", "ssh_user_name": "x"}},
     "ssh_private_key: value: input"),
    ({"worker_config_path": "/etc/x"}, "outside the allowed directory"),
    ({"worker_config_path": 5}, "worker_config_path: must be a text"),
    ({"ssh_auth": "key"}, "ssh_auth must be an object"),
    ({"ssh_auth": {}}, "missing key 'ssh_auth.ssh_private_key'"),
    ({"metastore_head_node": "10.0.0.1"}, "there is no metastore in this version"),
])
def test_a_mistake_is_named(down, changes, reason):
    assert reason in down(**changes)


@pytest.mark.parametrize("user", ["", "-l", "a b", "a;b", "$(id)", 0])
def test_a_user_name_that_ssh_must_not_see_is_refused(down, key, user):
    assert "is not a user name" in down(ssh_auth={
        "ssh_private_key": str(key),
        "ssh_user_name": user
    })


def test_all_mistakes_come_at_once(down):
    err = down(worker_nodes=["node-7", "10.0.0.1", "10.0.0.1"], worker_port=-1, typo=1)
    assert "has 4 mistakes, nothing was done:" in err
    for part in ("node-7", "'10.0.0.1' is there twice", "worker_port", "'typo'"):
        assert part in err


@pytest.mark.parametrize("text, reason", [
    ("{\n  \"ssh_auth\": }", "is not JSON: line 2 column 15"),
    ("[1]", "must hold one JSON object"),
    ('{"worker_port": 1, "worker_port": 2}', "the same key twice in one object: worker_port"),
])
def test_a_file_that_is_no_cluster_file_is_refused(down, text, reason):
    assert reason in down(text)


@pytest.mark.parametrize("name, content, mode, reason", [
    ("absent", None, 0, "cannot read"),
    ("text", "hello", 0o600, "is not a private key of ssh"),
    ("open", None, 0o644, "can be read by others"),
    ("key.pub", None, 0o600, "is a public key"),
])
def test_a_wrong_key_file_is_named(down, key, name, content, mode, reason):
    path = key.parent / name
    if content:
        path.write_text(content)
    elif name == "open":
        path.write_bytes(key.read_bytes())
    if path.exists():
        path.chmod(mode)
    assert reason in down(ssh_auth={"ssh_private_key": str(path), "ssh_user_name": "somebody"})


def test_up_names_the_mistakes_of_the_workers_file_before_it_contacts_a_node(stand_in, key):
    (stand_in.folder / "c.json").write_text(
        json.dumps({
            "ssh_auth": {
                "ssh_private_key": str(key),
                "ssh_user_name": "somebody"
            },
            "worker_nodes": ["127.0.0.99"],
            "worker_config_path": "./w.json",
            "worker_port": 31501
        }))
    (stand_in.folder / "w.json").write_text('{"log_dirs": {"value": "x"}, "log_dir": 1}')
    result = stand_in("up", "-f", "c.json")
    assert "unknown key 'log_dirs'; did you mean 'log_dir'?" in result.err
    assert 'log_dir must be {"value"' in result.err
    assert result.out == ""


def test_up_refuses_several_nodes_that_would_not_find_each_other(stand_in, key):
    (stand_in.folder / "c.json").write_text(
        json.dumps({
            "ssh_auth": {
                "ssh_private_key": str(key),
                "ssh_user_name": "somebody"
            },
            "worker_nodes": ["127.0.0.98", "127.0.0.99"],
            "worker_config_path": "./w.json",
            "worker_port": 31501
        }))
    (stand_in.folder / "w.json").write_text("{}")
    assert "has no etcd_address" in stand_in("up", "-f", "c.json").err
