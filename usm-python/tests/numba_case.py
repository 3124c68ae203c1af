"""Shared parts of the tests of `usm.numba`.

Each case is a process of its own, because a process has one Numba and machine code is tied to the
runtime that it was compiled for.
"""

import atexit
import textwrap

from conftest import device_of, require
from effort import some
from warm import Warm

require("numba", "usm.numba is for it")

#: The beginning of every case.
SETUP = """
import gc
import numpy as np
import usm
from numba import njit

def refused(error, words, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except error as problem:
        assert words in str(problem), str(problem)
    else:
        raise AssertionError(f"not refused: {words}")

def held(kind):
    usm.nrt.drain()
    return usm.stats()[str(usm.numba.installed().queue.device.selector)]["usm_" + kind]

def balanced():
    gc.collect()
    stats = usm.nrt.get_allocation_stats()
    return usm.numba.installed().live == 0 and stats.alloc == stats.free and stats.mi_alloc == stats.mi_free
"""

#: The imports of all cases, made once.
WARM = Warm(SETUP)
atexit.register(WARM.close)

#: Every runtime and every kind; with more effort each pair.
SOURCES = some([("host", "host"), ("opencl", "shared"), ("sycl", "host")], [("host", "shared"), ("opencl", "host"), ("sycl", "shared")])


def run(script):
    """The script's output; its status must be 0."""
    code, printed = WARM.run(textwrap.dedent(script))
    assert code == 0, printed
    return printed


def selector(backend):
    return device_of(backend).selector
