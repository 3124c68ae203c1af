"""The folder of compiled kernels: only what this user alone could write is run.

Where the tests run as root, folders and files of another user are those of user 65534.
"""

import os
import pathlib
import stat
import subprocess
import sys

import pytest

import usm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes of POSIX")

STRANGER = 65534
PROGRAM = """
import sys, warnings
import usm

@usm.kernel
def adds(a):
    a[usm.get_global_id(0)] += 1

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for device in sys.argv[1:]:
        array = usm.zeros(8, dtype="i4", device=device)
        for _ in range(2):
            adds[8](array)
        assert array.tolist() == [2] * 8
for warning in caught:
    print(warning.category.__name__, warning.message)
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@pytest.fixture(scope="session")
def devices():
    """Those whose code is kept: the C compiler's for the host, and OpenCL's, where there is one."""
    return ["host", *["opencl:cpu" for device in usm.devices() if device.backend == "opencl"][:1]]


@pytest.fixture
def run(program, compiler, devices):
    """Runs the program with a cache; returns the warnings."""

    def run(cache):
        environment = {**os.environ, "USM_KERNEL_HOST": "cc", "USM_KERNEL_CACHE": str(cache)}
        done = subprocess.run([sys.executable, program, *devices], env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


def stranger(path):
    if os.geteuid() != 0:
        pytest.skip("not root: no files of another user")
    os.lchown(path, STRANGER, STRANGER)


def folder(path, mode=0o700):
    path.mkdir()
    path.chmod(mode)
    return path


def of_a_stranger(path):
    stranger(folder(path))


def linked(path):
    path.symlink_to(folder(path.with_name("real")), target_is_directory=True)


UNSAFE = {
    "a stranger's": of_a_stranger,
    "a stranger's, open to all": lambda path: (of_a_stranger(path), path.chmod(0o777)),
    "a group's": lambda path: folder(path, 0o770),
    "all users'": lambda path: folder(path, 0o707),
    "all users', sticky": lambda path: folder(path, 0o1777),
    "a link": linked,
    "a link to nothing": lambda path: path.symlink_to(path.with_name("nothing")),
    "a link to a stranger's": lambda path: (linked(path), stranger(path.with_name("real"))),
    "a file": lambda path: path.write_text(""),
}


@pytest.mark.parametrize("make", UNSAFE.values(), ids=UNSAFE)
def test_a_folder_that_others_may_write_is_not_used_with_one_warning(make, run, tmp_path):
    cache = tmp_path / "cache"
    make(cache)
    (warning,) = run(cache)
    assert warning.startswith(f"RuntimeWarning compiled kernels are not kept: the folder {cache} is not safe: "), warning
    assert not cache.is_dir() or not any(cache.iterdir())
    assert not cache.with_name("nothing").exists()


def test_a_folder_of_this_user_alone_is_used_without_a_warning(run, devices, tmp_path):
    below = tmp_path / "some" / "folder"
    assert run(below) == []
    files = {file: file.stat().st_mtime_ns for file in below.iterdir()}
    assert {file.suffix for file in files} == {".so", ".sum", *([".bin"] if devices[1:] else [])}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(below.stat().st_mode) == 0o700
    assert run(below) == []
    assert {file: file.stat().st_mtime_ns for file in below.iterdir()} == files
    below.chmod(0o755)
    assert run(below) == []


def with_mode(mode):
    return lambda file: file.chmod(mode)


def another(file):
    other = file.with_suffix(".other")
    file.rename(other)
    return other


UNSAFE_FILES = {
    "a stranger's": stranger,
    "a group's": with_mode(0o660),
    "all users'": with_mode(0o602),
    "a link": lambda file: file.symlink_to(another(file)),
    "a link to a stranger's": lambda file: (stranger(file), file.symlink_to(another(file))),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
}


@pytest.mark.parametrize("alter", UNSAFE_FILES.values(), ids=UNSAFE_FILES)
def test_a_file_that_others_may_have_written_is_made_anew(alter, run, tmp_path):
    cache = tmp_path / "cache"
    assert run(cache) == []
    names = {file.name for file in cache.iterdir()}
    for file in list(cache.iterdir()):
        alter(file)
    before = {name: os.lstat(cache / name).st_ino for name in names}
    assert run(cache) == []
    for name in names:
        found = os.lstat(cache / name)
        assert stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600 and found.st_uid == os.geteuid()
        assert found.st_ino != before[name]


COMPILER = """#!/bin/sh
echo "$(stat -c '%a %u' .) $(pwd -P)" >> "$LOG"
exec "$REAL" "$@"
"""


def test_without_a_cache_code_is_compiled_in_a_new_folder_of_this_user(program, compiler, tmp_path):
    """Nobody can guess its name, and it is gone afterwards."""
    tools, temporary, log = folder(tmp_path / "tools"), folder(tmp_path / "temporary", 0o1777), tmp_path / "log"
    (tools / "cc").write_text(COMPILER)
    (tools / "cc").chmod(0o755)
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "LOG": str(log), "REAL": str(compiler), "TMPDIR": str(temporary)}
    for cache in ["off", str(tmp_path / "cache")]:
        environment = {**os.environ, "USM_KERNEL_HOST": "cc", "USM_KERNEL_CACHE": cache, **variables}
        for _ in range(2):
            subprocess.run([sys.executable, program, "host"], env=environment, check=True, timeout=120)
    used = [line.split() for line in log.read_text().splitlines()]
    assert len(used) == 3, used
    assert all((mode, int(user)) == ("700", os.geteuid()) for mode, user, _ in used), used
    names = {path for *_, path in used}
    assert len(names) == 3 and all(pathlib.Path(name).parent == temporary.resolve() for name in names), names
    assert not any(temporary.iterdir())


@pytest.mark.parametrize("entry", ["", ".", "here"])
def test_no_compiler_of_the_current_folder_is_run(program, entry, tmp_path):
    """An entry of PATH that is no absolute folder names one that may be anybody's."""
    (tmp_path / "here").mkdir()
    for trap in [tmp_path / "cc", tmp_path / "here" / "cc"]:
        trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/trapped\nexit 1\n")
        trap.chmod(0o755)
    environment = {**os.environ, "PATH": f"{entry}:{os.environ['PATH']}", "USM_KERNEL_CACHE": "off"}
    subprocess.run([sys.executable, program, "host"], env=environment, cwd=tmp_path, check=True, timeout=120)
    assert not (tmp_path / "trapped").exists()


COPY = """
import sys
import usm

made = usm.zeros((40, 50), "u4", kind="device", device="opencl:cpu")
given = usm.full((50, 40), 7, "u4", kind="device", queue=made.queue)
usm.copy(made, given.T, wait=False).wait()
assert made.tolist() == [[7] * 50] * 40
"""


def test_code_of_strided_copies_is_kept(tmp_path, devices):
    """The second process loads what the first one compiled; altered code is compiled again."""
    if devices == ["host"]:
        pytest.skip("no OpenCL device")
    cache = tmp_path / "cache"

    def copy(place):
        environment = {**os.environ, "USM_KERNEL_CACHE": str(place)}
        done = subprocess.run([sys.executable, "-c", COPY], env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")

    def files():
        return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in cache.iterdir()}

    copy(cache)
    first = files()
    assert len(first) == 1
    copy(cache)
    assert files() == first
    name, (content, _) = next(iter(first.items()))
    (cache / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    copy(cache)
    assert files()[name][0] == content
    copy("off")
