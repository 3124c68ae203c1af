"""Handles of memory between real processes, on the CUDA driver that executes on the host."""

import os
import signal
import subprocess
import sys

import pytest

EXPORTER = """
import multiprocessing, subprocess, sys
import usm
from ipc_case import ROUTES, opened, read, writes

if __name__ == "__main__":
    device = sys.argv[1]
    array = usm.empty((4, 1000), "<i4", kind="device", device=device)
    usm.copy(array, usm.asarray([list(range(row, row + 1000)) for row in range(4)], dtype="<i4", device="host"))
    members = usm.zeros(3, usm.DType("<f8"), kind="device", device=device)
    # In a process of multiprocessing's: the whole, a part with steps, one element, nothing.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for view in (array, array[1:3, ::2], array[::-1, 5], array[2, 3], array[:0], members):
            found = pool.apply(read, (view.ipc_handle(), device))
            assert found == (view.shape, view.strides if view.size else found[1], view.dtype.str, "device", view.tolist()), found
        # Its writes are seen here, and only where its view has elements.
        assert pool.apply(opened, (array[1:3, ::2].ipc_handle(), device, 7)) is None
        assert array[1:3, ::2].tolist() == [[7] * 500] * 2
        assert array[1:3, 1::2].tolist() == [list(range(row + 1, row + 1000, 2)) for row in (1, 2)] and array[0].tolist() == list(range(1000))
        # What this process frees, the other one holds no longer.
        for turn in range(50):
            short = usm.full(1000, turn, "<i4", kind="device", device=device)
            assert pool.apply(read, (short.ipc_handle(), device))[4] == [turn] * 1000
        assert pool.apply(opened, (array.ipc_handle(), device)) is None
        # What may only be read here is so there, by every route.
        base = usm.zeros(24, dtype="|u1", kind="device", device=device)
        kept = usm._usm._nrt_window(base, base.pointer, (24,), (1,), "|u1", True)
        for view in (kept, kept[4:-4], kept[::-1], kept.reshape(4, 6), usm.from_dlpack(kept, copy=False), usm.asarray(usm.memory.as_usm_memory(kept))):
            assert pool.apply(writes, (view.ipc_handle(), device)) == []
        assert base.tolist() == [0] * 24
        assert pool.apply(writes, (base.ipc_handle(), device)) == [name for name in ROUTES if name != "dictionary" or device.startswith("cuda")]
    try:
        usm.open_ipc(array.ipc_handle(), device=device)
    except usm.DeviceError:
        pass
    else:
        raise AssertionError("the process opened its own memory")
    for kind in ("host", "shared"):
        try:
            usm.zeros(3, kind=kind, device=device).ipc_handle()
        except usm.DeviceError as error:
            assert "IPC" in str(error), error
        else:
            raise AssertionError(kind)
    print(array.ipc_handle().hex(), flush=True)
    sys.stdin.read()
"""

CASE = """
import usm


def read(handle, device):
    array = usm.open_ipc(handle, device=device)
    again = usm.open_ipc(handle, device=device)
    assert again.tolist() == array.tolist() and array.device.selector == device
    return array.shape, array.strides, array.dtype.str, array.kind, array.tolist()


def first(handle, device):
    try:
        return usm.open_ipc(handle, device=device).reshape(-1)[:1].tolist()[0]
    except usm.Error as error:
        return f"{type(error).__name__}: {error}"


def opened(handle, device, value=None):
    array = usm.open_ipc(handle, queue=usm.Queue(device))
    if value is not None:
        array.fill(value)
        array.wait()
    # An opened memory cannot be handed on, but copied.
    assert array.copy().tolist() == array.tolist()
    try:
        array.ipc_handle()
    except (usm.DeviceError, usm.RequestError):
        return None
    return "handed on"


class Dictionary:
    def __init__(self, of):
        self.__cuda_array_interface__ = of.__cuda_array_interface__


ROUTES = {
    "fill": lambda it: it.fill(3),
    "item": lambda it: it.__setitem__(..., 3),
    "part": lambda it: it[1:].fill(3),
    "device": lambda it: it.to_device(it.device).fill(3),
    "memory": lambda it: usm.memory.as_usm_memory(it).memset(3),
    "memory of a tensor": lambda it: usm.memory.as_usm_memory(usm.from_dlpack(it, copy=False)).memset(3),
    "tensor": lambda it: usm.from_dlpack(it, copy=False).fill(3),
    "dictionary": lambda it: usm.asarray(Dictionary(it)).fill(3),
    "copy": lambda it: usm.copy(it, bytes(it.nbytes)),
}


# The routes by which an array is written.
def writes(handle, device):
    done = []
    for name, route in ROUTES.items():
        try:
            route(usm.open_ipc(handle, device=device))
            done.append(name)
        except (usm.Error, AttributeError):
            # HIP has no dictionaries.
            pass
    return done
"""

OPENER = """
import sys
import usm

handle, device = bytes.fromhex(sys.argv[1]), sys.argv[2]


def refused(handle, device, error):
    try:
        usm.open_ipc(handle, device=device)
    except error:
        return
    raise AssertionError(handle.hex())


if sys.argv[3] == "live":
    assert usm.open_ipc(handle, device=device).size in (1000, 4000)
    for place in range(len(handle)):
        for bits in (1, 0x15, 0xFF):
            refused(handle[:place] + bytes([handle[place] ^ bits]) + handle[place + 1:], device, usm.InterfaceError)
        refused(handle[:place], device, usm.InterfaceError)
else:
    try:
        usm.open_ipc(handle, device=device)
    except usm.DeviceError as error:
        assert "freed, or its process has ended" in str(error) or sys.platform != "linux", error
    else:
        raise AssertionError("stale")
# Of another runtime.
refused(handle, "host", usm.DeviceError)
"""

