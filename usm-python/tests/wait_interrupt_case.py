"""Interrupts waits for a kernel that never ends on a device: `case.py SELECTOR`."""

import os
import signal
import sys
import time

import numpy as np

import usm


@usm.kernel
def forever(a):
    while a[0] > -1:
        a[0] = a[0] * 1


queue = usm.Queue(sys.argv[1])
a, other = usm.zeros(4, queue=queue), usm.zeros(4, queue=queue)
# Compiled before, because an interrupt would end that too.
a[0] = -2
forever[1](a)
a[0] = 1
waits = {
    "call": lambda: forever[1](a),
    "wait": a.wait,
    "tolist": a.tolist,
    "item": a[0].item,
    "asarray": lambda: np.asarray(a),
    "copy": lambda: usm.copy(other, a),
    "to_numpy": lambda: usm.to_numpy(a),
    "store": lambda: a.__setitem__(1, 3.0),
    "fill": lambda: a.fill(2.0),
    "synchronize": queue.wait,
}
# A timer interrupts as Ctrl-C does.
signal.signal(signal.SIGALRM, signal.default_int_handler)
for name, wait in waits.items():
    start = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        wait()
    except KeyboardInterrupt:
        took = time.monotonic() - start
        # Each waits for its own interrupt: none is raised a second time.
        print(name, "interrupted" if 0.4 < took < 10 else took, flush=True)
    else:
        print(name, "ran to its end", flush=True)
# No runtime can stop the kernel.
os._exit(0)
