"""The command of the package: ``python -m usm``, and ``usm`` where a wheel is installed."""

import importlib.metadata
import json
import os
import subprocess
import sys

import usm
from conftest import require
from test_plan import CHAIN, model


def command(*arguments, **options):
    """Runs ``python -m usm`` in a separate process."""
    return subprocess.run([sys.executable, "-m", "usm", *arguments], capture_output=True, timeout=120, **options)


def test_the_command_lists_the_packages_devices():
    done = command("devices", "--json")
    assert done.returncode == 0, done.stderr
    listed = {device["selector"] for backend in json.loads(done.stdout)["backends"] for device in backend["devices"]}
    assert {device.selector for device in usm.devices()} <= listed


def test_the_command_plans_as_usm_plan_does(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(CHAIN))
    done = command("plan", path, "--json", "--queue", "out-of-order")
    assert done.returncode == 0, done.stderr
    report, plan = json.loads(done.stdout), usm.plan(path, queue="out-of-order")
    assert (report["peak"], report["lower_bound"], report["optimal"]) == (plan.peak, plan.lower_bound, plan.optimal)
    piped = command("plan", "-", "--json", input=path.read_bytes())
    assert piped.returncode == 0 and json.loads(piped.stdout)["peak"] == usm.plan(path).peak


def test_shapes_are_inferred_without_a_package(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(model(stated=False))
    # The package is hidden, as where it is not installed.
    (tmp_path / "hidden" / "sitecustomize.py").parent.mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['onnx'] = None\n")
    folders = [str(tmp_path / "hidden"), os.environ.get("PYTHONPATH", "")]
    hidden = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    done = command("plan", path, "--dim", "N=4", "--json", env=hidden)
    assert done.returncode == 0 and json.loads(done.stdout)["peak"] == 1024, done.stderr


def test_errors_have_the_commands_exit_codes(tmp_path):
    for arguments, code in (["nothing"], 2), (["plan", tmp_path / "missing.json"], 2), (["--help"], 0), (["--version"], 0):
        done = command(*arguments)
        assert done.returncode == code, (arguments, done)
        assert b"Traceback" not in done.stderr
    assert usm.__version__.encode() in command("--version").stdout
    # With standard output closed.
    done = command("plan", tmp_path / "missing.json", preexec_fn=lambda: os.close(1))
    assert done.returncode == 2 and b"missing.json" in done.stderr and b"Traceback" not in done.stderr, done


def test_a_file_to_write_is_no_standard_output(tmp_path):
    for option in ("html", "svg", "output", "graph", "range-plan", "proof", "sharing", "dependencies", "pool-dump"):
        done = command("plan", "-", f"--{option}", "-", input=json.dumps(CHAIN).encode(), cwd=tmp_path)
        assert done.returncode == 2 and option.encode() in done.stderr and b"./-" in done.stderr, done
        assert list(tmp_path.iterdir()) == [] and done.stdout == b""
    done = command("plan", "-", "--html", "./-", input=json.dumps(CHAIN).encode(), cwd=tmp_path)
    assert done.returncode == 0 and [path.name for path in tmp_path.iterdir()] == ["-"]


def test_numbers_of_bytes_have_binary_and_decimal_units():
    graph = json.dumps({"tensors": [{"id": 0, "size": 1_000_001}], "ops": [{"outputs": [0]}], "outputs": [0]}).encode()
    for text, code in {"1MiB": 0, "1MB": 1, "1000kB": 1, "1001kB": 0, "1GB": 0, "1000000": 1, "1EB": 0}.items():
        assert command("plan", "-", "--alignment", "1", "--capacity", text, input=graph).returncode == code, text
    for text in ("1gb", "1.5MB", "MB", "1XB", "99999EB", "1KB"):
        done = command("plan", "-", "--capacity", text, input=graph)
        assert done.returncode == 2 and b"--capacity" in done.stderr, text
    assert b"KiB, MiB, GiB, TiB, PiB, EiB, or kB, MB, GB, TB, PB, EB" in command("plan", "-", "--capacity", "1XB", input=graph).stderr


def test_a_wheel_contains_the_command():
    entries = importlib.metadata.entry_points(group="console_scripts", name="usm")
    assert [entry.value for entry in entries] == ["usm.__main__:main"]
