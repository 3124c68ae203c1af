"""Every row of the matrix on arrays that are larger than the process's free memory.

`python memory_case.py` prints each row that ended other than by an answer or an exception for want
of memory. The caller checks the status too.
"""

import mmap
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np

import usm
from matrix.conversions import CONVERSIONS
from matrix.rows import rows
from matrix.state import State

# Each element is the same byte, so the array itself needs almost no memory. A result needs twice
# the process's limit.
ELEMENTS = 1 << 23
ROOM = 1 << 22
REFUSALS = (usm.Error, TypeError, ValueError, BufferError, AttributeError)


def repeated(shape, strides, writable=True):
    return usm.asarray(np.lib.stride_tricks.as_strided(np.zeros(2, "|u1"), shape, strides, writeable=writable))


def sparse(shape, strides):
    """The same, from fresh memory that is not paged in."""
    memory = np.frombuffer(mmap.mmap(-1, 2 * ELEMENTS), "|u1")
    return usm.asarray(np.lib.stride_tricks.as_strided(memory, shape, strides))


SOURCES = {
    "one byte": lambda: repeated((ELEMENTS,), (0,)),
    "one byte, read-only": lambda: repeated((ELEMENTS,), (0,), False),
    "rows of one byte": lambda: repeated((ELEMENTS // 8, 8), (0, 0)),
    "empty rows": lambda: repeated((ELEMENTS, 0), (0, 1)),
    "packed": lambda: sparse((ELEMENTS,), (1,)),
    "every second": lambda: sparse((ELEMENTS,), (2,)),
    "overlapping": lambda: sparse((ELEMENTS // 4, 4), (4, 0)),
}


def limited(call):
    """With ROOM more bytes than the process has now."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * mmap.PAGESIZE + ROOM, resource.RLIM_INFINITY))
    try:
        return call()
    except (MemoryError, *REFUSALS) as error:
        return error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def cases():
    for name, make in SOURCES.items():
        found = make()
        for row_name, row in rows(found):
            # One array after another, for as long as there are elements.
            if "__iter__" not in row_name:
                yield f"{name}/{row_name}", (lambda row=row, found=found: row.call(found, 7) if type(row).__name__ == "Write" else row.call(found))
        for conversion, convert in CONVERSIONS.items():
            if conversion not in ("through numba", "numba"):
                state = State(found, range(0), b"", True, None)
                yield f"{name}/{conversion}", (lambda convert=convert, state=state: convert(state))


def main():
    # Modules that are imported at first use.
    tiny = repeated((2,), (1,))
    for _, row in rows(tiny):
        limited(lambda row=row: row.call(tiny, 7) if type(row).__name__ == "Write" else row.call(tiny))
    ran = refused = 0
    for name, call in cases():
        print(name, flush=True)
        answer = limited(call)
        ran += 1
        refused += isinstance(answer, MemoryError)
        del answer
    print(f"{ran} {refused}")


if __name__ == "__main__":
    main()
