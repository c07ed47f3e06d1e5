import pytest

from yr.datasystem.cli import report_table, validation
from yr.datasystem.cli.console import CommandError
from yr.datasystem.cli.worker_flags import parse_tokens


@pytest.mark.parametrize("arguments", [(), ("help",), ("-h",)])
def test_help_teaches_with_examples(stand_in, arguments):
    result = stand_in(*arguments)
    assert (result.code, result.err) == (0, "")
    assert "dscli start -w --worker_address" in result.out


def test_help_of_one_command(stand_in):
    assert "--etcd_address" in stand_in("help", "start").out
    assert stand_in("help", "dance").code == 2


def test_version_is_one_line(stand_in):
    result = stand_in("--version")
    assert result.code == 0
    assert result.out.startswith("dscli (")
    assert result.out.count("\n") == 1


@pytest.mark.parametrize("arguments", [("--nope",), ("dance",), ("--vers",), ("stop",)])
def test_bad_usage_shows_the_usage_and_exits_with_2(stand_in, arguments):
    result = stand_in(*arguments)
    assert result.code == 2
    assert result.err.startswith("usage: dscli")


def test_no_colours_where_there_is_no_terminal(stand_in):
    assert "\033" not in stand_in("stop", "-w", "x").err


def test_a_path_that_the_terminal_cannot_show_is_printed_escaped(stand_in):
    stand_in._environment["PYTHONIOENCODING"] = "ascii"
    (stand_in.folder / "gr\u00fcn\x1b[31m").mkdir()
    result = stand_in("generate_config", "-o", "gr\u00fcn\x1b[31m")
    assert (result.code, result.err) == (0, "")
    assert r"/gr\xfcn\x1b[31m/worker_config.json" in result.out


def test_status_without_a_worker_says_how_to_name_one(stand_in):
    result = stand_in("status", "-w", "nowhere")
    assert result.code == 1
    assert "is not an address" in result.err


def test_a_missing_worker_binary_is_named(stand_in):
    stand_in._environment["DATASYSTEM_WORKER_BINARY"] = "/tmp/no/such/worker"
    result = stand_in("start", "-w", "--x", "1")
    assert result.code == 1
    assert "no worker at /tmp/no/such/worker" in result.err


def test_tokens_are_taken_in_both_forms():
    assert parse_tokens(["--a", "1", "--b=2", "--c", "-3", "--d="]) == {
        "a": "1", "b": "2", "c": "-3", "d": ""}


@pytest.mark.parametrize("address", ["0.0.0.0:0", "10.0.0.7:65535", "[::1]:31501", "[fe80::1]:1"])
def test_addresses_are_accepted(address):
    validation.check_address("worker_address", address)


@pytest.mark.parametrize("address", ["", ":1", "1.2.3:4", "::1:31501", "[1.2.3.4]:5", "1.2.3.4:99999",
                                     "1.2.3.4:-1", "host:1", "1.2.3.4:5 ", "[::g]:1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(CommandError):
        validation.check_address("worker_address", address)


@pytest.mark.parametrize("path", ["/", "/etc", "/etc/x", "/tmp/../proc/1", "/dev/shm/x", "/bin/ls"])
def test_system_folders_are_refused(path):
    with pytest.raises(CommandError, match="outside the allowed directory"):
        validation.checked_path(path)


def test_other_folders_are_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert validation.checked_path("a/../b") == str(tmp_path / "b")
    assert validation.checked_path("/opt/etc") == "/opt/etc"


def test_a_report_becomes_sections_and_tables_with_the_most_wanted_first():
    text = report_table.render({
        "address": "10.0.0.1:1",
        "cluster": {"members": [{"address": "10.0.0.1:1"}, {"address": "10.0.0.2:1"}], "epoch": 7},
        "memory": {"size_bytes": 1 << 30, "allocated_bytes": 1536, "free_bytes": 12},
        "new_section": {},
        "not_serving_because": "",
        "peers": [{"address": "10.0.0.2:1", "calls": 3, "lane": "rc_mlx5", "payload_bytes_sent": 2048},
                  {"address": "10.0.0.3:1", "lane": "tcp"}],
        "uptime_s": 12,
        "ready": True,
        "version": "1.2.3",
    })
    assert text == """\
  version              1.2.3
  address              10.0.0.1:1
  uptime               12 s
  ready                yes
  not serving because  -

Cluster
  epoch  7

Cluster members
  address
  10.0.0.1:1
  10.0.0.2:1

Peers
  address     lane     calls  payload sent
  10.0.0.2:1  rc_mlx5  3      2.0 KiB
  10.0.0.3:1  tcp      -      -

Memory
  size       1.0 GiB
  allocated  1.5 KiB
  free       12 B

New section
  none"""


@pytest.mark.parametrize("report", [[], "text", 3, None])
def test_a_report_that_is_no_object_is_an_error(report):
    with pytest.raises(ValueError):
        report_table.render(report)
