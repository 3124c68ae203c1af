"""One random program over the package: `python random_programs.py SEED STEPS BACKEND...`.

Each step takes objects that earlier steps made, whatever they are, and calls something with them: it is refused by a typed error, or gives
an object for later steps. What was made of `bytes` may be read only, and is looked at all the time. The program ends with `held`.
"""

import copy
import faulthandler
import gc
import pickle
import random
import sys
import threading

import numpy as np

import usm
from usm import memory, nrt

faulthandler.enable()
REFUSALS = (
    usm.Error, ArithmeticError, AttributeError, BufferError, LookupError, MemoryError, NotImplementedError, RuntimeError, TypeError,
    ValueError, pickle.PickleError,
)
TYPES = ["|u1", "<i2", "<f4", "<i8", "<c16", "|V3", ">i4", "|b1"]
CLASSES = [memory.MemoryUSMHost, memory.MemoryUSMDevice, memory.MemoryUSMShared]


class Only:
    """Some attributes of another object, asked for anew each time."""

    def __init__(self, of, *names):
        self.of, self.names = of, names

    def __getattr__(self, name):
        if name in ("of", "names") or name not in self.names:
            raise AttributeError(name)
        return getattr(self.of, name)


class Late:
    """Lets go of an object while it is asked for a number."""

    def __init__(self, program):
        self.program = program

    def __index__(self):
        self.program.drop()
        gc.collect()
        return self.program.choice([0, 1, 2, -1, 2**70])


