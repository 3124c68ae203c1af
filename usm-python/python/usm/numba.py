"""Numba on usm's runtime, and :class:`usm.Array` in ``@njit`` functions.

Importing this module registers the type :class:`usm.Array` with Numba. Numba imports it before it
compiles its first function (entry point ``numba_extensions``). :func:`install` places the arrays,
lists, sets and dictionaries of compiled code in USM.
"""

import atexit as _atexit
import threading as _threading
from typing import NamedTuple

import numba as _numba
import numpy as _np
from llvmlite import binding as _llvm
from numba import _helperlib
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.core.compiler_lock import global_compiler_lock as _global_compiler_lock
from numba.core.datamodel.models import ArrayModel as _ArrayModel
from numba.core.registry import cpu_target as _cpu_target
from numba.core.runtime import _nrt_python as _nrt
from numba.core.runtime import rtsys as _rtsys
from numba.extending import NativeValue as _NativeValue
from numba.extending import box as _box
from numba.extending import lower_cast as _lower_cast
from numba.extending import overload_classmethod as _overload_classmethod
from numba.extending import register_model as _register_model
from numba.extending import typeof_impl as _typeof_impl
from numba.extending import unbox as _unbox
from numba.np import numpy_support as _numpy_support
from numba.np.arrayobj import intrin_alloc as _intrin_alloc

from . import _usm
from . import nrt as _usm_nrt
from .errors import AccessError as _AccessError
from .errors import DeviceError as _DeviceError
from .errors import RequestError as _RequestError

__all__ = ["ArrayType", "Installed", "install", "installed", "uninstall"]

# ---- Numba's runtime

#: Releases of Numba whose runtime has the layout and the functions that this module replaces.
_RELEASES = ("0.68",)

#: Functions that compiled code calls by name; the library's replace them.
_OURS = (
    "MemInfo_alloc",
    "MemInfo_alloc_safe",
    "MemInfo_alloc_aligned",
    "MemInfo_alloc_safe_aligned",
    "MemInfo_alloc_dtor",
    "MemInfo_alloc_dtor_safe",
    "MemInfo_new_varsize",
    "MemInfo_new_varsize_dtor",
    "MemInfo_varsize_alloc",
    "MemInfo_varsize_realloc",
    "MemInfo_varsize_free",
    "MemInfo_data",
    "Allocate",
    "Free",
    "get_api",
)
#: Functions that must handle blocks of both runtimes.
_BOTH = ("MemInfo_call_dtor", "MemInfo_release")
#: Functions that stay Numba's: they make blocks around Python objects, or from an allocator that
#: the caller names.
_THEIRS = (
    "MemInfo_alloc_safe_aligned_external",
    "adapt_ndarray_from_python",
    "adapt_ndarray_to_python_acqref",
    "adapt_buffer_from_python",
    "meminfo_new_from_pyobject",
    "meminfo_as_pyobject",
    "meminfo_from_pyobject",
    "_nrt_get_sample_external_allocator",
)
#: All functions of typed containers, because they share a layout that nothing else knows.
_CONTAINERS = tuple(
    f"{kind}_{name}"
    for kind, names in {
        "dict": "new_sized set_method_table free length lookup insert insert_ez delitem popitem iter_sizeof iter iter_next dump",
        "list": "new set_method_table free base_ptr size_address length allocated is_mutable set_is_mutable setitem getitem append "
        "delitem delete_slice iter_sizeof iter iter_next",
        "set": "new new_sized set_method_table free length add contains discard iter_sizeof iter iter_next dump",
    }.items()
    for name in names.split()
)
#: Functions of other purposes whose names begin alike.
_OTHERS = {"set_fnclex", "set_pyobject_private_data"}
_COUNTERS = ("alloc", "free", "mi_alloc", "mi_free")


class Installed(NamedTuple):
    """The source of the blocks of compiled code."""

    #: The queue whose context allocates the memory.
    queue: _usm.Queue
    #: ``"host"`` or ``"shared"``.
    kind: str
    #: The number of live blocks.
    live: int


