"""Serialisers for Dask: import this module in the client and in the workers.

Without it arrays travel all the same, as pickles. With it Dask sends an array's elements as they lie, and knows how many bytes
it has. ``client.run(__import__, "usm.dask")`` imports it in all workers.
"""

import pickle as _pickle
from typing import Any as _Any

from dask.sizeof import sizeof as _sizeof
from distributed.protocol.serialize import dask_deserialize as _dask_deserialize
from distributed.protocol.serialize import dask_serialize as _dask_serialize

from ._usm import Array, _rebuild_array

__all__ = ["deserialize", "serialize"]


def serialize(array: Array) -> tuple[dict[str, _Any], list[memoryview]]:
    """An array as a header and a frame. What the host does not reach is copied."""
    _, (content, *state) = array.__reduce_ex__(5)
    return {"state": _pickle.dumps(state)}, [content.raw()]


def deserialize(header: dict[str, _Any], frames: list[_Any]) -> Array:
    """The array of a header and its frame. A device that is not here gives way to the default one."""
    return _rebuild_array(frames[0] if frames else b"", *_pickle.loads(header["state"]))


def _nbytes(array: Array) -> int:
    return array.nbytes


# Calls, not decorators: a checker of types does not know what those make of the functions.
_dask_serialize.register(Array, serialize)
_dask_deserialize.register(Array, deserialize)
_sizeof.register(Array, _nbytes)
