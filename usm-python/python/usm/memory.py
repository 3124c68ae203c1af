"""The surface of ``dpctl.memory``: code works with the import swapped, on SYCL devices and on the plain host."""

from ._usm import (
    MemoryUSMDevice,
    MemoryUSMHost,
    MemoryUSMShared,
    _Memory,
    as_usm_memory,
)
from .errors import AllocationError as USMAllocationError

__all__ = [
    "MemoryUSMDevice",
    "MemoryUSMHost",
    "MemoryUSMShared",
    "USMAllocationError",
    "as_usm_memory",
]
