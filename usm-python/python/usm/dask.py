"""Serialisers for Dask: import this module in the client and in the workers.

Without this module Dask pickles arrays. With it Dask sends the bytes of an array without a pickle,
and knows the array's size in bytes. ``client.run(__import__, "usm.dask")`` imports the module in
all workers.
"""

import pickle as _pickle
from typing import Any as _Any

from dask.sizeof import sizeof as _sizeof
from distributed.protocol.serialize import dask_deserialize as _dask_deserialize
from distributed.protocol.serialize import dask_serialize as _dask_serialize

from ._usm import Array, _rebuild_array

__all__ = ["deserialize", "serialize"]


def serialize(array: Array) -> tuple[dict[str, _Any], list[memoryview]]:
    """The header and the one frame of an array; device memory is copied to the host."""
    _, (content, *state) = array.__reduce_ex__(5)
    return {"state": _pickle.dumps(state)}, [content.raw()]


def deserialize(header: dict[str, _Any], frames: list[_Any]) -> Array:
    """The array of a header and its frame; on the default device if its own does not exist."""
    return _rebuild_array(frames[0] if frames else b"", *_pickle.loads(header["state"]))


def _nbytes(array: Array) -> int:
    return array.nbytes


# Calls, not decorators: a type checker does not know the types of the decorated functions.
_dask_serialize.register(Array, serialize)
_dask_deserialize.register(Array, deserialize)
_sizeof.register(Array, _nbytes)
