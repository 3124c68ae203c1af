"""Kernels on the host: by built-in code, or by the C compiler, whose code is cached."""

import os
import pathlib
import subprocess
import sys

import pytest
from kernel_programs import programs

CASE = pathlib.Path(__file__).with_name("kernel_host_case.py")
COUNT = len(list(programs()))


def start(**variables):
    variables = {**os.environ, **variables}
    return subprocess.Popen([sys.executable, CASE], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(**variables):
    child = start(**variables)
    out, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors
    return int(out)


def test_programs_in_built_in_code_agree_with_numpy():
    assert run(USM_KERNEL_HOST="builtin") == COUNT


def test_compiled_programs_agree_with_numpy_and_are_cached(compiler, tmp_path):
    folder = tmp_path / "kept"
    kept = {"USM_KERNEL_HOST": "cc", "USM_KERNEL_CACHE": str(folder)}
    both = [start(**kept), start(**kept)]
    for child in both:
        out, errors = child.communicate(timeout=300)
        assert (child.returncode, out.strip()) == (0, str(COUNT)), errors
    files = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert {file.suffix for file in files} == {".so", ".sum"} and len(files) % 2 == 0
    assert run(**kept) == COUNT
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == files
    # Cut files and altered ones are made anew.
    for number, file in enumerate(sorted(folder.glob("*.so"))):
        whole = file.read_bytes()
        cut = [whole[: len(whole) // 2], b"", whole[:-1], bytes(len(whole))][number % 4]
        # Another file of the same name: running code maps the old one.
        file.unlink()
        file.write_bytes(cut)
    assert run(**kept) == COUNT


def test_nothing_is_cached_where_the_cache_is_off(compiler, tmp_path):
    home = tmp_path / "home"
    assert run(USM_KERNEL_HOST="cc", USM_KERNEL_CACHE="off", HOME=str(home), XDG_CACHE_HOME=str(home)) == COUNT
    assert not home.exists()


@pytest.mark.parametrize(
    "variables, message",
    [({"USM_KERNEL_HOST": "jit"}, "USM_KERNEL_HOST is \"jit\""), ({"USM_KERNEL_HOST": "cc", "PATH": ""}, "there is no cc, gcc or clang")],
)
def test_missing_code_is_an_error(variables, message):
    child = start(**variables)
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 1 and "usm.errors.KernelError" in errors and message in errors
