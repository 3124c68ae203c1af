"""One end of an interpreter, by its name, while work is in flight: `python ends_case.py END ORDER`.
`USM_DEVICE` selects the runtime."""

import atexit
import ctypes
import itertools
import os
import signal
import sys
import threading
import time

if len(sys.argv) > 1 and sys.argv[1] == "atexit_before":
    atexit.register(lambda: submit())

import usm

BYTES = 4 << 20


class Lane:
    """A queue with two arrays."""

    def __init__(self, size=BYTES):
        self.queue = usm.Queue(os.environ["USM_DEVICE"], in_order=sys.argv[2] == "in_order")
        self.src, self.dst = (usm.empty(size, dtype="u1", queue=self.queue) for _ in range(2))

    def copy(self):
        return self.queue.copy(self.dst, self.src)


def submit():
    for lane in LANES:
        lane.copy()
        lane.copy()


def daemon(work):
    for lane in [Lane(4096) for _ in range(3)]:
        threading.Thread(target=work, args=(lane,), daemon=True).start()
    time.sleep(0.03)
    sys.exit(3)


def endless(step):
    def work(lane):
        while True:
            step(lane)

    return lambda: daemon(work)


def submits(lane):
    """Submits without a bound, or is at most 100 copies ahead of a driver that starts work late.

    Such a driver takes milliseconds for each copy, and thousands would take longer than the limit
    of a wait.
    """
    for _ in range(100):
        last = lane.copy()
    if "late" in os.environ.get("USM_CUDA_SETTINGS", ""):
        last.wait()


def threads_that_build():
    """Each thread builds one kernel after the other; the end comes while later ones are built."""
    os.environ["USM_KERNEL_CACHE"] = "off"
    numbers, built = itertools.count(), []

    def make(number):
        @usm.kernel
        def kernel(array):
            i = usm.get_global_id(0)
            array[i] = array[i] * number + i

        return kernel

    def build(lane):
        array = usm.zeros(64, dtype="i4", queue=lane.queue)
        while True:
            make(next(numbers))[64](array)
            built.append(lane)

    for lane in [Lane(4096) for _ in range(3)]:
        threading.Thread(target=build, args=(lane,), daemon=True).start()
    while len(built) < 6:
        time.sleep(0.001)
    sys.exit(3)


class Slow:
    """A library's object whose methods take time."""

    def __init__(self):
        self.inner = usm.zeros(4, dtype="u1", device="host")

    def __dlpack__(self, **options):
        time.sleep(0.0004)
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self):
        time.sleep(0.0004)
        return self.inner.__dlpack_device__()


class SlowDictionary(Slow):
    __dlpack__ = __dlpack_device__ = None

    @property
    def __array_interface__(self):
        time.sleep(0.0004)
        return self.inner.__array_interface__


def threads_in_python():
    """Threads are in Python code that the library calls when the interpreter ends."""
    begun = []

    def use(turn):
        one = (Slow, SlowDictionary)[turn % 2]()
        while True:
            usm.from_dlpack(one, copy=True) if turn % 4 == 0 else usm.asarray(one)
            begun.append(turn)

    for turn in range(12):
        threading.Thread(target=use, args=(turn,), daemon=True).start()
    while len(set(begun)) < 12:
        time.sleep(0.001)
    sys.exit(3)


class SlowValue:
    """A value whose every method takes time, as a program's may."""

    def _number(self):
        time.sleep(0.0004)
        return 2

    __index__ = __int__ = __len__ = _number

    def __float__(self):
        return float(self._number())

    def __complex__(self):
        return complex(self._number())

    def __bool__(self):
        return bool(self._number())

    def __str__(self):
        return str(self._number())

    __repr__ = __fspath__ = __str__

    def __iter__(self):
        return iter([(0, self._number(), 4), (1, 3, self._number())])

    def __eq__(self, other):
        return bool(self._number())

    def __hash__(self):
        return self._number()

    def __getattr__(self, name):
        self._number()
        raise AttributeError(name)

    def __del__(self):
        self._number()


class SlowNumbers:
    """Memory whose dictionary has slow numbers."""

    def __init__(self, **changed):
        self.kept = bytearray(8)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.kept))
        self.changed = {"shape": (2,), "typestr": "|u1", "data": (address, False), "version": 3, **changed}

    @property
    def __array_interface__(self):
        time.sleep(0.0004)
        return self.changed


def conversions():
    """Calls of the package that run Python code of their arguments."""
    slow, memory = SlowValue(), usm.memory.MemoryUSMHost(64, queue="host")
    arrays = {word: usm.zeros((2, 2, 2), dtype=word, device="host") for word in ("u1", "f4", "f8", "c16", "?")}
    ints = arrays["u1"]
    calls = [lambda array=array: array.fill(slow) for array in arrays.values()]
    calls += [lambda given=given: usm.asarray(given) for given in (slow, [slow], [[slow]], SlowValue(), SlowNumbers(shape=(slow,)))]
    calls += [lambda name=name: usm.zeros(2, **{"device": "host", name: slow}) for name in ("device", "dtype", "kind", "queue", "alignment")]
    return calls + [
        lambda: usm.memory.MemoryUSMHost(slow, queue="host"),
        lambda: usm.memory.MemoryUSMHost(64, alignment=slow, queue="host"),
        lambda: memory.memset(slow),
        lambda: usm.zeros(slow, device="host"),
        lambda: usm.zeros((slow, slow), device="host"),
        lambda: usm.zeros(SlowValue(), device="host"),
        lambda: usm.full(2, slow, dtype="f8", device="host"),
        lambda: ints.reshape(slow, 4),
        lambda: ints[slow],
        lambda: ints[slow:, ::slow],
        lambda: ints.__setitem__(slow, slow),
        lambda: usm.NdRange((slow,), (slow,)),
        lambda: usm.Local(slow, "f4"),
        lambda: usm.plan(slow),
        lambda: usm.plan([(slow, slow, slow)]),
        lambda: usm.plan([(0, 1, 4)], capacity=slow),
        lambda: ints.__dlpack__(dl_device=(slow, slow)),
        lambda: ints.__dlpack__(max_version=(slow, slow)),
        lambda: usm.DType("u1") == slow,
        lambda: ints.to_device(slow),
        lambda: usm.copy(ints, slow),
    ]


