"""Objects of usm's memory that are instances of dpctl's classes too.

dpctl's functions read the C structure of its own class. So such an object is of a subclass of
dpctl's class, made over our block with our object as its owner. Its ``__class__`` is ours, by which
``isinstance`` with our class holds as well, and its methods are those of our object. `import usm`
imports no dpctl: the subclasses are made when the first object needs one.
"""

import sys
from typing import Any as _Any

_modules = sys.modules
_classes: dict[type, _Any] = {}
# What is dpctl's own: it reads the structure.
_THEIRS = {"_pointer", "nbytes"}
_SPECIAL = (
    "__array__",
    "__array_function__",
    "__bytes__",
    "__len__",
    "__repr__",
    "__sizeof__",
    "__sycl_usm_array_interface__",
)


def as_dpctls(memory: _Any, wanted: type, ours: type) -> _Any:
    """A new object of ours as one of dpctl's class too, if dpctl is imported and it is SYCL memory
    that may be written: dpctl knows no other.

    An object of a subclass stays what it is.
    """
    if "dpctl" not in _modules or wanted is not ours or not memory._is_dpctls:
        return memory
    both = _classes.get(ours)
    if both is None:
        both = _classes[ours] = _class_of_both(ours)
    return both(memory)


def _owner(memory: _Any) -> _Any:
    """The owner of the block: the foreign object that the memory was made of, else our object."""
    foreign = memory.reference_obj if memory is not None else None
    return memory if foreign is None else foreign


def _class_of_both(ours: type) -> _Any:
    import dpctl.memory  # type: ignore[import-not-found, import-untyped, unused-ignore]

    theirs = getattr(dpctl.memory, ours.__name__)

    def forward(name: str) -> _Any:
        # While dpctl makes the object, it has its own members.
        own: _Any = getattr(theirs, name, None)
        if not callable(getattr(ours, name)):
            return property(lambda self: getattr(self._usm_memory, name) if self._usm_memory is not None else own.__get__(self))

        def method(self: _Any, *arguments: _Any, **options: _Any) -> _Any:
            if self._usm_memory is None:
                return own(self, *arguments, **options)
            return getattr(self._usm_memory, name)(*arguments, **options)

        return method

    def new(cls: _Any, memory: _Any) -> _Any:
        # dpctl reads our interface, and takes no memory of its own.
        self = theirs.__new__(cls, memory)
        self._usm_memory = memory
        return self

    members = {name: forward(name) for name in dir(ours) if name[:2] != "__" and name not in _THEIRS}
    members |= {name: forward(name) for name in _SPECIAL}
    members |= {
        "_usm_memory": None,
        "__new__": new,
        "__init__": lambda self, memory: None,
        # What dpctl makes of the object keeps this alone.
        "reference_obj": property(lambda self: _owner(self._usm_memory)),
        "__reduce__": lambda self: self._usm_memory.__reduce__(),
        "__reduce_ex__": lambda self, protocol: self._usm_memory.__reduce__(),
        "__class__": property(lambda self: ours),
        "__doc__": ours.__doc__,
        "__module__": ours.__module__,
        "__qualname__": ours.__qualname__,
    }
    return type(ours.__name__, (theirs,), members)
