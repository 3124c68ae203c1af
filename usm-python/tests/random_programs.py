"""One random program over the package: `python random_programs.py SEED STEPS BACKEND...`.

Each step takes objects that earlier steps made, whatever they are, and calls something with them:
it is refused by a typed error, or gives an object for later steps. What was made of `bytes` may be
read only, and is looked at all the time. The program ends with `held`.
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


@usm.kernel
def moves(a, b):
    i = usm.get_global_id(0)
    a[i] = b[b.size - 1 - i]


@usm.kernel
def sums(a, x):
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    of_group = usm.local.array(4, "int32")
    of_group[l % 4] = 1
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    a[i * 2] += x + of_group[0]


@usm.kernel
def collects(a, b):
    usm.atomic.add(a, usm.get_global_id(0) % 3, b[0])


@usm.kernel
def reads(a, b):
    c = usm.private.array(3, "int32")
    c[0] = b[usm.get_global_id(0) + 1]
    if a.size > 2:
        a[usm.get_global_id(0)] = c[0]


KERNELS = [moves, sums, collects, reads]


class Only:
    """Some attributes of another object, asked for anew each time."""

    def __init__(self, of, *names):
        self.of, self.names = of, names

    def __getattr__(self, name):
        if name in ("of", "names") or name not in self.names:
            raise AttributeError(name)
        return getattr(self.of, name)


class Late:
    """Releases an object during its conversion to a number."""

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
            *self.of_kernels(),
            *self.of_places(),
            together,
            self.drop,
            gc.collect,
        )

    def of_kernels(self):
        """Kernel launches on arbitrary arrays.

        Among them are one array twice, read-only and foreign arrays, and arrays with pending work.
        """
        one = self.choice
        argument = lambda: one([self.of(usm.Array, np.ndarray), self.of(usm.Array), one(self.pool or [1]), 1, -1.5])
        size = lambda: one([1, 2, 3, 8, (2, 2), 0, Late(self)])
        local = lambda: one([None, None, 1, 2, 4, usm.DEFAULT_LOCAL_SIZE])
        launch = lambda kernel: kernel[size()] if (found := local()) is None else kernel[size(), found]

        def same(how):
            it = self.of(usm.Array)
            return how(launch(one(KERNELS)))(it, one([it, it[1:], it[::-1], it.reshape(-1)]))

        return (
            lambda: launch(one(KERNELS))(argument(), argument()),
            lambda: launch(one(KERNELS)).submit(argument(), argument(), after=[it for it in [self.of(usm.Event)] if it]),
            lambda: launch(one(KERNELS).check)(argument(), argument()),
            lambda: launch(one(KERNELS).proof)(argument(), argument()),
            lambda: same(lambda launch: launch),
            lambda: same(lambda launch: launch.submit),
            lambda: (lambda it: launch(moves).submit(it, it.copy()))(usm.zeros(8, one(["<i4", "<f4"]), queue=one(self.queues))),
        )

    def of_places(self):
        """Defaults, hints, handles for others, statistics, plans."""
        one, array, queue = self.choice, lambda: self.of(usm.Array), lambda: one(self.queues)
        handles = [it for it in self.pool if isinstance(it, bytes)]

        def within(place):
            with place:
                it = one([lambda: usm.zeros(4), lambda: self.of(usm.Array).copy(), lambda: usm.asarray([1, 2]), lambda: gc.collect()])()
                self.drop()
                return it

        def handle():
            text = bytearray(array().ipc_handle())
            if text and one([True, False]):
                text[self.random.randrange(len(text))] ^= 1 << self.random.randrange(8)
            return bytes(text[: one([None, 8, 0])])

        def plan():
            rows = [(first := self.random.randrange(6), first + self.random.randrange(4), one([1, 64, 256])) for _ in range(4)]
            return usm.plan(rows)

        return (
            lambda: within(queue()),
            lambda: within(usm.Device(one(self.backends))),
            lambda: within(usm.device_context(one(self.backends))),
            lambda: array().prefetch(queue=one([None, queue()])),
            lambda: array().advise(one(["prefer_device", "read_mostly", "nothing", 3])),
            handle,
            lambda: usm.open_ipc(one(handles or [b""]), queue=one([None, queue()])),
            lambda: usm.snapshot() and None,
            lambda: usm.stats() and None,
            lambda: usm.reset_peak(),
            lambda: usm.history(keep=one([0, 1, 100])) and None,
            plan,
            lambda: plan().arena(queue(), kind=one([None, "host", "device", "shared"])),
            lambda: self.of(usm.Plan).arena(queue()),
            lambda: self.of(usm.Arena)[one([0, 1, 2, 3, 4, -1, Late(self)])],
            lambda: self.of(usm.Arena).array(one([0, 1, 2, 3]), one([1, (2, 2), 64, 0]), one(TYPES)),
            lambda: self.of(usm.Arena).queue.wait(),
            lambda: (self.of(usm.Arena)[0].fill(self.random.randrange(9)), self.of(usm.Arena)[1].copy())[1],
            lambda: self.of(usm.Event).wait(),
            lambda: queue().barrier(),
            lambda: queue().barrier([it for it in [self.of(usm.Event)] if it]),
            lambda: array().queue.context.keep_history(one([0, 3])),
        )

    def run(self, steps):
        operations, done = list(self.operations()), set()
        for step in range(steps):
            number = self.random.randrange(len(operations))
            print(step, number, file=sys.stderr)
            made = refused(operations[number], lambda number=number: done.add(number))
            # NumPy lets everybody write over the pointers of its arrays of objects: test_buffers.py
            # asks whether we do.
            has_objects = isinstance(made, np.ndarray) and made.dtype.hasobject
            if made is not None and not isinstance(made, (bool, int, str)) and not has_objects:
                if len(self.pool) >= 60:
                    self.drop()
                self.pool.append(made)
            for content, before in self.canaries:
                assert content == bytes(before), f"step {step}, operation {number}: wrote read-only memory"
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