_lock = _threading.Lock()
#: Whether machine code calls the library. This cannot be undone.
_routed = False


def install(source: object = None, kind: str = "host") -> None:
    """Makes Numba use usm's runtime for the memory of compiled code.

    Arrays, strings, lists, sets and the containers of ``numba.typed`` then live in memory of
    ``kind`` (``"host"`` or ``"shared"``) of ``source``: a queue, context, device or selector, by
    default the default device.

    Call this before anything is compiled, because machine code stays with the runtime that it was
    compiled for. Making a container compiles too, so no container can be older than its functions.

    Raises :class:`usm.RequestError` where Numba has compiled already, where a source is installed
    already, and for device memory. Raises :class:`usm.DeviceError` for a Numba other than 0.68, and
    for one without the functions to replace. After an error nothing has changed.
    """
    # Numba makes this context once: it takes the context's lock, then the compiler's. Asking for it
    # before the compiler's lock is taken here avoids a deadlock with a thread that makes it now.
    context = _cpu_target.target_context
    # Numba's lock keeps other threads from compiling in the meantime.
    with _lock, _global_compiler_lock:
        if _usm._nrt_source() is not None:
            raise _RequestError(f"installed already, in {installed().kind} memory of {installed().queue}; uninstall() first")
        if not _routed:
            _check_numba()
        _usm._nrt_take_source(source, kind)
        if _routed:
            return
        try:
            _route(context)
        except BaseException:
            _usm._nrt_give_source()
            raise


def uninstall() -> None:
    """Releases the source: new blocks of compiled code then live in the heap.

    Raises :class:`usm.RequestError` while blocks live in the source, and where none is installed;
    after an error nothing has changed. Compiled code still calls usm's runtime. The memory is
    freed; the source's context lives to the end of the process. :func:`install` may be called
    again, with any source.
    """
    with _lock:
        if _usm._nrt_source() is None:
            raise _RequestError("nothing is installed")
        _usm._nrt_give_source()


def installed() -> Installed | None:
    """The source in use, or ``None``."""
    source = _usm._nrt_source()
    return None if source is None else Installed(*source)


def _check_numba():
    version = _numba.__version__
    if ".".join(version.split(".")[:2]) not in _RELEASES:
        raise _DeviceError(f"numba {version}: its runtime was not checked; supported are {', '.join(_RELEASES)}")
    known, there = {*_OURS, *_BOTH, *_THEIRS}, set(_nrt.c_helpers)
    if known != there:
        raise _DeviceError(f"numba {version}: its runtime has other functions: {', '.join(sorted(known ^ there))}")
    kinds = ("dict_", "list_", "set_")
    containers = {name for name in _helperlib.c_helpers if name.startswith(kinds)} - _OTHERS
    if containers != {*_CONTAINERS}:
        raise _DeviceError(f"numba {version}: its containers have other functions: {', '.join(sorted(containers ^ {*_CONTAINERS}))}")
    if _rtsys._init:
        raise _RequestError(
            "Numba has compiled already, and that machine code calls Numba's own runtime: "
            "call usm.numba.install() before the first call of a jitted function"
        )


def _route(context):
    """Replaces the functions and lets Numba register them. The caller holds Numba's lock."""
    global _routed
    before, before_containers = dict(_nrt.c_helpers), dict(_helperlib.c_helpers)
    ours = _symbols("NRT_", _OURS)
    containers = _symbols("numba_", _CONTAINERS)
    both = _usm._nrt_bridge(*(before[name] for name in _BOTH))
    try:
        _nrt.c_helpers.update(ours)
        _nrt.c_helpers.update(zip(_BOTH, both))
        # Numba registered these when its context was made.
        _helperlib.c_helpers.update(containers)
        _register("numba_", containers)
        _rtsys.initialize(context)
    except BaseException:
        _nrt.c_helpers.update(before)
        _helperlib.c_helpers.update(before_containers)
        _register("numba_", {name: before_containers[name] for name in _CONTAINERS})
        if _rtsys._init:
            _register("NRT_", {name: before[name] for name in (*_OURS, *_BOTH)})
        raise
    _route_statistics()
    # At exit, threads' kept memory is freed while the runtime is still there.
    _atexit.register(_usm._nrt_drain, True)
    _routed = True


