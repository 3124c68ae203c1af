"""Ranges, and local memory whose size the launch gives."""

from math import prod
from operator import index

from ..errors import KernelError
from .keys import MOST


class Range(tuple):
    """The sizes of a range in work-items, one to three; dimension 0 is the slowest."""

    __slots__ = ()
    # A launch over a `Range` itself has no groups that an argument could be memory of.
    _usm_range = True

    def __new__(cls, *sizes):
        if not 1 <= len(sizes) <= 3:
            raise KernelError(f"a range has 1, 2 or 3 dimensions, {len(sizes)} are given")
        return super().__new__(cls, sizes)

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self)

    def __repr__(self):
        return f"usm.Range({', '.join(map(str, self))})"


class NdRange:
    """The sizes of a range and of its work-groups, in work-items."""

    __slots__ = ("_global_range", "_local_range")

    def __init__(self, global_size, local_size):
        self._global_range = tuple(global_size) if isinstance(global_size, (tuple, list)) else (global_size,)
        self._local_range = tuple(local_size) if isinstance(local_size, (tuple, list)) else (local_size,)

    @property
    def global_range(self):
        """The sizes of the range."""
        return self._global_range

    @property
    def local_range(self):
        """The sizes of a work-group."""
        return self._local_range

    def __eq__(self, other):
        if not isinstance(other, NdRange):
            return NotImplemented
        return (self.global_range, self.local_range) == (other.global_range, other.local_range)

    def __hash__(self):
        return hash((self.global_range, self.local_range))

    def __repr__(self):
        return f"usm.NdRange({tuple(self.global_range)}, {tuple(self.local_range)})"


class Local:
    """An argument: local memory of a work-group, with extents in elements."""

    __slots__ = ("_dtype", "_usm_local_shape")

    def __init__(self, shape, dtype):
        shape = shape if isinstance(shape, tuple) else (shape,)
        for extent in shape:
            if not hasattr(extent, "__index__") or index(extent) < 1:
                raise KernelError(f"an extent of {extent!r}: local memory has whole numbers from 1")
        shape = tuple(map(index, shape))
        if prod(shape) > MOST:
            raise KernelError(f"local memory of {prod(shape)} elements: no device has them")
        self._usm_local_shape = shape
        self._dtype = dtype

    @property
    def dtype(self):
        """The type of the elements, as given."""
        return self._dtype

    @property
    def shape(self):
        """Extents in elements."""
        return self._usm_local_shape

    def __repr__(self):
        return f"usm.Local({self.shape}, {self.dtype})"
