"""Plans for frameworks that place tensors themselves; packages are imported on need."""

import array as _array
import typing as _typing
from importlib import import_module as _import_module

from ._usm import plan as _plan

__all__ = ["tflm"]

# The runtime's alignment, and the name by which it finds a plan in the file.
_ALIGNMENT = 16
_ENTRY = "OfflineMemoryAllocation"


def tflm(model: bytes) -> bytes:
    """A ``.tflite`` model with a plan for TensorFlow Lite Micro in its metadata: the offset of each
    tensor from the start of the arena's head. Inputs live from the start, outputs to the end.
    The runtime places constants, variables, and subgraphs after the first. Needs the packages
    ``tflite-micro`` and ``flatbuffers``.
    """
    try:
        flatbuffers = _import_module("flatbuffers")
        schema = _import_module("tflite_micro.tensorflow.lite.micro.python.schema_py_generated")
    except ModuleNotFoundError as error:
        raise ImportError(f"usm.adapt.tflm needs the package {error.name}: pip install --pre tflite-micro") from error
    if bytes(model[4:8]) != b"TFL3":
        raise ValueError("not a .tflite model: bytes 4 to 8 are not TFL3")
    described = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(model), 0))
    main = described.subgraphs[0]
    offsets = [-1] * sum(len(graph.tensors) for graph in described.subgraphs)
    lives = _lives(main)
    rows, places = [], []
    for index, (begin, end) in sorted(lives.items()):
        tensor = main.tensors[index]
        constant = described.buffers[tensor.buffer].data is not None
        if not constant and not tensor.isVariable:
            rows.append((begin, end, _bytes(tensor, index, schema)))
            places.append(index)
    if rows:
        for index, offset in zip(places, memoryview(_plan(rows, alignment=_ALIGNMENT).offsets).tolist(), strict=True):
            offsets[index] = offset
    content = _array.array("i", [1, len(described.subgraphs), len(offsets), *offsets]).tobytes()
    buffer = schema.BufferT()
    buffer.data = list(content)
    entry = schema.MetadataT()
    entry.name, entry.buffer = _ENTRY, len(described.buffers)
    described.buffers.append(buffer)
    kept = [old for old in described.metadata or [] if old.name not in (_ENTRY, _ENTRY.encode())]
    described.metadata = [*kept, entry]
    builder = flatbuffers.Builder(len(model) + len(content) + 1024)
    builder.Finish(described.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _lives(graph: _typing.Any) -> dict[int, tuple[int, int]]:
    """The half-open life of every used tensor, in operators."""
    lives: dict[int, tuple[int, int]] = {}

    def use(index: int, time: int) -> None:
        if index >= 0:
            begin, end = lives.get(index, (time, time + 1))
            lives[index] = min(begin, time), max(end, time + 1)

    last = max(len(graph.operators) - 1, 0)
    for time, op in enumerate(graph.operators):
        for group in (op.inputs, op.outputs, op.intermediates):
            for index in [] if group is None else group:
                use(int(index), time)
    for index in graph.inputs:
        use(int(index), 0)
    for index in graph.outputs:
        use(int(index), last)
    return lives


def _bytes(tensor: _typing.Any, index: int, schema: _typing.Any) -> int:
    kinds = schema.TensorType
    widths = {1: "INT8 UINT8 BOOL", 2: "INT16 UINT16 FLOAT16", 4: "FLOAT32 INT32 UINT32", 8: "INT64 FLOAT64 UINT64 COMPLEX64"}
    for width, names in widths.items():
        if tensor.type in [getattr(kinds, name) for name in names.split() if hasattr(kinds, name)]:
            size = width
            for extent in [] if tensor.shape is None else tensor.shape:
                if extent < 0:
                    raise ValueError(f"tensor {index}: its extent {extent} is not known")
                size *= int(extent)
            return size
    raise ValueError(f"tensor {index}: elements of type {tensor.type} have no whole bytes")