def _symbols(prefix, names):
    """Addresses of the library's functions."""
    addresses = {name: _usm._nrt_symbol(prefix + name) for name in names}
    missing = [name for name, address in addresses.items() if address is None]
    if missing:
        raise _DeviceError(f"{_usm_nrt.get_library()}: lacks {prefix}{missing[0]}")
    return addresses


def _register(prefix, addresses):
    """Makes code that is compiled or loaded later call these functions."""
    for name, address in addresses.items():
        _llvm.add_symbol(prefix + name, address)


def _route_statistics():
    """Makes ``rtsys.get_allocation_stats()`` show the counts of both runtimes.

    Numba's own counters always run from now on, because the sum needs them. Numba's switch only
    hides: while it is off nothing is shown, and what is counted then is never shown.
    """
    shown = _nrt.memsys_stats_enabled()
    counters = [getattr(_nrt, f"memsys_get_stats_{name}") for name in _COUNTERS]
    _nrt.memsys_enable_stats()
    _usm_nrt._numba_stats = lambda: tuple(counter() for counter in counters)
    hidden = (0, 0, 0, 0)
    since = _usm_nrt.get_allocation_stats()

    def memsys_enable_stats():
        nonlocal shown, hidden
        if not shown:
            hidden = tuple(before + now - then for before, now, then in zip(hidden, _usm_nrt.get_allocation_stats(), since))
            shown = True

    def memsys_disable_stats():
        nonlocal shown, since
        if shown:
            since = _usm_nrt.get_allocation_stats()
            shown = False

    def getter(index):
        def memsys_get_stats():
            if not shown:
                raise RuntimeError("NRT stats are disabled.")
            return _usm_nrt.get_allocation_stats()[index] - hidden[index]

        return memsys_get_stats

    _nrt.memsys_enable_stats = memsys_enable_stats
    _nrt.memsys_disable_stats = memsys_disable_stats
    _nrt.memsys_stats_enabled = lambda: shown
    for index, name in enumerate(_COUNTERS):
        setattr(_nrt, f"memsys_get_stats_{name}", getter(index))


# ---- usm.Array in compiled code


class ArrayType(_types.Array):
    """Numba's type of :class:`usm.Array`; compiled code treats it as a NumPy array.

    Slices, transposes and ``copy`` of such an array give a :class:`usm.Array`. Computations
    (``a + b``, ``np.sin(a)``) give a NumPy array.
    """

    def __init__(self, dtype, ndim, layout, readonly=False, aligned=True):
        words = ["readonly"] * readonly + ["unaligned"] * (not aligned)
        name = f"usm.Array({', '.join([str(dtype), f'{ndim}d', layout, *words])})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name, aligned=aligned)

    def copy(self, dtype=None, ndim=None, layout=None, readonly=None):
        """The same type with other parts; ``None`` keeps a part."""
        return type(self)(
            dtype=self.dtype if dtype is None else dtype,
            ndim=self.ndim if ndim is None else ndim,
            layout=self.layout if layout is None else layout,
            readonly=not self.mutable if readonly is None else readonly,
            aligned=self.aligned,
        )

    def unify(self, typingctx, other):
        """The common type of two arrays.

        Two of this type that differ in layout or access have one of any layout. One of this type
        and a NumPy array have a NumPy array.
        """
        common = super().unify(typingctx, other)
        if common is None or not isinstance(other, ArrayType):
            return common
        return type(self)(common.dtype, common.ndim, common.layout, not common.mutable, common.aligned)

    @property
    def as_numpy(self):
        """The type of a NumPy array over the same memory."""
        return _types.Array(self.dtype, self.ndim, self.layout, readonly=not self.mutable, aligned=self.aligned)


_register_model(ArrayType)(_ArrayModel)

#: Types by (type string, dimensions, layout, read-only, aligned). A program has few.
_known_types = {}


