"""Numba on usm's runtime, and :class:`usm.Array` in ``@njit`` functions.

Importing this module teaches Numba the type :class:`usm.Array`; Numba does so by itself when it compiles its first function
(entry point ``numba_extensions``). :func:`install` makes the arrays, lists, sets and dictionaries of compiled code live in USM.
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

# ---- Numba's runtime ---------------------------------------------------------------------------------------------------

#: Releases of Numba whose runtime has the layout and the functions that are replaced here.
_RELEASES = ("0.68",)

#: Functions that compiled code calls by name, and that come from the library instead.
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
#: Functions that meet blocks of both runtimes.
_BOTH = ("MemInfo_call_dtor", "MemInfo_release")
#: Functions that make blocks around Python objects, or from an allocator that the caller names: Numba's own.
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
#: Functions of typed containers: all of them, because only they know the layout of what they share.
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
#: Functions of another purpose that begin with the same words.
_OTHERS = {"set_fnclex", "set_pyobject_private_data"}
_COUNTERS = ("alloc", "free", "mi_alloc", "mi_free")


class Installed(NamedTuple):
    """Where blocks of compiled code live."""

    #: The queue whose context gives the memory.
    queue: _usm.Queue
    #: ``"host"`` or ``"shared"``.
    kind: str
    #: Blocks that are alive there.
    live: int


_lock = _threading.Lock()
#: Whether machine code calls the library: once so, for ever.
_routed = False


def install(source: object = None, kind: str = "host") -> None:
    """Puts Numba on usm's runtime: arrays, strings, lists, sets and the containers of ``numba.typed`` then live in ``kind``
    memory (``"host"`` or ``"shared"``) of ``source``, a queue, context, device or selector; without one the default device.

    To be called before anything is compiled, because machine code is tied to the runtime that it was compiled for. So no
    container is older than its functions: making the first one compiles.

    Raises :class:`usm.RequestError` when Numba has compiled already, when something is installed already and for device
    memory, and :class:`usm.DeviceError` for a Numba other than 0.68 or without the functions that are replaced. Then
    nothing has changed.
    """
    # Made once, under a lock of its own and then under Numba's: here it must be there before
    # Numba's lock is taken, or a thread that makes it at this moment and this one wait for each
    # other.
    context = _cpu_target.target_context
    # Numba's lock keeps other threads from compiling meanwhile.
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
    """Gives the source back: from now on new blocks of compiled code live in the heap.

    Raises :class:`usm.RequestError` while blocks live in the source; then nothing has changed. Compiled code stays on usm's
    runtime, which its machine code calls; :func:`install` may be called again, with any source.
    """
    with _lock:
        if _usm._nrt_source() is None:
            raise _RequestError("nothing is installed")
        _usm._nrt_give_source()


def installed() -> Installed | None:
    """The source in use, as :class:`Installed`, or ``None``."""
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
    """Replaces the functions, then has Numba register them: both under Numba's lock."""
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
    # The memory that threads keep goes back while there is a runtime to take it.
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
    """Code that is compiled or loaded from now on calls these."""
    for name, address in addresses.items():
        _llvm.add_symbol(prefix + name, address)


def _route_statistics():
    """``rtsys.get_allocation_stats()`` shows our counts. Numba's own counters run from now on, because they are one half of
    ours; its switch only decides what is shown: nothing while off, and nothing of what happened meanwhile later.
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


# ---- usm.Array in compiled code ----------------------------------------------------------------------------------------


class ArrayType(_types.Array):
    """Numba's type of :class:`usm.Array`: an array type, so that compiled code does with it what it does with NumPy's.

    What compiled code makes *of* such an array (slices, transposes, ``copy``) is a :class:`usm.Array` again; what it
    computes (``a + b``, ``np.sin(a)``) is a NumPy array.
    """

    def __init__(self, dtype, ndim, layout, readonly=False, aligned=True):
        words = ["readonly"] * readonly + ["unaligned"] * (not aligned)
        name = f"usm.Array({', '.join([str(dtype), f'{ndim}d', layout, *words])})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name, aligned=aligned)

    def copy(self, dtype=None, ndim=None, layout=None, readonly=None):
        """The type with some parts exchanged."""
        return type(self)(
            dtype=self.dtype if dtype is None else dtype,
            ndim=self.ndim if ndim is None else ndim,
            layout=self.layout if layout is None else layout,
            readonly=not self.mutable if readonly is None else readonly,
            aligned=self.aligned,
        )

    def unify(self, typingctx, other):
        """Two of them that differ in layout or access are one of any layout; with a NumPy array, a NumPy array."""
        common = super().unify(typingctx, other)
        if common is None or not isinstance(other, ArrayType):
            return common
        return type(self)(common.dtype, common.ndim, common.layout, not common.mutable, common.aligned)

    @property
    def as_numpy(self):
        """The type of a NumPy array over the same memory."""
        return _types.Array(self.dtype, self.ndim, self.layout, readonly=not self.mutable, aligned=self.aligned)


_register_model(ArrayType)(_ArrayModel)

#: (type string, dimensions, layout, read-only, aligned) → type; a program has few.
_known_types = {}


@_typeof_impl.register(_usm.Array)
def _typeof_array(array, context):
    if array.kind == "device":
        raise _AccessError("device memory has no host view, so compiled code cannot take it; copy it explicitly")
    layout = "C" if array.is_c_contiguous else "F" if array.is_f_contiguous else "A"
    dtype = array.dtype
    alignment = _np.dtype(dtype).alignment
    aligned = array.pointer % alignment == 0 and all(stride % alignment == 0 for stride in array.strides)
    key = (dtype, array.ndim, layout, array.readonly, aligned)
    known = _known_types.get(key)
    if known is None:
        element = _numpy_support.from_dtype(_np.dtype(dtype))
        known = _known_types[key] = ArrayType(element, key[1], layout, readonly=key[3], aligned=aligned)
    return known


@_unbox(ArrayType)
def _unbox_array(typ, obj, c):
    """Through the buffer protocol, which waits for pending work; the block that Numba makes keeps the object."""
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
    """To an array type that promises no more (Numba has checked that): the native structure is the same."""
    return val


@_overload_classmethod(ArrayType, "_allocate")
def _allocate(cls, allocsize, align):
    """Where Numba allocates a new array of this type: as for NumPy's."""

    def impl(cls, allocsize, align):
        return _intrin_alloc(allocsize, align)

    return impl


@_box(ArrayType)
def _box_array(typ, val, c):
    """Numba makes a NumPy array over the memory, and :func:`_of_numpy` finds out what it is a part of."""
    native = c.context.make_array(typ)(c.context, c.builder, value=val)
    constants = c.env_manager
    dtype = constants.read_const(constants.add_const(_numpy_support.as_dtype(typ.dtype)))
    view = c.pyapi.nrt_adapt_ndarray_to_python(typ.as_numpy, val, dtype)
    # Boxing consumes the reference; the view has one of its own.
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
    """The :class:`usm.Array` over the memory of ``view``: ``parent`` itself when it is the same, a part of it when it lies
    there, else one of its own.
    """
    if type(parent) is not _usm.Array:
        return _usm.asarray(view)
    pointer, dtype = view.ctypes.data, view.dtype.str
    same = parent.shape == view.shape and parent.dtype == dtype and (view.size == 0 or parent.strides == view.strides)
    if same and parent.pointer == pointer:
        return parent
    return _usm._nrt_window(parent, pointer, view.shape, view.strides, dtype, not view.flags.writeable)


def _init_extension():
    """The entry point ``numba_extensions``: importing this module is all that is needed."""
