"""What type checkers and help() are told is what is there."""

import ast
import enum
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import yr.datasystem
from yr.datasystem import aio, kv_client, util
from yr.datasystem.lib import libds_client_py as native

PACKAGE = Path(yr.datasystem.__file__).parent
STUB = ast.parse(PACKAGE.joinpath("lib", "libds_client_py.pyi").read_text())


def parameters_of_stub(function):
    arguments = function.args
    named = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    plain = len(named) - len(arguments.defaults)
    return [(name, ast.unparse(arguments.defaults[i - plain]) if i >= plain else None)
            for i, name in enumerate(named) if name != "self"]


def parameters_at_run_time(function):
    """Names and defaults; names only as far as there are any."""
    if match := re.match(r"\w+\((.*)\) ->", function.__doc__ or ""):  # pybind11 writes it into the text
        found = re.findall(r"(\w+): [\w.]+(?:\[[^\]]*\])*(?: = ([^,]+))?", match[1])
        return [(name, default or None) for name, default in found if name != "self"]
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    return [(p.name, None if p.default is p.empty else
             f"{type(p.default).__name__}.{p.default.name}" if isinstance(p.default, enum.Enum) else repr(p.default))
            for p in parameters]


def native_functions():
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            yield pytest.param(node, getattr(native, node.name), id=node.name)
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name not in ("__buffer__", "__len__", "__init__"):
                    yield pytest.param(item, getattr(getattr(native, node.name), item.name),
                                       id=f"{node.name}.{item.name}")


@pytest.mark.parametrize("stated, there", native_functions())
def test_the_stub_states_each_parameter(stated, there):
    expected, found = parameters_of_stub(stated), parameters_at_run_time(there)
    if all(re.fullmatch(r"arg\d+", name) for name, _ in found):  # called by position only
        assert len(expected) == len(found)
        assert not stated.args.args or [argument.arg for argument in stated.args.args] == ["self"]
    else:
        assert expected == found


def test_the_stub_states_every_name_and_no_other():
    def names(node):
        return {item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.ClassDef))}

    assert names(STUB) == {name for name in vars(native) if not name.startswith("__")}
    for node in STUB.body:
        if not isinstance(node, ast.ClassDef):
            continue
        there = getattr(native, node.name)
        if issubclass(there, enum.Enum):
            stated = {item.targets[0].id: item.value.value for item in node.body if isinstance(item, ast.Assign)}
            assert stated == {name: member.value for name, member in there.__members__.items()}
            continue
        own = {name for name in vars(there) if not name.startswith("__")}
        assert {name for name in names(node) if not name.startswith("__")} == own


@pytest.mark.parametrize("module", [yr.datasystem, kv_client, aio, util], ids=lambda module: module.__name__)
def test_every_public_name_is_documented_and_its_parameters_have_types(module):
    for name in module.__all__:
        public = getattr(module, name)
        assert public.__doc__, name
        methods = vars(public) if isinstance(public, type) and public.__module__ == module.__name__ else {}
        for method_name, method in methods.items():
            function = inspect.unwrap(getattr(method, "__func__", method))
            if not inspect.isfunction(function) or (
                    method_name.startswith("_") and method_name != "__init__") or issubclass(public, tuple):
                continue
            assert method_name == "__init__" or function.__doc__, f"{name}.{method_name}"
            signature = inspect.signature(function)
            assert signature.return_annotation is not inspect.Signature.empty, f"{name}.{method_name}"
            for parameter in signature.parameters.values():
                assert parameter.name == "self" or parameter.annotation is not parameter.empty, parameter


@pytest.mark.parametrize("call, signature", [
    ("set", "(self, /, key, val, write_mode=<WriteMode.NONE_L2_CACHE: 0>, ttl_second=0)"),
    ("get", "(self, /, keys, convert_to_str=False, sub_timeout_ms=0)"),
    ("get_read_only_buffers", "(self, /, keys, timeout_ms=0)"), ("exist", "(self, /, keys)")])
def test_calls_without_a_wrapper_show_their_signature(call, signature):
    assert str(inspect.signature(getattr(yr.datasystem.KVClient, call))) == signature


def test_the_enumerations_are_those_of_python():
    assert list(kv_client.ExistenceOpt) == [kv_client.ExistenceOpt.NONE, kv_client.ExistenceOpt.NX]
    assert kv_client.WriteMode(3) is kv_client.WriteMode.NONE_L2_CACHE_EVICT
    assert kv_client.WriteMode.NONE_L2_CACHE.__class__.__module__ == native.__name__
    assert "NONE_L2_CACHE_EVICT:" in kv_client.WriteMode.__doc__


PROGRAM = """
from __future__ import annotations
import asyncio
from yr.datasystem import KVClient, WriteMode
from yr.datasystem.aio import AsyncKVClient
from yr.datasystem.kv_client import Buffer, ExistenceOpt, ReadOnlyBuffer, ReadParam

def use(client: KVClient) -> None:
    client.set("k", b"v", WriteMode.NONE_L2_CACHE, ttl_second=1)
    client.set("k", memoryview(b"v"))
    values: list[bytes | str | None] = client.get(["k"], sub_timeout_ms=1)
    views: list[ReadOnlyBuffer | None] = client.read([ReadParam("k", 1, 2)])
    buffers: list[Buffer] = client.mcreate(["k"], [1])
    failed: list[str] = client.mset(["k"], [b"v"], existence_opt=ExistenceOpt.NX)
    exists: list[bool] = client.exist(["k"])
    client.set("k", 5)  # wrong
    client.get("k")  # wrong
    client.set("k", b"v", 0)  # wrong
    client.exists(["k"])  # wrong

async def use_async() -> bytes | str | None:
    async with AsyncKVClient("h", 1) as client:
        await client.set(b"k", b"v")  # wrong
        return (await client.get(["k"]))[0]
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_type_checker_accepts_the_package_and_finds_mistakes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "--explicit-package-bases",
         "--namespace-packages", program], env={"MYPYPATH": str(PACKAGE.parent.parent), "PATH": ""},
        capture_output=True, text=True, timeout=120)
    found = {int(line) for line in re.findall(r"program\.py:(\d+): error", ended.stdout)}
    wrong = {i for i, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
    assert found == wrong and "yr/datasystem" not in ended.stdout, ended.stdout + ended.stderr