@_typeof_impl.register(_usm.Array)
def _typeof_array(array, context):
    if array.kind == "device":
        raise _AccessError("device memory has no host view, so compiled code cannot take it; copy it explicitly")
    layout = "C" if array.is_c_contiguous else "F" if array.is_f_contiguous else "A"
    dtype = array.dtype
    alignment = _np.dtype(dtype).alignment
    aligned = array._address % alignment == 0 and all(stride % alignment == 0 for stride in array.strides)
    key = (dtype, array.ndim, layout, array.readonly, aligned)
    known = _known_types.get(key)
    if known is None:
        element = _numpy_support.from_dtype(_np.dtype(dtype))
        known = _known_types[key] = ArrayType(element, key[1], layout, readonly=key[3], aligned=aligned)
    return known


@_unbox(ArrayType)
def _unbox_array(typ, obj, c):
    """Unboxes by the buffer protocol, which waits for pending work.

    The block that Numba makes keeps a reference to the array.
    """
    buffer = c.pyapi.alloca_buffer()
    failed = _cgutils.is_not_null(c.builder, c.pyapi.get_buffer(obj, buffer))
    native = c.context.make_array(typ)(c.context, c.builder)
    address = native._getpointer()
    with _cgutils.if_likely(c.builder, c.builder.not_(failed)):
        c.pyapi.nrt_adapt_buffer_from_python(buffer, c.builder.bitcast(address, c.pyapi.voidptr))

    def cleanup():
        c.pyapi.release_buffer(buffer)

    return _NativeValue(c.builder.load(address), is_error=failed, cleanup=cleanup)


@_lower_cast(ArrayType, _types.Array)
def _array_to_array(context, builder, fromty, toty, val):
    """Casts to a weaker array type, as Numba has checked; the native structure is the same."""
    return val


@_overload_classmethod(ArrayType, "_allocate")
def _allocate(cls, allocsize, align):
    """Allocates a new array of this type as Numba does for NumPy's."""

    def impl(cls, allocsize, align):
        return _intrin_alloc(allocsize, align)

    return impl


@_box(ArrayType)
def _box_array(typ, val, c):
    """Boxes as a NumPy array over the memory, which :func:`_of_numpy` makes a `usm.Array`."""
    native = c.context.make_array(typ)(c.context, c.builder, value=val)
    constants = c.env_manager
    dtype = constants.read_const(constants.add_const(_numpy_support.as_dtype(typ.dtype)))
    view = c.pyapi.nrt_adapt_ndarray_to_python(typ.as_numpy, val, dtype)
    # Boxing consumes the reference; the view has another one.
    c.context.nrt.decref(c.builder, typ, val)
    result = _cgutils.alloca_once_value(c.builder, view)
    with _cgutils.if_likely(c.builder, _cgutils.is_not_null(c.builder, view)):
        parent = native.parent
        parent = c.builder.select(_cgutils.is_null(c.builder, parent), c.pyapi.borrow_none(), parent)
        function = c.pyapi.unserialize(c.pyapi.serialize_object(_of_numpy))
        c.builder.store(c.pyapi.call_function_objargs(function, (view, parent)), result)
        c.pyapi.decref(function)
        c.pyapi.decref(view)
    return c.builder.load(result)


def _of_numpy(view, parent):
    """The :class:`usm.Array` over the memory of ``view``, a NumPy array.

    The result is ``parent`` itself where both are the same array, a view of ``parent`` where the
    memory is a part of its memory, else a new array.
    """
    if type(parent) is not _usm.Array:
        return _usm.asarray(view)
    pointer, dtype = view.ctypes.data, view.dtype.str
    same = parent.shape == view.shape and parent.dtype == dtype and (view.size == 0 or parent.strides == view.strides)
    if same and parent._address == pointer:
        return parent
    return _usm._nrt_window(parent, pointer, view.shape, view.strides, dtype, not view.flags.writeable)


def _init_extension():
    """The entry point ``numba_extensions``; importing this module does all the work."""
