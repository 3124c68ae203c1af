"""Kernels as numba-dpex 0.23 spells them: ``from usm import kernel_api as kapi``."""

import enum

from ._kernel.names import ITEM_WORDS, Word
from ._kernel.ranges import Local as LocalAccessor, NdRange, Range

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
    "group_barrier",
]


class MemoryScope(enum.IntEnum):
    """Who sees what is ordered. Kernels order for the whole device."""

    WORK_ITEM = 0
    SUB_GROUP = 1
    WORK_GROUP = 2
    DEVICE = 3
    SYSTEM = 4


class MemoryOrder(enum.IntEnum):
    """What an atomic operation orders. Kernels' own are relaxed; fences order the rest."""

    RELAXED = 0
    ACQUIRE = 1
    CONSUME_UNSUPPORTED = 2
    RELEASE = 3
    ACQ_REL = 4
    SEQ_CST = 5


class AddressSpace(enum.IntEnum):
    """Which memory a reference is to. The array says it."""

    PRIVATE = 0
    GLOBAL = 1
    CONSTANT = 2
    LOCAL = 3
    GENERIC = 4


class Item:
    """The item of a range: the annotation of a kernel's first parameter, which a launch does not give."""


class NdItem:
    """The item of a range with groups: the annotation of a kernel's first parameter, which a launch does not give."""


class Group:
    """The group of an item, by `NdItem.get_group`."""


for _class, _words in ((Item, ITEM_WORDS["Item"]), (NdItem, ITEM_WORDS["NdItem"]), (Group, ITEM_WORDS["Group"])):
    for _name, _doc in _words.items():
        setattr(_class, _name, Word(f"kernel_api.{_class.__name__}.{_name}", _doc))

AtomicRef = Word("kernel_api.AtomicRef", "``AtomicRef(array, index)``: an element for atomic operations such as ``fetch_add``.")
PrivateArray = Word("kernel_api.PrivateArray", "``PrivateArray(shape, dtype, fill_zeros=False)``: memory of an item.")
group_barrier = Word("kernel_api.group_barrier", "``group_barrier(group, fence_scope)``: waits for all items of the group.")
atomic_fence = Word("kernel_api.atomic_fence", "``atomic_fence(order, scope)``: orders the item's own accesses; waits for nobody.")
