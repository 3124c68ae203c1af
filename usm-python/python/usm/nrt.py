"""Reference-counted memory blocks that compiled code, C and Python share.

The runtime is the C library ``libusm_nrt``. The package has the library and its header; this module
calls it. The runtime does not need Numba; :mod:`usm.numba` makes Numba use it.
"""

import os as _os
import pathlib as _pathlib
import sys as _sys
from collections.abc import Callable as _Callable
from typing import NamedTuple

from . import _usm
from ._usm import MemInfo
from .errors import DeviceError as _DeviceError

__all__ = [
    "AllocationStats",
    "LiveBlock",
    "MemInfo",
    "drain",
    "get_allocation_stats",
    "get_include",
    "get_library",
    "leaks",
    "track",
]

_HERE = _pathlib.Path(__file__).parent
_NAMES = {"win32": "usm_nrt.dll", "darwin": "libusm_nrt.dylib"}


class AllocationStats(NamedTuple):
    """Counts of blocks, with the fields of Numba's ``rtsys.get_allocation_stats()``."""

    #: Memory blocks allocated. A block with its header counts once, a list's header and payload
    #: twice.
    alloc: int
    #: Memory blocks freed.
    free: int
    #: Headers initialised.
    mi_alloc: int
    #: Headers destroyed.
    mi_free: int


class LiveBlock(NamedTuple):
    """A block that is alive, as :func:`leaks` reports it."""

    #: Address of the header; :meth:`MemInfo.from_address` takes it while the block lives.
    address: int
    #: Address of the data.
    data: int
    #: Bytes of data, 0 where the allocating code did not give a size.
    size: int
    #: References at the moment of the report.
    refcount: int
    #: The number of blocks that were tracked before this one.
    sequence: int
    #: The Python lines that made it, outermost first; empty unless ``track(origins=True)``.
    origin: str


def get_library() -> str:
    """The path of the C library, for linking and for ``ctypes``.

    It is the library that this module itself uses. The environment variable ``USM_NRT_LIBRARY``
    names another file of the same version. Raises :class:`usm.DeviceError` where the package has no
    library (``cargo xtask wheel`` includes it).
    """
    given = _os.environ.get("USM_NRT_LIBRARY")
    if given:
        return given
    name = _NAMES.get(_sys.platform, "libusm_nrt.so")
    path = _HERE / "lib" / name
    if not path.is_file():
        raise _DeviceError(f"{name} is not in this package: build the wheel with `cargo xtask wheel`, or set USM_NRT_LIBRARY")
    return str(path)


def get_include() -> str:
    """The folder of ``usm_nrt.h``, for the compiler's option ``-I``.

    Raises :class:`usm.DeviceError` where the package has no header.
    """
    path = _HERE / "include"
    if not (path / "usm_nrt.h").is_file():
        raise _DeviceError("usm_nrt.h is not in this package: build the wheel with `cargo xtask wheel`")
    return str(path)


#: The counts of Numba's own runtime; ``None`` before :func:`usm.numba.install`.
_numba_stats: _Callable[[], tuple[int, int, int, int]] | None = None


def get_allocation_stats() -> AllocationStats:
    """Counts of the blocks made and freed since the library was opened.

    After :func:`usm.numba.install` the counts include the blocks that Numba's own runtime makes
    around Python objects. Counting cannot be turned off.
    """
    counts, foreign = _usm._nrt_stats()
    if _numba_stats is None:
        return AllocationStats(*counts)
    # A block of usm that Numba's runtime destroyed is counted by both runtimes.
    both = (0, foreign, 0, foreign)
    return AllocationStats(*(ours + theirs - twice for ours, theirs, twice in zip(counts, _numba_stats(), both)))


def drain() -> None:
    """Frees the memory that the calling thread keeps for its next blocks.

    A thread keeps up to 256 KiB of small blocks that it has freed, and as much again in the source
    of :func:`usm.numba.install`. The end of a thread also frees them, and
    :func:`usm.numba.uninstall` frees those of all threads.
    """
    _usm._nrt_drain(False)


def track(on: bool = True, *, origins: bool = False) -> None:
    """Starts or stops recording the blocks that :func:`leaks` shows.

    Only blocks made later are recorded. With ``origins`` each record has the Python lines that made
    the block, at the cost of a stack trace for each block. For an array that an ``@njit`` function
    makes in the source of :func:`usm.numba.install`, this is the line of the call.
    """
    _usm._nrt_track(on, origins)


def leaks() -> list[LiveBlock]:
    """The tracked blocks that are alive, oldest first; empty unless :func:`track` is on."""
    return [LiveBlock(*block) for block in _usm._nrt_leaks()]
