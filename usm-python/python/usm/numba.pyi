"""Numba on usm's runtime, and usm.Array in compiled code."""

from typing import Any, NamedTuple

from ._usm import Queue

__all__ = ["ArrayType", "Installed", "install", "installed", "uninstall"]

class Installed(NamedTuple):
    """The source of the blocks of compiled code, and the number of live blocks."""

    queue: Queue
    kind: str
    live: int

def install(source: object = None, kind: str = "host") -> None: ...
def uninstall() -> None: ...
def installed() -> Installed | None: ...

# Its base is a type of Numba, which has no type annotations.
class ArrayType:
    """Numba's type of :class:`usm.Array`."""

    def __init__(self, dtype: Any, ndim: int, layout: str, readonly: bool = False, aligned: bool = True) -> None: ...
    def copy(
        self, dtype: Any = None, ndim: int | None = None, layout: str | None = None, readonly: bool | None = None
    ) -> ArrayType: ...
    def unify(self, typingctx: Any, other: Any) -> Any: ...
    @property
    def as_numpy(self) -> Any: ...
