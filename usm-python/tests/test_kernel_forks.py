"""Forks while other threads make the code of a kernel: the child launches that kernel."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading, time
import usm

# A thread that imports in the moment of a fork keeps the interpreter's lock of that module.
import usm._kernel.compiler

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
