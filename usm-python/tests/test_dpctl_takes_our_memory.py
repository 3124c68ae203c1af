"""dpctl's own tests of kernels, events and timers, with memory of ``usm.memory``."""

import pathlib
import pickle
import re
import shutil
import subprocess
import sys

import pytest

import usm
import usm.memory
from conftest import require

# dpctl's files in which kernels and copies take memory.
FILES = ["test_sycl_kernel_submit.py", "test_sycl_event.py", "test_sycl_timer.py", "test_work_group_memory.py"]


def results(folder):
    """The outcome of each test by its name."""
    words = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--rootdir", folder, *(folder / name for name in FILES)]
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    found = {name: what for what, name in re.findall(r"^(PASSED|FAILED|ERROR) \S*?(\w+\.py::\S+)", ran.stdout, re.M)}
    return found, ran.stdout


def swapped(folder):
    """A copy of dpctl's tests in which the files import our memory."""
    dpctl = require("dpctl", "its tests come with it")
    tests = pathlib.Path(dpctl.__file__).parent / "tests"
    shutil.copytree(tests, folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in FILES:
        text = (folder / name).read_text()
        assert text.count("import dpctl\n") == 1, name
        text = text.replace("import dpctl.memory as", "import usm.memory as")
        text = text.replace("dpctl.memory.MemoryUSM", "usm.memory.MemoryUSM")
        text = text.replace("import dpctl\n", "import dpctl\nimport usm.memory\n", 1)
        assert "dpctl.memory" not in text and "usm.memory" in text, name
        (folder / name).write_text(text)
    return folder


def test_dpctls_tests_pass_with_our_memory(tmp_path):
    found, text = results(swapped(tmp_path / "ours"))
    # In dpctl 0.22 on a processor; two more need a GPU or another queue, and report that.
    assert len(found) >= 30 and set(found.values()) == {"PASSED"}, text


def queue():
    dpctl = require("dpctl", "SYCL by its library")
    return dpctl, dpctl.SyclQueue("cpu")


@pytest.mark.parametrize("name", ["MemoryUSMHost", "MemoryUSMDevice", "MemoryUSMShared"])
def test_an_object_is_an_instance_of_both_classes(name):
    dpctl, on = queue()
    ours, theirs = getattr(usm.memory, name), getattr(dpctl.memory, name)
    memory = ours(64, queue=on)
    assert isinstance(memory, ours) and isinstance(memory, theirs) and isinstance(memory, usm.memory._Memory)
    assert type(memory.reference_obj) is ours and memory.nbytes == len(memory) == 64
    assert memory._pointer == theirs(memory)._pointer == ours(memory)._pointer
    memory.copy_from_host(bytes(range(64)))
    assert memory.tobytes() == bytes(range(64)) == bytes(theirs(memory).copy_to_host())
    # Imports of ours, of dpctl's, and back are of both classes too.
    for other in (usm.memory.as_usm_memory(memory), usm.memory.as_usm_memory(theirs(64, queue=on)), pickle.loads(pickle.dumps(memory))):
        assert isinstance(other, ours) and other.nbytes == 64
        assert isinstance(other, theirs) or not other._is_dpctls
    assert usm.asarray(memory).shape == (64,)
    with pytest.raises(usm.RequestError):
        ours(0, queue=on)


def test_copies_of_dpctls_queue_take_our_memory():
    numpy = require("numpy", "the source of a copy")
    _, on = queue()
    memory = usm.memory.MemoryUSMDevice(16, queue=on)
    on.memcpy(memory, numpy.arange(4, dtype="f4"), 16)
    on.prefetch(usm.memory.MemoryUSMShared(16, queue=on), 16)
    assert numpy.frombuffer(memory.tobytes(), "f4").tolist() == [0, 1, 2, 3]


def test_memory_of_another_runtime_stays_ours():
    queue()
    memory = usm.memory.MemoryUSMHost(16, queue=usm.Queue("host"))
    assert type(memory) is usm.memory.MemoryUSMHost and not memory._is_dpctls

    class Own(usm.memory.MemoryUSMShared):
        pass

    assert type(Own(16, queue=queue()[1])) is Own


def test_the_host_has_no_view_of_device_memory_and_dpctls_users_catch_a_type_error():
    _, on = queue()
    memory = usm.memory.MemoryUSMDevice(16, queue=on)
    for view in (memoryview, bytearray):
        with pytest.raises((TypeError, ValueError, BufferError)):
            view(memory)
    program = (
        "import sys, usm\nassert 'dpctl' not in sys.modules\nimport usm.memory\nassert 'dpctl' not in sys.modules\n"
        "memory = usm.memory.MemoryUSMDevice(16, queue=usm.Queue('sycl:cpu'))\n"
        "for catch in (TypeError, usm.AccessError):\n"
        "    try:\n        memoryview(memory)\n"
        "    except catch as error:\n        assert 'host' in str(error), error\n"
        "    else:\n        raise SystemExit('a view of device memory')\n"
        "assert 'dpctl' not in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_arrays_have_dpctls_names():
    dpctl = require("dpctl", "the class of the queue")
    queue = dpctl.SyclQueue("cpu")
    for kind in ("host", "shared", "device"):
        array = usm.zeros(4, "f4", kind=kind, queue=queue)
        assert (array.usm_type, array.sycl_queue) == (kind, queue) and type(array.sycl_queue) is dpctl.SyclQueue
    plain = usm.zeros(4, queue="host")
    assert not hasattr(plain, "usm_type") and not hasattr(plain, "sycl_queue")


def test_an_arrays_attributes_import_no_dpctl():
    words = "import sys, usm; a = usm.zeros(3); [getattr(a, name, None) for name in dir(a)]; assert 'dpctl' not in sys.modules"
    subprocess.run([sys.executable, "-c", words], check=True, timeout=120)
