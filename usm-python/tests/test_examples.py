"""Every script in `examples/python` runs to its end."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import lacking

SCRIPTS = sorted((pathlib.Path(__file__).parents[2] / "examples/python").glob("*.py"))
NEEDS = {"with_dask": "distributed", "with_mpi": "mpi4py"}


def test_each_task_has_an_example():
    assert {"first_copy", "exchange", "with_dask", "with_mpi", "a_plan", "leak_hunt", "own_source"} <= {it.stem for it in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_example_runs(script):
    needed = NEEDS.get(script.stem)
    if needed and importlib.util.find_spec(needed) is None:
        lacking(needed, "not installed")
    command = [sys.executable, script]
    if needed == "mpi4py":
        mpiexec = shutil.which("mpiexec", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("mpiexec")
        if mpiexec is None:
            lacking("mpi", "no mpiexec")
        command = [mpiexec, "-n", "2", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout, done.stderr