class Program:
    def __init__(self, seed, backends):
        self.random = random.Random(seed)
        self.choice = self.random.choice
        self.pool, self.canaries = [], []
        self.backends = backends
        self.queues = [usm.Queue(name, in_order=order) for name in backends for order in (True, False)]

    def drop(self):
        if self.pool:
            self.pool.pop(self.random.randrange(len(self.pool)))

    def of(self, *types):
        found = [it for it in self.pool if isinstance(it, types)]
        return self.choice(found) if found else None

    def bytes(self):
        made = self.random.randbytes(32)
        self.canaries.append((made, bytearray(made)))
        return made

    def operations(self):
        one, choice = self.choice, self.random.choice
        array, anything = lambda: self.of(usm.Array), lambda: one(self.pool or [b"abcd"])
        held, view, plain = lambda: self.of(*CLASSES), lambda: self.of(memoryview), lambda: self.of(np.ndarray)
        queue, kind = lambda: one(self.queues), lambda: one(["host", "device", "shared"])
        shape = lambda: tuple(one([0, 1, 2, 3, 4, 8, Late(self)]) for _ in range(self.random.randrange(4)))
        key = lambda: one([..., 0, -1, slice(1, None), slice(None, None, -1), slice(2, 2), (..., None), None, slice(-3, None), Late(self)])
        value = lambda: one([0, 255, -1, 1.5, 2**40, [1, 2, 3], anything(), Late(self)])

        def apart(load):
            buffers = []
            text = pickle.dumps(array(), 5, buffer_callback=buffers.append)
            return pickle.loads(text, buffers=[load(it) for it in buffers])

        def together():
            it = array()
            calls = [lambda: it.tobytes(), lambda: it.fill(1), lambda: it[1:].copy(), lambda: it.queue.copy(it, it.copy())]
            threads = [threading.Thread(target=refused, args=(choice(calls),)) for _ in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]

        yield from (
            lambda: usm.empty(shape(), one(TYPES), kind=kind(), queue=queue()),
            lambda: usm.zeros(shape(), one(TYPES), kind=kind(), queue=queue()),
            lambda: usm.asarray(self.bytes()),
            lambda: memory.as_usm_memory(usm.asarray(self.bytes())),
            lambda: nrt.MemInfo(self.bytes()),
            lambda: bytearray(self.random.randbytes(one([0, 1, 16, 64]))),
            lambda: np.arange(one([0, 1, 6, 24])).astype(one(["u1", "f4", ">i4", "c16"])),
            lambda: one(CLASSES)(one([1, 8, 32, Late(self)]), queue=queue()),
            lambda: usm.asarray(anything()),
            lambda: usm.asarray(anything(), kind=one([None, kind()]), queue=one([None, queue()]), copy=one([None, True, False])),
            lambda: array()[key()],
            lambda: array().__setitem__(key(), value()),
            lambda: array().fill(value()),
            lambda: array().T,
            lambda: array().reshape(*shape()),
            lambda: array().copy(kind=one([None, kind()]), queue=one([None, queue()])),
            lambda: usm.copy(anything(), anything()),
            lambda: usm.copy(array()[1:], array()[:-1]),
            lambda: queue().copy(anything(), anything()),
            lambda: (lambda it: it.queue.copy(it, usm.zeros(it.shape, it.dtype, kind=kind(), queue=it.queue)))(array()),
            lambda: array().to_device(one(self.backends), stream=one([None, queue()])),
            lambda: memory.as_usm_memory(anything()),
            lambda: one(CLASSES)(anything(), copy=one([True, False])),
            lambda: held().memset(self.random.randrange(256)),
            lambda: held().copy_from_host(anything()),
            lambda: held().copy_to_host(one([None, anything()])),
            lambda: held().copy_from_device(anything()),
            lambda: nrt.MemInfo(anything()),
            lambda: nrt.MemInfo.from_address(self.of(nrt.MemInfo).address),
            lambda: nrt.MemInfo.allocate(one([0, 1, 64])),
            lambda: self.of(nrt.MemInfo).acquire(),
            lambda: self.of(nrt.MemInfo).release(),
            lambda: memoryview(anything()),
            lambda: view().cast("B"),
            lambda: view()[one([slice(1, None), slice(None, None, 2)])],
            lambda: view().__setitem__(0, 1),
            lambda: view().release(),
            lambda: np.asarray(anything()),
            lambda: plain()[::2],
            lambda: plain().__setitem__(..., 7),
            lambda: plain().setflags(write=one([True, False])),
            lambda: np.from_dlpack(anything()),
            lambda: np.array_equal(anything(), anything()),
            lambda: usm.from_dlpack(anything(), copy=one([None, True, False]), dl_device=one([None, (1, 0), (14, 0)])),
            lambda: Only(anything(), "__array_interface__"),
            lambda: Only(anything(), "__sycl_usm_array_interface__"),
            lambda: Only(anything(), "__dlpack__", "__dlpack_device__"),
            lambda: Only(type("", (), {"__array_interface__": {"data": anything(), "shape": (8,), "typestr": "|u1", "version": 3}})(), "__array_interface__"),
            lambda: pickle.loads(pickle.dumps(anything(), one([2, 4, 5]))),
            lambda: apart(lambda it: it),
            lambda: apart(lambda it: bytes(it.raw())),
            lambda: apart(lambda it: anything()),
            lambda: copy.copy(anything()),
            lambda: copy.deepcopy(array()),
            lambda: list(array()),
            lambda: array().tolist(),
            lambda: queue().wait(),
            lambda: self.of(usm.Event).wait(),
            lambda: usm._usm._nrt_window(array(), array().pointer + one([0, 1, -1, 8]), (one([0, 1, 4, 2**62]),), (one([1, -1, 0, 2**62]),), one(TYPES), one([True, False])),
            lambda: self.of(bytearray).extend(b"xx"),
            lambda: self.of(bytearray).clear(),
            together,
            self.drop,
            gc.collect,
        )

    def run(self, steps):
        operations, done = list(self.operations()), set()
        for step in range(steps):
            number = self.random.randrange(len(operations))
            print(step, number, file=sys.stderr)
            made = refused(operations[number], lambda number=number: done.add(number))
            # NumPy lets everybody write over the pointers of its arrays of objects: test_buffers.py asks whether we do.
            has_objects = isinstance(made, np.ndarray) and made.dtype.hasobject
            if made is not None and not isinstance(made, (bool, int, str)) and not has_objects:
                if len(self.pool) >= 60:
                    self.drop()
                self.pool.append(made)
            for content, before in self.canaries:
                assert content == bytes(before), f"step {step}, operation {number}: wrote what may be read only"
        assert len(done) > len(operations) * 3 // 4, f"most of the operations are always refused: {sorted(done)}"


def refused(call, done=lambda: None):
    try:
        made = call()
    except REFUSALS:
        return None
    done()
    return made


if __name__ == "__main__":
    program = Program(int(sys.argv[1]), sys.argv[3:])
    if "sycl" in sys.argv:
        import dpctl  # noqa: F401 so that dictionaries of ours name its queues
    program.run(int(sys.argv[2]))
    program.pool.clear()
    gc.collect()
    print("held")
