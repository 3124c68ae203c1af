"""Interrupts waits for work that never ends on a device: `case.py SELECTOR`.

On OpenCL and SYCL that is a kernel. The CUDA driver that executes on the host holds its work back;
it copies by the queue, so that accesses of other memory wait too.
"""

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
rows = usm.zeros((4, 3), queue=queue)
memory = usm.memory.MemoryUSMDevice(32, queue=queue)
waits = {
    "wait": a.wait,
    "tolist": a.tolist,
    "item": a[0].item,
    "asarray": lambda: np.asarray(a),
    "copy": lambda: usm.copy(other, a),
    "to_numpy": lambda: usm.to_numpy(a),
    "store": lambda: a.__setitem__(1, 3.0),
    "fill": lambda: a.fill(2.0),
    "fill other": lambda: other.fill(2.0),
    "zeros": lambda: usm.zeros(4, queue=queue),
    "memset": memory.memset,
    "copy rows": lambda: usm.copy(rows[::2, :2], rows[1::2, 1:3]),
    "synchronize": queue.wait,
}
if sys.argv[1].startswith("cuda"):
    from cuda_driver import Driver

    far = usm.zeros(4, kind="device", queue=queue)
    queue.wait()
    Driver().hold(True)
    queue.copy(a, far)
    waits |= {
        "copy other": lambda: usm.copy(far, np.ones(4)),
        "copy near": lambda: usm.copy(far, other),
        "item other": far[1].item,
        "tolist other": far.tolist,
        "to_numpy other": lambda: usm.to_numpy(far),
        "store other": lambda: far.__setitem__(1, 3.0),
        "from host": lambda: memory.copy_from_host(bytes(32)),
        "to host": memory.copy_to_host,
    }
else:
    # Compiled before, because an interrupt would end that too.
    a[0] = -2
    forever[1](a)
    a[0] = 1
    waits = {"call": lambda: forever[1](a), **waits}
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
print("end", flush=True)
# No runtime can stop the kernel.
os._exit(0)