def threads_in_values():
    """Threads are in Python code of arguments when the interpreter ends."""
    begun, calls = set(), conversions()

    def use(turn):
        for call in itertools.cycle(calls[turn:] + calls[:turn]):
            try:
                call()
            except (usm.Error, TypeError, ValueError, AttributeError, IndexError, OSError):
                pass
            begun.add(turn)

    for turn in range(len(calls)):
        threading.Thread(target=use, args=(turn,), daemon=True).start()
    while len(begun) < len(calls):
        time.sleep(0.001)
    sys.exit(3)


def pooled_blocks():
    """Blocks of pools live: in use, in the caches of threads, in a `with` block that stays open."""
    device = LANES[0].queue.device
    pool = usm.Pool(device)
    pool.__enter__()
    LANES.extend(Lane() for _ in range(2))
    assert pool.stats()["live"] >= 4 * BYTES, pool
    submit()
    del LANES[-1]  # freed while work uses it
    begun = []

    def work(turn):
        with usm.Pool(device):
            lane = Lane(4096)
            while True:
                usm.empty(4096 + turn, "u1", queue=lane.queue)
                begun.append(turn)

    for turn in range(3):
        threading.Thread(target=work, args=(turn,), daemon=True).start()
    while len(set(begun)) < 3:
        time.sleep(0.001)
    sys.exit(3)


def end_in_a_thread():
    threading.Thread(target=lambda: os._exit(5)).start()
    time.sleep(60)


def exits_in_c():
    """As an extension does that knows nothing of the interpreter."""
    ctypes.PyDLL(None).exit(3)


class Late:
    def __del__(self):
        submit()


def at_del():
    global LATE
    LATE = Late()
    sys.exit(3)


def at_exit():
    atexit.register(submit)
    sys.exit(3)


def terminated():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


def executed():
    os.execv("/bin/sh", ["/bin/sh", "-c", "exit 6"])


def refused():
    """A child's calls of a runtime: one clear error, or an answer from plain host
    memory."""
    on_host = LANES[0].queue.device.backend == "host"
    questions = [submit, LANES[0].queue.wait, lambda: memoryview(LANES[0].dst), lambda: Lane(64)]
    for question in questions:
        try:
            question()
        except usm.errors.DeviceError as error:
            assert not on_host and "fork" in str(error), error
        else:
            assert on_host, question


def forked():
    """Children of a program whose threads allocate and free host memory."""
    stop = threading.Event()
    host = usm.Queue("host")
    shared = [usm.zeros(1 << 16, dtype="u1", queue=host) for _ in range(2)]

    def on_host():
        one, two = (usm.zeros(64, dtype="u1", queue=host) for _ in range(2))
        host.copy(one, two).wait()
        assert bytes(memoryview(one)) == bytes(64)
        # The children use the same objects as the threads.
        host.copy(*shared).wait()

    def work():
        while not stop.is_set():
            on_host()

    threads = [threading.Thread(target=work) for _ in range(3)]
    [thread.start() for thread in threads]
    died = []
    for number in range(int(os.environ.get("USM_FORKS", 12))):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            # The parent's wait for its threads is not the child's.
            stop.set()
            on_host()
            refused()
            os._exit(0) if number % 2 else sys.exit(0)
        _, status = os.waitpid(child, 0)
        died += [status] if status else []
    stop.set()
    [thread.join() for thread in threads]
    assert not died, died
    sys.exit(3)


def child_ends():
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        sys.exit(7)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


def interrupted():
    """A handler that is called every millisecond does not end a wait."""
    caught = []
    signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    start = time.monotonic()
    while time.monotonic() - start < 0.15:
        submit()
        for lane in LANES:
            lane.queue.wait()
            lane.copy().wait()
    # The interpreter gives handlers back before the process ends.
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert caught
    submit()
    sys.exit(3)


def raises():
    raise ValueError("of the program")


ENDS = {
    # Name: the action, and the status; negative for a signal.
    "end_of_script": (lambda: None, 0),
    "sys_exit": (lambda: sys.exit(3), 3),
    "exception": (raises, 1),
    "os_exit": (lambda: os._exit(5), 5),
    "os_exit_in_a_thread": (end_in_a_thread, 5),
    "exit_of_c": (exits_in_c, 3),
    "sigterm": (terminated, -signal.SIGTERM),
    "exec": (executed, 6),
    "threads_that_submit": (endless(submits), 3),
    "threads_that_wait": (endless(lambda lane: lane.copy().wait()), 3),
    "threads_that_open_and_drop": (endless(lambda _: Lane(4096).copy()), 3),
    "threads_that_build": (threads_that_build, 3),
    "threads_in_python": (threads_in_python, 3),
    "threads_in_values": (threads_in_values, 3),
    "pooled_blocks": (pooled_blocks, 3),
    "atexit_before": (lambda: sys.exit(3), 3),
    "atexit_after": (at_exit, 3),
    "del": (at_del, 3),
    "child_of_a_fork": (child_ends, 7),
    "forks": (forked, 3),
    "signals": (interrupted, 3),
}

if __name__ == "__main__":
    LANES = [Lane(), Lane()]
    submit()
    ENDS[sys.argv[1]][0]()
