"""The classes and functions of ``dpctl.memory``, on SYCL devices and on all others.

Code written for dpctl works when the import is changed. Where a program has imported dpctl, an
object of SYCL memory is an instance of dpctl's class too, and dpctl takes it as its own: in
``SyclQueue.submit``, ``memcpy``, ``prefetch`` and the buffers of its arrays.
"""

from typing import Any as _Any

from . import _usm
from ._dpctl_memory import _modules
from ._dpctl_memory import as_dpctls as _as_dpctls
from ._usm import _Memory
from .errors import AllocationError as USMAllocationError

__all__ = [
    "MemoryUSMDevice",
    "MemoryUSMHost",
    "MemoryUSMShared",
    "USMAllocationError",
    "as_usm_memory",
]


class MemoryUSMHost(_usm.MemoryUSMHost):
    """USM host memory."""

    def __new__(cls, other: _Any, *, alignment: int = 0, queue: _Any = None, copy: bool = False) -> "MemoryUSMHost":
        memory: _Any = _usm.MemoryUSMHost.__new__(cls, other, alignment=alignment, queue=queue, copy=copy)
        return _as_dpctls(memory, cls, MemoryUSMHost) if "dpctl" in _modules else memory


class MemoryUSMDevice(_usm.MemoryUSMDevice):
    """USM device memory."""

    def __new__(cls, other: _Any, *, alignment: int = 0, queue: _Any = None, copy: bool = False) -> "MemoryUSMDevice":
        memory: _Any = _usm.MemoryUSMDevice.__new__(cls, other, alignment=alignment, queue=queue, copy=copy)
        return _as_dpctls(memory, cls, MemoryUSMDevice) if "dpctl" in _modules else memory


class MemoryUSMShared(_usm.MemoryUSMShared):
    """USM shared memory."""

    def __new__(cls, other: _Any, *, alignment: int = 0, queue: _Any = None, copy: bool = False) -> "MemoryUSMShared":
        memory: _Any = _usm.MemoryUSMShared.__new__(cls, other, alignment=alignment, queue=queue, copy=copy)
        return _as_dpctls(memory, cls, MemoryUSMShared) if "dpctl" in _modules else memory


_PUBLIC: dict[type, _Any] = {
    _usm.MemoryUSMDevice: MemoryUSMDevice,
    _usm.MemoryUSMHost: MemoryUSMHost,
    _usm.MemoryUSMShared: MemoryUSMShared,
}


def as_usm_memory(obj: _Any) -> MemoryUSMHost | MemoryUSMDevice | MemoryUSMShared:
    """Imports USM memory of an object without a copy, as the class for its kind."""
    memory: _Any = _usm.as_usm_memory(obj)
    return _PUBLIC[type(memory)](memory)


def _rebuild_memory(content: _Any, kind: _Any) -> _Memory:
    """The counterpart of pickling."""
    memory: _Any = _usm._rebuild_memory(content, kind)
    return _PUBLIC[type(memory)](memory)
