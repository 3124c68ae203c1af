"""Forks while other threads make the code of a kernel, or are in a long part of a launch."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading, time
import usm

lines = "".join(f"    x = x * 3 + {i}\\n    if x > {i}:\\n        x = x - a[i]\\n" for i in range(60))
source = "import usm\\n@usm.kernel\\ndef k(a):\\n    i = usm.get_global_id(0)\\n    x = a[i]\\n" + lines + "    a[i] = x\\n"
file = sys.argv[1]
with open(file, "w") as opened:
    opened.write(source)
names = {"__name__": "first"}
exec(compile(source, file, "exec"), names)
names["k"][4](usm.zeros(64, "int32"))
for turn in range(int(sys.argv[2])):
    names = {"__name__": f"kernels{turn}"}
    exec(compile(source, file, "exec"), names)
    kernel = names["k"]
    thread = threading.Thread(target=lambda: kernel[4](usm.zeros(64, "int32")))
    thread.start()
    time.sleep(0.01 * turn)
    child = os.fork()
    if child == 0:
        made = usm.zeros(64, "int32")
        kernel[4](made)
        os._exit(0 if any(made.tolist()) else 5)
    for _ in range(3000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        sys.exit(f"turn {turn}: the child hangs")
    if status:
        sys.exit(f"turn {turn}: the child ended with status {status}")
    thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
@pytest.mark.parametrize("compiler", ["builtin", "cc"])
def test_a_child_launches_a_kernel_that_a_thread_of_its_parent_was_making(tmp_path, monkeypatch, compiler):
    monkeypatch.setenv("USM_KERNEL_CACHE", "off")
    monkeypatch.setenv("USM_KERNEL_HOST", compiler)
    monkeypatch.setenv("USM_DEVICE", "host")
    arguments = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path / "kernels.py"), "8"]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


def run_file(folder, program):
    """Runs it from a file, because a kernel needs its source."""
    file = folder / "program.py"
    file.write_text(program)
    return subprocess.run([sys.executable, "-W", "ignore", file], capture_output=True, text=True, timeout=300)


IMPORTS = """
import sys
import usm

@usm.device_func
def twice(x):
    return x + x

@usm.kernel
def k(a, b, c):
    i = usm.get_global_id(0)
    shared = usm.local.array(4, "int32")
    shared[usm.get_local_id(0)] = twice(a[i])
    usm.barrier()
    usm.atomic.add(b, 0, shared[0])
    b[i] = int(c) ** 2

@usm.kernel
def of_items(item: usm.kernel_api.NdItem, a):
    a[item.get_global_id(0)] = item.get_group().get_group_id(0)

arrays = [usm.zeros(4, "int32") for _ in range(2)]
before = set(sys.modules)
k[4, 4](*arrays, 2.5)
of_items[usm.NdRange((4,), (2,))](arrays[0])
print(sorted(set(sys.modules) - before))
"""


def test_a_launch_imports_nothing(tmp_path):
    """Else a child that is forked meanwhile waits for the interpreter's lock of that module."""
    ran = run_file(tmp_path, IMPORTS)
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr


LONG = """
import os, signal, sys, threading
import usm

@usm.kernel
def waits(flags, data):
    usm.atomic.add(flags, 0, 1)
    while usm.atomic.add(flags, 1, 0) == 0:
        data[0] += 1

flags, data, other = (usm.zeros(4, "int32") for _ in range(3))
seen = memoryview(flags)
thread = threading.Thread(target=lambda: waits[1](flags, data))
thread.start()
while not seen[0]:
    pass

def child():
    uses = {
        "fill": lambda: data.fill(1),
        "read": lambda: data.tolist(),
        "copy": lambda: data.copy(),
        "write": lambda: usm.copy(data, other),
        "from": lambda: usm.copy(other, data),
        "launch": lambda: waits[1](flags, other),
        "launch again": lambda: waits[1](other, data),
    }
    for name, use in uses.items():
        for _ in range(2):
            try:
                use()
            except usm.errors.DeviceError as error:
                assert "fork" in str(error), error
            else:
                raise AssertionError(name)
    other.fill(3)
    assert other.copy().tolist() == [3] * 4
    own = usm.zeros(4, "int32")
    own.fill(4)
    usm.copy(other, own)
    assert other.tolist() == [4] * 4

def ends(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def fork(act):
    made = os.fork()
    if made == 0:
        signal.alarm(60)
        try:
            act()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    return ends(made)

def child_and_its_child():
    child()
    assert fork(child) == 0

print(fork(child_and_its_child))
seen[1] = 1
thread.join()
data.fill(2)
print(data.tolist())
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
@pytest.mark.parametrize("compiler", ["builtin", "cc"])
def test_a_child_is_refused_memory_that_a_long_launch_of_its_parent_uses(tmp_path, monkeypatch, compiler):
    monkeypatch.setenv("USM_KERNEL_CACHE", "off")
    monkeypatch.setenv("USM_KERNEL_HOST", compiler)
    monkeypatch.setenv("USM_DEVICE", "host")
    ran = run_file(tmp_path, LONG)
    assert (ran.returncode, ran.stdout) == (0, "0\n[2, 2, 2, 2]\n"), ran.stdout + ran.stderr
