from collections.abc import Iterable
from typing import Any, final

from .._usm import Array, Event

__all__ = ["Elementwise", "argmax", "argmin", "argsort", "bincount", "elementwise", "histogram", "reduce", "scan", "sort"]

@final
class Elementwise:
    names: tuple[str, ...]
    def __init__(self, text: str, names: str | Iterable[str] | None = None) -> None: ...
    @property
    def text(self) -> str: ...
    def __call__(self, *arguments: Any, out: Any = None, after: Event | Iterable[Event] = (), wait: bool = True, **named: Any) -> Array: ...

def elementwise(text: str, names: str | Iterable[str] | None = None) -> Elementwise: ...
def reduce(
    x: Any,
    operation: str = "sum",
    *,
    dtype: Any = None,
    out: Any = None,
    identity: complex | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array: ...
def argmin(
    x: Any,
    *,
    out: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array: ...
def argmax(
    x: Any,
    *,
    out: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array: ...
def scan(
    x: Any,
    operation: str = "sum",
    *,
    exclusive: bool = False,
    identity: complex | None = None,
    dtype: Any = None,
    out: Any = None,
    axis: int | None = None,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array: ...
def sort(x: Any, *, out: Any = None, axis: int | None = -1, after: Event | Iterable[Event] = (), wait: bool = True) -> Array: ...
def argsort(x: Any, *, out: Any = None, axis: int | None = -1, after: Event | Iterable[Event] = (), wait: bool = True) -> Array: ...
def histogram(
    x: Any,
    bins: int = 10,
    range: tuple[float, float] | None = None,
    *,
    out: Any = None,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> tuple[Array, Array]: ...
def bincount(
    x: Any,
    *,
    minlength: int | None = None,
    length: int | None = None,
    out: Any = None,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array: ...
