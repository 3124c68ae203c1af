"""Kernels as numba-dpex 0.23 spells them: ``from usm import kernel_api as kapi``."""

# Most declarations have no bodies: the compiler of kernels knows their meaning.
# mypy: disable-error-code="empty-body"

import enum as _enum
from collections.abc import Callable as _Callable
from typing import Any as _Any, TypeVar as _TypeVar, cast as _cast

from ._kernel import Local as LocalAccessor, NdRange, Range, call_kernel as _call_kernel, kernel as _kernel
from ._kernel.names import Word as _Word
from ._usm import KernelFunction as _KernelFunction

__all__ = [
    "AddressSpace",
    "AtomicRef",
    "Group",
    "Item",
    "LocalAccessor",
    "MemoryOrder",
    "MemoryScope",
    "NdItem",
    "NdRange",
    "PrivateArray",
    "Range",
    "atomic_fence",
    "call_kernel",
    "group_barrier",
]

_T = _TypeVar("_T", bound=_Callable[..., _Any])


def _in_kernels(declared: _T) -> _T:
    """Replaces a declaration by a name that the compiler of kernels knows.

    Plain Python gets an object of the declaration, if it is a class.
    """
    outside = declared if isinstance(declared, type) else None
    return _cast(_T, _Word(f"kernel_api.{declared.__qualname__}", declared.__doc__, outside))


class MemoryScope(_enum.IntEnum):
    """The work-items that see memory in order. Kernels always order for the whole device."""

    WORK_ITEM = 0
    SUB_GROUP = 1
    WORK_GROUP = 2
    DEVICE = 3
    SYSTEM = 4


class MemoryOrder(_enum.IntEnum):
    """The order of an atomic operation. Kernels' own are relaxed; fences order the rest."""

    RELAXED = 0
    ACQUIRE = 1
    CONSUME_UNSUPPORTED = 2
    RELEASE = 3
    ACQ_REL = 4
    SEQ_CST = 5


class AddressSpace(_enum.IntEnum):
    """The memory that a reference is to. Kernels take it from the array."""

    PRIVATE = 0
    GLOBAL = 1
    CONSTANT = 2
    LOCAL = 3
    GENERIC = 4


class Item:
    """A work-item of a range: the annotation of a kernel's first parameter.

    The launch does not pass this parameter.
    """

    @_in_kernels
    def get_id(self, dimension: int, /) -> int:
        """The item's index in the range."""

    @_in_kernels
    def get_linear_id(self) -> int:
        """The item's linear index in the range; the last dimension is the fastest."""

    @_in_kernels
    def get_range(self, dimension: int, /) -> int:
        """The size of the range in a dimension, in items."""

    @_in_kernels
    def get_linear_range(self) -> int:
        """The size of the range, in items."""


class Group:
    """The work-group of an item, from :meth:`NdItem.get_group`."""

    @_in_kernels
    def get_group_id(self, dimension: int, /) -> int:
        """The group's index."""

    @_in_kernels
    def get_group_linear_id(self) -> int:
        """The group's linear index; the last dimension is the fastest."""

    @_in_kernels
    def get_group_range(self, dimension: int, /) -> int:
        """The number of groups in a dimension."""

    @_in_kernels
    def get_group_linear_range(self) -> int:
        """The number of groups."""

    @_in_kernels
    def get_local_range(self, dimension: int, /) -> int:
        """The size of a work-group in a dimension, in items."""

    @_in_kernels
    def get_local_linear_range(self) -> int:
        """The size of a work-group, in items."""


class NdItem:
    """A work-item of a range with groups: the annotation of a kernel's first parameter.

    The launch does not pass this parameter.
    """

    @_in_kernels
    def get_global_id(self, dimension: int, /) -> int:
        """The item's index in the range."""

    @_in_kernels
    def get_global_linear_id(self) -> int:
        """The item's linear index in the range; the last dimension is the fastest."""

    @_in_kernels
    def get_global_range(self, dimension: int, /) -> int:
        """The size of the range in a dimension, in items."""

    @_in_kernels
    def get_global_linear_range(self) -> int:
        """The size of the range, in items."""

    @_in_kernels
    def get_local_id(self, dimension: int, /) -> int:
        """The item's index in its group."""

    @_in_kernels
    def get_local_linear_id(self) -> int:
        """The item's linear index in its group; the last dimension is the fastest."""

    @_in_kernels
    def get_local_range(self, dimension: int, /) -> int:
        """The size of a work-group in a dimension, in items."""

    @_in_kernels
    def get_local_linear_range(self) -> int:
        """The size of a work-group, in items."""

    @_in_kernels
    def get_group(self) -> Group:
        """The item's group."""


@_in_kernels
class AtomicRef:
    """``AtomicRef(array, index)``: an element of 32 or 64 bits for atomic operations.

    Each ``fetch_`` method and ``exchange`` return the old value. Orders and scopes are ignored; an
    address space must be the array's. Outside of kernels the methods are plain reads and writes of
    one thread.
    """

    def __init__(
        self,
        ref: _Any,
        index: _Any,
        memory_order: int = MemoryOrder.RELAXED,
        memory_scope: int = MemoryScope.DEVICE,
        address_space: int | None = None,
    ) -> None:
        if not hasattr(ref, "__setitem__"):
            raise TypeError(f"an AtomicRef of an object of type {type(ref).__name__}: an array is needed")
        self._ref, self._index = ref, index

    def load(self) -> _Any:
        value = self._ref[self._index]
        return value.copy() if hasattr(value, "copy") else value

    def exchange(self, value: _Any, /) -> _Any:
        old = self.load()
        self._ref[self._index] = value
        return old

    def store(self, value: _Any, /) -> None:
        self.exchange(value)

    def fetch_add(self, value: _Any, /) -> _Any:
        return self.exchange(self.load() + value)

    def fetch_sub(self, value: _Any, /) -> _Any:
        return self.exchange(self.load() - value)

    def fetch_min(self, value: _Any, /) -> _Any:
        return self.exchange(min(self.load(), value))

    def fetch_max(self, value: _Any, /) -> _Any:
        return self.exchange(max(self.load(), value))

    def fetch_and(self, value: _Any, /) -> _Any:
        return self.exchange(self.load() & value)

    def fetch_or(self, value: _Any, /) -> _Any:
        return self.exchange(self.load() | value)

    def fetch_xor(self, value: _Any, /) -> _Any:
        return self.exchange(self.load() ^ value)

    def compare_exchange(self, expected_ref: _Any, desired: _Any, expected_idx: _Any = 0) -> bool:
        """Sets the element if it is as expected, else tells in ``expected_ref`` what it is."""
        found = self.load()
        if found == expected_ref[expected_idx]:
            self.exchange(desired)
            return True
        expected_ref[expected_idx] = found
        return False


@_in_kernels
def PrivateArray(shape: int | tuple[int, ...], dtype: _Any, fill_zeros: bool = False) -> _Any:
    """``PrivateArray(shape, dtype, fill_zeros=False)``: memory of one item."""


@_in_kernels
def group_barrier(group: Group, fence_scope: int = ...) -> None:
    """``group_barrier(group, fence_scope)``: waits for all items of the group."""


@_in_kernels
def atomic_fence(memory_order: int, memory_scope: int) -> None:
    """``atomic_fence(order, scope)``: orders the item's own accesses without waiting."""


def call_kernel(function: _KernelFunction | _Callable[..., _Any], index: Range | NdRange, /, *arguments: _Any) -> None:
    """Runs a function as a kernel, decorated or not, and waits."""
    _call_kernel(function if isinstance(function, _KernelFunction) else _kernel(function), index, *arguments)
