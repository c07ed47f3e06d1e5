import json
import subprocess
import sys

from waiting import alive


def test_stop_ends_the_worker_and_says_so(stand_in, address):
    pid = stand_in("start", "-w", "--worker_address", address).pid
    result = stand_in("stop", "--worker_address", address)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"[INFO] [  OK  ] Stop worker service @ {address} normally, PID: {pid}\n"
    assert not alive(pid)


def test_stop_takes_the_address_from_a_config_file(stand_in, address):
    pid = stand_in("start", "-w", "--worker_address", address).pid
    (stand_in.folder / "c.json").write_text(json.dumps({"worker_address": {"value": address}}))
    assert stand_in("stop", "-f", "c.json").code == 0
    assert not alive(pid)


def test_stop_names_the_workers_there_are_when_the_address_is_another(stand_in, address):
    stand_in("start", "-w", "--worker_address", address)
    result = stand_in("stop", "-w", "127.0.0.1:1")
    assert result.code == 1
    assert result.err.startswith("[ERROR] Stop failed: No matching process found for ")
    assert address in result.err


def test_stop_leaves_other_programs_alone_that_mention_the_address(stand_in, address):
    other = subprocess.Popen([sys.executable, "-c", "input()", f"--worker_address={address}"],
                             stdin=subprocess.PIPE)
    try:
        assert stand_in("stop", "-w", address).code == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_stop_finds_every_spelling_of_the_flag_and_lists_several_matches(stand_in, address):
    binary = stand_in._environment["DATASYSTEM_WORKER_BINARY"]
    common = [f"--ready_check_path={stand_in.folder}/r", "--stand_in=silent"]
    spellings = [[f"-worker_address={address}"], ["--worker_address", address]]
    workers = [subprocess.Popen([binary, *spelling, *common]) for spelling in spellings]
    try:
        for worker in workers:
            while f"{binary}" not in open(f"/proc/{worker.pid}/cmdline").read().split("\0")[0]:
                assert worker.poll() is None
        result = stand_in("stop", "-w", address)
        assert result.code == 1
        assert all(str(worker.pid) in result.err for worker in workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def test_stop_refuses_what_is_not_an_address(stand_in):
    result = stand_in("stop", "-w", "localhost")
    assert result.code == 1
    assert "is not an address" in result.err
