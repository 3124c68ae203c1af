"""Interrupts a kernel that would run for years: `case.py NUMBER_OF_RANGE`, or `case.py check`."""

import os
import signal
import sys
import threading
import time

import usm


@usm.kernel
def line(a):
    i = usm.get_global_id(0)
    if i < a.size:
        a[i] = 1


@usm.kernel
def plane(a):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    if i == 0 and j < a.size:
        a[j] = 1


@usm.kernel
def forever(a):
    while a[0] >= 0:
        a[0] = 1


def interrupt():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)


a = usm.zeros(4, "int32", device="host")
ranges = [(line, (2**62,)), (plane, (3, 2**60)), (plane, (2**60, 3))]
kernel, size = (forever.check, 1) if sys.argv[1] == "check" else ranges[int(sys.argv[1])]
line[4](a)
plane[(1, 4), None](a)
threading.Thread(target=interrupt).start()
start = time.monotonic()
try:
    kernel[size, None](a)
except KeyboardInterrupt:
    took = time.monotonic() - start
    line[4](a)
    print("interrupted" if took < 20 else took)
else:
    print("ran to its end")
