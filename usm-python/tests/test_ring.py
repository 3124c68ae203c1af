"""Copies through the ring of pinned blocks: counts, missing memory, failures, ends.

The driver executes on the host (`tests/cuda-driver`); each case is a process of its own.
"""

import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import usm
import cuda_driver
driver = cuda_driver.Driver()
usm.set_threads(4)
queue = usm.Queue("cuda:gpu:0")
context = queue.context

def ring():
    stats = context.stats()
    return stats["ring"]["current"], stats["ring_refusals"]

def numbers(size, seed=1):
    return np.random.default_rng(seed).integers(0, 256, size, "u1")
"""


@pytest.fixture
def run(cuda_driver):
    def run(code, status=0):
        program = PRELUDE + textwrap.dedent(code)
        environment = {**os.environ, **cuda_driver}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (status, ""), done.stderr
        return done.stdout

    return run


def test_every_copy_of_numpys_memory_goes_through_it_and_is_counted_apart(run):
    run("""
        size = (5 << 20) + 7
        data = numbers(size)
        def through_the_ring(call):
            usm.trim()
            assert ring()[0] == 0
            result = call()
            assert ring()[0] > 0, call
            return result
        a = through_the_ring(lambda: usm.asarray(data, queue=queue, kind="device", copy=True))
        assert context.stats()["sum"]["current"] == size, "the ring is in no other number"
        assert (through_the_ring(lambda: usm.to_numpy(a)) == data).all()
        assert through_the_ring(a.tobytes) == data.tobytes()
        assert (usm.to_numpy(through_the_ring(lambda: a.to_device("host"))) == data).all()
        target = np.zeros_like(data)
        through_the_ring(lambda: usm.copy(target, a))
        assert (target == data).all()
        sparse = np.zeros((size, 3), "u1")
        through_the_ring(lambda: usm.copy(sparse[::-1, 1], a))
        assert (sparse[::-1, 1] == data).all() and not sparse[:, ::2].any()
        a.fill(0)
        through_the_ring(lambda: usm.copy(a, sparse[::-1, 1]))
        assert (usm.to_numpy(a) == data).all()
        memory = usm.memory.MemoryUSMDevice(size, queue=queue)
        through_the_ring(lambda: memory.copy_from_host(data))
        assert (through_the_ring(lambda: np.frombuffer(memory.copy_to_host(), "u1")) == data).all()
        import pickle
        kept = through_the_ring(lambda: pickle.dumps(a))
        assert through_the_ring(lambda: pickle.loads(kept)).tobytes() == data.tobytes()
        live = ring()[0]
        assert usm.trim() >= live and ring()[0] == usm.trim() == 0
        assert driver.misuses() == 0
    """)


def test_without_pinned_memory_copies_go_as_before_and_are_counted(run):
    run("""
        data = numbers(6 << 20)
        a = usm.empty(data.size, "u1", queue=queue, kind="device")
        driver.fail(True, cuda_driver.OUT_OF_MEMORY, "cuMemHostAlloc")
        usm.copy(a, data)
        assert (usm.to_numpy(a) == data).all()
        assert ring()[0] == 0 and ring()[1] >= 2
        driver.fail(False, cuda_driver.OUT_OF_MEMORY, "cuMemHostAlloc")
        usm.copy(a, data)
        assert ring()[0] > 0
    """)


def test_a_failed_copy_says_how_much_was_copied(run):
    run("""
        data = numbers(6 << 20)
        a = usm.asarray(data, queue=queue, kind="device", copy=True)
        driver.fail(True, 719, "cuMemcpyAsync")
        for call in (lambda: usm.copy(a, data), lambda: usm.to_numpy(a)):
            try:
                call()
            except usm.errors.DeviceError as error:
                assert f"0 of {data.size} bytes were copied" in str(error), error
            else:
                raise AssertionError("it succeeded")
        driver.fail(False, 719, "cuMemcpyAsync")
    """)


@pytest.mark.parametrize("size", [0, 1, 7919, (1 << 20) - 1, 4_194_319])
def test_copies_of_any_size_and_alignment_arrive_whole(run, size):
    run(f"""
        size = {size}
        for offset in (0, 1, 3):
            data = numbers(size + offset)[offset:]
            a = usm.empty(size + offset, "u1", queue=queue, kind="device")[offset:]
            usm.copy(a, data)
            target = np.zeros(size + 5, "u1")[5:]
            usm.copy(target, a)
            assert (target == data).all()
        floats = numbers(size * 4 + 1)[1:].view("f4")
        assert size == 0 or not floats.flags.aligned
        b = usm.empty(size, "f4", queue=queue, kind="device")
        usm.copy(b, floats)
        assert usm.to_numpy(b).tobytes() == floats.tobytes()
        assert driver.misuses() == 0
    """)


def test_a_destination_with_shared_elements_keeps_the_last(run):
    run("""
        a = usm.zeros(5, "i4", queue=queue, kind="device")
        alias = np.lib.stride_tricks.as_strided(np.zeros(3, "i4"), (4, 3), (0, 4))
        usm.copy(alias, usm.asarray(np.arange(12, dtype="i4").reshape(4, 3), queue=queue, kind="device", copy=True))
        assert (alias[0] == [9, 10, 11]).all()
    """)


def test_a_source_that_goes_early_is_kept_or_refused(run):
    run("""
        source, size = bytearray(numbers(3 << 20).tobytes()), 3 << 20
        kept = bytes(source)
        a = usm.empty(size, "u1", queue=queue, kind="device")
        driver.hold(True)
        data = np.frombuffer(source, "u1").copy()
        event = usm.copy(a, data, wait=False)
        del data
        event2 = usm.copy(a, np.frombuffer(source, "u1"), wait=False)
        try:
            source.extend(b"x")
        except BufferError:
            pass
        else:
            raise AssertionError("memory of a copy was resized")
        driver.hold(False)
        event.wait(), event2.wait()
        assert usm.to_numpy(a).tobytes() == kept
    """)


def test_a_child_of_a_fork_ends_beside_a_living_ring(run):
    run("""
        data = numbers(6 << 20)
        a = usm.asarray(data, queue=queue, kind="device", copy=True)
        assert ring()[0] > 0
        for _ in range(3):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                try:
                    usm.copy(a, data)
                except usm.errors.DeviceError:
                    pass
                else:
                    os._exit(1)
                host = usm.zeros(100, "u1", device="host")
                usm.trim()
                os._exit(0 if bytes(host) == bytes(100) else 2)
            assert os.waitpid(child, 0)[1] == 0
        assert (usm.to_numpy(a) == data).all()
    """)


@pytest.mark.parametrize("end", ["pass", "sys.exit(5)", "os._exit(5)"])
def test_a_process_ends_while_threads_copy(run, end):
    status = 0 if end == "pass" else 5
    run(f"""
        data = numbers(6 << 20)
        def work():
            a = usm.empty(data.size, "u1", queue=queue, kind="device")
            while True:
                usm.copy(a, data)
        threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        [thread.start() for thread in threads]
        time.sleep(0.2)
        {end}
    """, status)


def test_an_interrupt_ends_a_long_copy_and_says_how_much_was_copied(run):
    run("""
        size = 600 << 20
        target = np.empty(size, "u1")
        def handler(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        one = usm.zeros(1, "u1", device="host")
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        try:
            usm.copy(target, one)
        except KeyboardInterrupt as raised:
            notes = getattr(raised, "__notes__", ["bytes were copied"])
            assert any("bytes were copied" in note for note in notes), notes
        else:
            raise AssertionError("it was not interrupted")
    """)


def test_files_are_read_into_its_blocks(run, tmp_path):
    run(f"""
        from pathlib import Path
        folder = Path({str(tmp_path)!r})
        for size in (0, 1000, (9 << 20) + 7):
            data = numbers(size)
            usm.save(folder / "a.npy", usm.asarray(data, queue="host"))
            usm.save(folder / "b.safetensors", {{"x": data[: size // 3], "y": data}})
            usm.trim()
            a = usm.load(folder / "a.npy", device=queue)
            assert (ring()[0] > 0) == (size > 1 << 20), size
            b = usm.load(folder / "b.safetensors", device=queue)
            one = usm.load(folder / "b.safetensors", device=queue, threads=1)
            for loaded in (a, b["y"], one["y"]):
                assert loaded.kind == "device" and (usm.to_numpy(loaded) == data).all()
            assert (usm.to_numpy(b["x"]) == data[: size // 3]).all()
        assert driver.misuses() == 0
    """)


def test_a_file_that_ends_early_stops_its_threads(run, tmp_path):
    run(f"""
        from pathlib import Path
        path = Path({str(tmp_path)!r}) / "a.safetensors"
        size = 20 << 20
        for end in (200, 5 << 20, size - 1):
            usm.save(path, {{"a": numbers(size)}})
            loaded = usm.load(path, device=queue)
            os.truncate(path, end)
            try:
                loaded["a"]
            except usm.errors.InterfaceError as error:
                assert f"it ends at byte {{end}}, but had {{loaded._file.size}} when it was opened" in str(error), error
            else:
                raise AssertionError("it succeeded")
        # The blocks are free, and the device is whole.
        usm.save(path, {{"a": numbers(size)}})
        assert (usm.to_numpy(usm.load(path, device=queue)["a"]) == numbers(size)).all()
        driver.fail(True, 719, "cuMemcpyAsync")
        try:
            usm.load(path, device=queue)["a"]
        except usm.errors.DeviceError:
            pass
        else:
            raise AssertionError("it succeeded")
        driver.fail(False, 719, "cuMemcpyAsync")
        assert driver.misuses() == 0
    """)
