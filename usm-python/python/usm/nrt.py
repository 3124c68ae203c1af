"""The reference-counted memory runtime that compiled code, C and Python share: blocks, statistics, leaks.

The runtime is the C library ``libusm_nrt``, which the package ships with its header; everything here is a view of it.
It needs neither Numba nor anything else; :mod:`usm.numba` puts a running Numba on it.
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
    """How many blocks were made and freed, as Numba's ``rtsys.get_allocation_stats()`` counts them."""

    #: Memory blocks allocated: a block with its header counts once, a list's header and payload twice.
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
    #: Bytes of data, 0 where the block's maker did not say.
    size: int
    #: References at the moment of the report.
    refcount: int
    #: How many blocks were tracked before this one.
    sequence: int
    #: The Python lines that made it, outermost first; empty unless asked for.
    origin: str


def get_library() -> str:
    """The path of the C library, for linking and for ``ctypes``: the very runtime that this module looks at.

    ``USM_NRT_LIBRARY`` names another one of the same version. Raises :class:`usm.DeviceError` when the package was built
    without it (``cargo xtask wheel`` builds it in).
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
    """The folder of ``usm_nrt.h``, for ``-I``."""
    path = _HERE / "include"
    if not (path / "usm_nrt.h").is_file():
        raise _DeviceError("usm_nrt.h is not in this package: build the wheel with `cargo xtask wheel`")
    return str(path)


#: What Numba's own runtime counted, once :func:`usm.numba.install` has added it: a callable, or ``None``.
_numba_stats: _Callable[[], tuple[int, int, int, int]] | None = None


def get_allocation_stats() -> AllocationStats:
    """Blocks made and freed since the library was opened, as :class:`AllocationStats`; counting is always on.

    After :func:`usm.numba.install` these are all blocks of Numba, also those that its own runtime makes around Python
    objects.
    """
    counts, foreign = _usm._nrt_stats()
    if _numba_stats is None:
        return AllocationStats(*counts)
    # Both runtimes count a block of ours that Numba's runtime destroyed.
    both = (0, foreign, 0, foreign)
    return AllocationStats(*(ours + theirs - twice for ours, theirs, twice in zip(counts, _numba_stats(), both)))


def drain() -> None:
    """Gives back what the calling thread keeps for its next blocks: up to 256 KiB of small ones that it has freed, and as much of those
    that lived in a source (:func:`usm.numba.install`). A thread does so at its end, and :func:`usm.numba.uninstall` for all threads.
    """
    _usm._nrt_drain(False)


def track(on: bool = True, *, origins: bool = False) -> None:
    """Starts (or stops) the record of live blocks that :func:`leaks` shows: of blocks made from now on.

    With ``origins`` each has the Python lines that made it: for arrays of ``@njit`` functions the line of the call, if
    they live in a source (:func:`usm.numba.install`). That costs a stack trace a block.
    """
    _usm._nrt_track(on, origins)


def leaks() -> list[LiveBlock]:
    """The tracked blocks that are alive, oldest first, as :class:`LiveBlock`; empty unless :func:`track` is on."""
    return [LiveBlock(*block) for block in _usm._nrt_leaks()]
