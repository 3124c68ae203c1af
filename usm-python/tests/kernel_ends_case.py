"""Kernels whose loops would run for years: each leaves its arrays, or is interrupted by Ctrl-C.
Prints the name of each before it: `case.py outside|interrupt|handler DEVICE`."""

import os
import signal
import sys
import threading
import time

import usm

FOREVER = 1 << 62


@usm.kernel
def counting(a, n, step):
    s = 0
    for j in range(n):
        s += a[j]
    a[0] = s


@usm.kernel
def storing(a, n, step):
    for j in range(n):
        a[j] = j


@usm.kernel
def stepping(a, n, step):
    s = 0
    for j in range(0, n, step):
        s += a[j]
    a[0] = s


@usm.kernel
def downwards(a, n, step):
    s = 0
    for j in range(n, 0, -1):
        s += a[j]
    a[0] = s


@usm.kernel
def waiting(a, n, step):
    j = 0
    while j < n:
        a[0] = a[j]
        j += step


@usm.kernel
def adding(a, n, step):
    for j in range(n):
        usm.atomic.add(a, j, 1)


@usm.kernel
def nested(a, n, step):
    for i in range(n):
        for j in range(3):
            for k in range(step):
                a[0] = a[i + j + k]


@usm.kernel
def behind_a_while(a, n, step):
    j = 0
    while j < 20:
        a[0] = a[j]
        j += 1
    for i in range(n):
        a[0] = a[0] ^ i


@usm.kernel
def known_and_long(a, n, step):
    for j in range(1 << 60):
        a[0] = a[j]


@usm.kernel
def behind_it(a, n, step):
    a[n] = 1
    for j in range(n):
        a[0] = a[0] * 3 + j
    for i in range(0, n, step):
        a[0] = a[0] * 3 + i
    while a[0] != 1 << 50:
        a[0] = (a[0] * 3 + n) % 1000


@usm.kernel
def left_and_continued(a, n, step):
    for j in range(n):
        if a[j] == 7:
            break
        if a[j + 1] == 8:
            continue
        for k in range(n):
            if k > 5:
                break
        a[0] = a[j] + k


@usm.kernel
def together(a, n, step):
    rows = usm.local.array(4, "int64")
    l = usm.get_local_id(0)
    for j in range(n):
        one = a[j]
        rows[l] = one
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        a[l] = rows[3 - l]
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)


@usm.kernel
def together_while(a, n, step):
    rows = usm.local.array(4, "int64")
    l = usm.get_local_id(0)
    j = 0
    while j < n:
        one = a[j]
        rows[l] = one
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        a[l] = rows[3 - l]
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        j += step


@usm.kernel
def items_of_a_group(a, n, step):
    rows = usm.local.array(4, "int64")
    l = usm.get_local_id(0)
    for j in range(0, n, step):
        rows[l] = a[j + l]
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        a[l] = rows[3 - l]
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)


@usm.kernel
def rows(a, n, step):
    i = usm.get_global_id(0)
    s = 0
    for j in range(n):
        s += a[(i + j) % 300]
    a[i] = s


@usm.kernel
def endless(a, n, step):
    while a[0] >= 0:
        a[0] = 1


@usm.kernel
def long(a, n, step):
    s = 0
    for j in range(n):
        s += a[j % 300] ^ j
    a[0] = s


@usm.kernel
def long_by_steps(a, n, step):
    s = 0
    for j in range(0, n, step):
        s += a[j % 300] ^ j
    a[0] = s


@usm.kernel
def long_of_short(a, n, step):
    s = 0
    for i in range(n):
        for j in range(step):
            s += a[j % 300] ^ i
        for j in range(8):
            s += a[j] ^ i
    a[0] = s


@usm.kernel
def long_in_short(a, n, step):
    s = 0
    for i in range(4):
        for j in range(n):
            s += a[j % 300] ^ i
    a[0] = s


@usm.kernel
def long_of_narrow(a, n, step):
    s = 0
    for i in range(n):
        for j in range(3, 100, step):
            s += a[j] ^ i
            if s == n:
                break
    a[0] = s


@usm.kernel
def long_together(a, n, step):
    rows = usm.local.array(4, "int64")
    l = usm.get_local_id(0)
    for j in range(n):
        rows[l] = a[j % 300]
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        a[l] = rows[3 - l]
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)


@usm.kernel
def short(a, n, step):
    a[usm.get_global_id(0)] = 5


GROUPED = (together, together_while, items_of_a_group, long_together)
OUTSIDE = (counting, storing, stepping, downwards, waiting, adding, nested, behind_a_while, known_and_long, behind_it)
OUTSIDE += (left_and_continued, together, together_while)
ON_HOST = (items_of_a_group,)  # On a device, the items that are inside wait for the others.
LONG = (endless, long, long_by_steps, long_of_short, long_in_short, long_of_narrow, rows, long_together)


def launch(kernel, a):
    items = 128 if kernel is rows else 4 if kernel in GROUPED else 1
    size = (items, items) if kernel in GROUPED else items
    kernel[size](a, FOREVER, 3)


def outside(kernel, a):
    try:
        launch(kernel, a)
    except usm.KernelError as error:
        assert "is outside" in str(error), error
    else:
        raise AssertionError("no index was outside")


def interrupt_soon():
    def interrupt():
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()


def interrupted(kernel, a):
    interrupt_soon()
    try:
        launch(kernel, a)
    except KeyboardInterrupt:
        short[4](a, 0, 0)
        assert memoryview(a)[:4].tolist() == [5] * 4
    else:
        raise AssertionError("it ran to its end")


def handled(kernel, a):
    """A handler that uses the array and does not raise; only the second one ends the kernel."""
    seen = []

    def handler(number, frame):
        seen.append(memoryview(a.copy())[2])
        a[2] = 9
        if len(seen) == 2:
            raise TimeoutError
        interrupt_soon()

    before = signal.signal(signal.SIGINT, handler)
    interrupt_soon()
    try:
        launch(kernel, a)
    except TimeoutError:
        assert seen == [0, 9] or kernel is long_together, seen
    else:
        raise AssertionError("it ran to its end")
    finally:
        signal.signal(signal.SIGINT, before)


what, device = sys.argv[1:]
run, kernels = {"outside": (outside, OUTSIDE + ON_HOST * (device == "host")), "interrupt": (interrupted, LONG), "handler": (handled, LONG)}[what]
with usm.device_context(device):
    for kernel in kernels:
        print(f"{kernel.__name__} begins", flush=True)
        array = usm.zeros(300 if run is not outside else 16, "int64")
        run(kernel, array)
print("all ended")
