"""The logger `usm`: what a program sees of runtimes and builds, and what it does not pay for."""

import subprocess
import sys
import textwrap

import pytest


def run(text, **settings):
    """The lines of a new process."""
    import os

    env = {**os.environ, "USM_KERNEL_CACHE": "off", **settings}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


KERNEL = """
import usm
@usm.kernel
def twice(a):
    i = usm.get_global_id(0)
    a[i] = 2 * a[i]
"""


def program(tmp_path, text):
    """A file, as a kernel's source must be readable."""
    path = tmp_path / "program.py"
    path.write_text(KERNEL + textwrap.dedent(text))
    return f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"


def test_a_program_without_logging_imports_none():
    out, _ = run("import sys, usm; usm.zeros(3, device='host'); usm.devices(); print('logging' in sys.modules)")
    assert out == ["False"]


def test_a_logger_above_debug_gets_nothing(tmp_path):
    out, err = run(program(tmp_path, "import logging; logging.basicConfig(level='INFO'); twice[3](usm.zeros(3, device='host')); usm.devices()"))
    assert (out, err) == ([], "")


def test_runtimes_and_builds_are_told_once(tmp_path):
    text = """
    import logging, sys
    logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s %(message)s", level="DEBUG")
    for _ in range(2):
        twice[3](usm.ones(3, device="host") if hasattr(usm, "ones") else usm.full(3, 1.0, device="host"))
        usm.devices()
    """
    lines, _ = run(program(tmp_path, text))
    kernels = [line for line in lines if line.startswith("DEBUG usm.kernel ")]
    [line] = kernels
    assert "twice on the host by the " in line and line.endswith(" ms")
    runtimes = [line.removeprefix("DEBUG usm.runtime ").split()[0] for line in lines if " usm.runtime " in line]
    assert sorted(runtimes) == sorted(set(runtimes)) and {"sycl", "opencl", "cuda"} <= set(runtimes)
    absent = [line for line in lines if " is not here: " in line]
    assert all(len(line.split(" is not here: ")[1]) > 10 for line in absent)


def test_the_host_needs_no_runtime_to_be_told_of(tmp_path):
    lines, _ = run(program(tmp_path, "import logging, sys; logging.basicConfig(stream=sys.stdout, level='DEBUG'); usm.zeros(3, device='host')"))
    assert lines == []


@pytest.mark.parametrize("way", ["builtin", "cc"])
def test_a_kernel_tells_its_compiler(tmp_path, way):
    text = "import logging, sys; logging.basicConfig(stream=sys.stdout, level='DEBUG'); twice[3](usm.zeros(3, device='host'))"
    lines, _ = run(program(tmp_path, text), USM_KERNEL_HOST=way)
    name = {"builtin": "the built-in compiler", "cc": "the C compiler"}[way]
    assert len(lines) == 1 and f"twice on the host by {name}, ready in " in lines[0]


def test_a_handler_may_launch_the_kernel_it_is_told_of_and_may_raise(tmp_path):
    text = """
    import logging
    class Handler(logging.Handler):
        def emit(self, record):
            a = usm.full(3, 1.0, device="host")
            twice[3](a)
            print(record.name, a.tolist())
            raise ValueError("in a handler")
    logger = logging.getLogger("usm.kernel")
    logger.setLevel("DEBUG")
    logger.addHandler(Handler())
    a = usm.full(3, 2.0, device="host")
    twice[3](a)
    print(a.tolist())
    """
    lines, err = run(program(tmp_path, text))
    assert lines == ["usm.kernel [2.0, 2.0, 2.0]", "[4.0, 4.0, 4.0]"] and "in a handler" in err


def test_an_interrupt_in_a_handler_reaches_the_program(tmp_path):
    text = """
    import logging
    class Handler(logging.Handler):
        def emit(self, record):
            raise KeyboardInterrupt
    logger = logging.getLogger("usm.kernel")
    logger.setLevel("DEBUG")
    logger.addHandler(Handler())
    try:
        twice[3](usm.full(3, 2.0, device="host"))
        for _ in range(1000):
            pass
    except KeyboardInterrupt:
        print("interrupted")
    else:
        print("missed")
    """
    lines, err = run(program(tmp_path, text))
    assert (lines, err) == (["interrupted"], "")
