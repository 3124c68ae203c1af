"""The classes and functions of ``dpctl.memory``, on SYCL devices and on all others.

Code written for dpctl works when the import is changed.
"""

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
