"""The types of the package: checked as by a user's checker, and against the running module."""

import ast
import json
import os
import pathlib
import subprocess
import sys

from conftest import require

import usm

HERE = pathlib.Path(__file__).with_name("checker")
SURFACE = HERE / "surface.py"


def python(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=HERE)
    return done.returncode, done.stdout + done.stderr


def test_mypy_accepts_the_whole_surface_in_strict_mode_and_refuses_what_it_must():
    """An unused `type: ignore` is an error, so mypy refuses each line that has one."""
    require("mypy", "the checker of types")
    status, output = python("-m", "mypy", "--config-file", HERE / "mypy.ini", "--no-incremental", SURFACE)
    assert status == 0, output


def test_the_whole_surface_runs():
    assert python(SURFACE) == (0, "ok\n")


def test_the_stub_matches_the_module():
    require("mypy", "the checker of types")
    # With all that is below it.
    require("numba", "a module of the package is for it")
    require("distributed", "a module of the package is for it")
    modules = ["usm"]
    options = ["--mypy-config-file", HERE / "mypy.ini", "--allowlist", HERE / "stubtest.txt", "--ignore-unused-allowlist"]
    status, output = python("-m", "mypy.stubtest", *options, "--concise", *modules)
    assert status == 0, output


def test_everything_public_has_a_complete_type(tmp_path):
    """As pyright checks a package with `py.typed`: nothing unknown, nothing ambiguous."""
    require("pyright", "the other checker of types")
    options = ["--ignoreexternal", "--outputjson", "--verifytypes", "usm"]
    # pyright finds installed packages by the first Python of the path. If this Python finds the
    # package by `PYTHONPATH`, pyright finds it in the folder.
    folder = pathlib.Path(usm.__file__).parents[1]
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": sys.prefix}
    done = subprocess.run(
        [sys.executable, "-m", "pyright", *options],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path if "site-packages" in folder.parts else folder,
        env=environment,
    )
    found = json.loads(done.stdout)["typeCompleteness"]
    unknown = [it["name"] for it in found["symbols"] if it["isExported"] and not it["isTypeKnown"]]
    assert unknown == [] and found["completenessScore"] == 1 and found["exportedSymbolCounts"]["withKnownType"] > 200


def test_the_surface_uses_every_public_name():
    """Every public name of the stub is used in the file that mypy reads."""
    stub = pathlib.Path(usm.__file__).with_name("_usm.pyi")
    used = {node.attr for node in ast.walk(ast.parse(SURFACE.read_text())) if isinstance(node, ast.Attribute)}
    classes = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef)]
    typed_dictionaries = {"Counters", "Record"}
    members = {
        f"{node.name}.{member.name}"
        for node in classes
        if node.name not in typed_dictionaries
        for member in node.body
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("__")
    }
    missing = sorted(name for name in members if name.split(".")[1] not in used)
    missing += sorted(name for name in usm.__all__ if name not in used | {"memory", "nrt"})
    assert missing == []