STALE = """
import multiprocessing, os, resource, signal, sys, time
import usm
from ipc_case import first


def made(value):
    return usm.full(1000, value, "<i4", kind="device", device=device)


def sockets():
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return sum(os.path.exists(link) and os.readlink(link).startswith("socket") for link in links)


if __name__ == "__main__":
    device = sys.argv[1]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        def stale(handle):
            answer = pool.apply(first, (handle, device))
            return isinstance(answer, str) and answer.startswith("DeviceError") and "memory of this IPC handle was freed" in answer

        # The driver gives the memory out again, and its own handle opens it.
        array = made(1)
        address, handle = array.pointer, array.ipc_handle()
        assert array.ipc_handle() == handle and pool.apply(first, (handle, device)) == 1
        view = array[10:20]
        part = view.ipc_handle()
        del array
        # A view keeps the memory, and so does every loan of it.
        assert pool.apply(first, (handle, device)) == 1 and pool.apply(first, (part, device)) == 1
        loan = usm.from_dlpack(view, copy=False)
        of_loan = loan.ipc_handle()
        memory = usm.memory.as_usm_memory(view)
        del view
        assert [pool.apply(first, (each, device)) for each in (handle, part, of_loan)] == [1, 1, 1]
        del memory, loan
        arrays = []
        while not arrays or arrays[-1].pointer != address:
            arrays.append(made(2))
            assert len(arrays) < 1000, "the memory was not reused, so nothing is shown"
        again = arrays.pop()
        assert stale(handle) and stale(part) and stale(of_loan)
        assert pool.apply(first, (again.ipc_handle(), device)) == 2 and again.ipc_handle() != handle
        # The end of a loan is not the end of the memory.
        of_loan = usm.from_dlpack(again[5:], copy=False).ipc_handle()
        assert pool.apply(first, (of_loan, device)) == 2
        # With a history, too, and with work in flight.
        usm.history(100)
        handle = again.ipc_handle()
        again.fill(3)
        del again
        made(4).wait()
        assert stale(handle) and stale(of_loan)
        usm.history(0)
        # A child of a fork has no sign of its parent's memory.
        array, before = made(5), sockets()
        handle = array.ipc_handle()
        assert sockets() == before + 1
        pid = os.fork()
        if not pid:
            os._exit(sockets())
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == before
        assert pool.apply(first, (handle, device)) == 5
        del array
        assert stale(handle) and sockets() == before
        # One descriptor for each exported allocation, none after it.
        for turn in range(300):
            short = made(turn)
            assert short.ipc_handle() == short.ipc_handle()
        del short
        assert sockets() == before
        kept = made(6)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, limit[1]))
        try:
            kept.ipc_handle()
        except usm.DeviceError as error:
            message = str(error)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        assert "IPC handle" in message and "24" in message, message
        assert pool.apply(first, (kept.ipc_handle(), device)) == 6
    # The test ends this child, which outlives its parent.
    pid = os.fork()
    if not pid:
        for name in range(3):
            os.close(name)
        time.sleep(300)
        os._exit(0)
    print(kept.ipc_handle().hex(), pid, flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=[("cuda", "USM_CUDA_LIBRARY"), ("hip", "USM_HIP_LIBRARY")], ids=["cuda", "hip"])
def processes(request, tmp_path, cuda_driver):
    """Runs a script that exports memory beside others that open it."""
    backend, variable = request.param
    environment = {**os.environ, **cuda_driver}
    environment[variable] = environment.pop("USM_CUDA_LIBRARY")
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment["PYTHONPATH"]])
    (tmp_path / "ipc_case.py").write_text(CASE)
    device = f"{backend}:gpu:0"

    def opener(handle, state):
        done = subprocess.run([sys.executable, "-c", OPENER, handle, device, state], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def exporter(source):
        (tmp_path / "exporter.py").write_text(source)
        command = [sys.executable, tmp_path / "exporter.py", device]
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return exporter, opener


def test_processes_share_device_memory_by_its_handle(processes):
    export, opener = processes
    with export(EXPORTER) as exporter:
        handle = exporter.stdout.readline().strip()
        try:
            assert handle, exporter.communicate(timeout=60)[1]
            opener(handle, "live")
        finally:
            exporter.stdin.close()
        assert exporter.wait(60) == 0, exporter.stderr.read()
    # The exporter has ended, and its memory with it.
    opener(handle, "stale")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the sockets that tell")
def test_a_handle_of_freed_memory_is_refused_although_the_driver_reuses_the_memory(processes):
    export, opener = processes
    with export(STALE) as exporter:
        line = exporter.stdout.readline().split()
        assert line, exporter.communicate(timeout=60)[1]
        handle, child = line
        try:
            opener(handle, "live")
            exporter.stdin.close()
            assert exporter.wait(60) == -signal.SIGKILL
            os.kill(int(child), 0)
            # The child of a fork that outlives the exporter does not speak for its memory.
            opener(handle, "stale")
        finally:
            os.kill(int(child), signal.SIGKILL)
