"""Plans for frameworks that place tensors themselves; packages are imported on need."""

import array as _array
import collections.abc as _abc
import operator as _operator
import os as _os
import typing as _typing
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

from ._inductor import described as _described
from ._onnxruntime import run as _run
from ._usm import plan as _plan
from .errors import RequestError as _RequestError

__all__ = ["Comparison", "executorch", "inductor", "onnxruntime", "tflm", "tinygrad"]

# The runtime's alignment, and the name by which it finds a plan in the file.
_ALIGNMENT = 16
_ENTRY = "OfflineMemoryAllocation"
# Of each buffer in tinygrad's arena.
_TINYGRAD_ALIGNMENT = 256
# The largest number of a memory: the result has a size for each up to it, and devices have few.
_MEMORIES = 1 << 10


def tflm(model: bytes) -> bytes:
    """A ``.tflite`` model with a plan for TensorFlow Lite Micro in its metadata: the offset of each
    tensor from the start of the arena's head. Inputs live from the start, outputs to the end.
    The runtime places constants, variables, and subgraphs after the first. Needs the packages
    ``tflite-micro`` and ``flatbuffers``. Raises ``usm.RequestError`` for bytes that are no whole
    model.
    """
    try:
        model = bytes(memoryview(model))
    except TypeError:
        raise TypeError(f"model: an object of type {type(model).__name__} does not fit; the bytes of a .tflite file do") from None
    try:
        flatbuffers = _import_module("flatbuffers")
        schema = _import_module("tflite_micro.tensorflow.lite.micro.python.schema_py_generated")
    except ModuleNotFoundError as error:
        raise ImportError(f"usm.adapt.tflm needs the package {error.name}: pip install --pre tflite-micro") from error
    if model[4:8] != b"TFL3":
        raise _RequestError("not a .tflite model: bytes 4 to 8 are not TFL3")
    try:
        described = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(model), 0))
        main = _checked(described)
    except MemoryError:
        raise
    # The package checks nothing: a false offset is any exception.
    except Exception as error:
        raise _RequestError(f"no whole .tflite model in {len(model)} bytes: {error}") from error
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
            if offset >= 1 << 31:
                raise _RequestError(f"tensor {index}: its offset {offset} does not fit the runtime's 32 bits")
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
    try:
        builder.Finish(described.Pack(builder), b"TFL3")
    except MemoryError:
        raise
    except Exception as error:
        raise _RequestError(f"a .tflite model of {len(model)} bytes that cannot be written again: {error}") from error
    return bytes(builder.Output())


def executorch(alignment: int, specs: _typing.Any, graph_module: _typing.Any, graph_signature: _typing.Any, extra_padding: int = 0) -> _typing.Any:
    """An algorithm for ExecuTorch's ``MemoryPlanningAlgorithmSuite``: the offset of each
    ``TensorSpec`` in its memory. A spec with a ``storage_base`` lies in that one. Needs the package
    ``executorch``. Raises ``usm.RequestError`` for what no plan can hold.
    """
    try:
        planning = _import_module("executorch.exir.memory_planning")
    except ModuleNotFoundError as error:
        raise ImportError(f"usm.adapt.executorch needs the package {error.name}: pip install executorch") from error
    alignment, extra_padding = _whole(alignment, "alignment", 1), _whole(extra_padding, "extra_padding", 0)
    result = planning.MemoryAlgoResult({}, [0, 0])
    memories: dict[int, list[_typing.Any]] = {}
    views = []
    for spec in specs:
        spec.realign(alignment)
        if spec.storage_base is None:
            memory = 1 if spec.mem_id is None else _whole(spec.mem_id, "mem_id", 0)
            if memory > _MEMORIES:
                raise _RequestError(f"mem_id: {memory} does not fit; the number of a memory up to {_MEMORIES} does")
            if not isinstance(spec.lifetime, list | tuple) or len(spec.lifetime) != 2:
                raise _RequestError(f"a lifetime is a list of its first and last operator, not {spec.lifetime!r:.100}")
            begin, end = (_whole(time, "lifetime", 0) for time in spec.lifetime)
            if end < begin:
                raise _RequestError(f"a lifetime from {begin} to {end} ends before it begins")
            memories.setdefault(memory, []).append(spec)
        else:
            views.append(spec)
    taken = getattr(graph_module, "input_mem_buffer_sizes", None) or []
    result.bufsizes = [0] * (max(memories, default=1) + 1)
    for memory, own in memories.items():
        # A set has no order of its own: equal inputs shall have equal plans.
        own.sort(key=lambda spec: (*spec.lifetime, spec.allocated_memory))
        # The start belongs to the caller of a submodule.
        start = _whole(taken[memory], "input_mem_buffer_sizes", 0) if memory < len(taken) else 0
        start = -(-start // alignment) * alignment
        # Both ends of a life are part of it.
        rows = [(spec.lifetime[0], spec.lifetime[1] + 1, spec.allocated_memory) for spec in own]
        plan = _plan(rows, alignment=alignment)
        for spec, offset in zip(own, memoryview(plan.offsets).tolist(), strict=True):
            # ExecuTorch's Verifier asks that specs which share bytes are of one object.
            result.spec_dict[spec] = planning.SpecAllocResult(memory, 0, start + offset)
        result.bufsizes[memory] = start + plan.peak + extra_padding
    for spec in views:
        base, offset, seen = spec, 0, set()
        while base.storage_base is not None:
            if id(base) in seen:
                raise _RequestError("a storage_base is its own base")
            seen.add(id(base))
            low, size, room = base.storage_base_offset, base.allocated_memory, base.storage_base.allocated_memory
            low, size, room = (_whole(number, "the place of a view", 0) for number in (low, size, room))
            if low + size > room:
                raise _RequestError(f"a view of {size} bytes at {low} is outside of its storage_base of {room} bytes")
            offset += low
            base = base.storage_base
        if base not in result.spec_dict:
            raise _RequestError("the storage_base of a view is not among the specs")
        place = result.spec_dict[base]
        if (place.mem_offset + offset) % alignment:
            raise _RequestError(f"a view at {offset} in its storage_base is not aligned to {alignment} bytes")
        result.spec_dict[spec] = planning.SpecAllocResult(place.mem_id, place.mem_obj_id, place.mem_offset + offset)
    return result


def tinygrad(linear: _typing.Any, held_bufs: _typing.Any = None) -> _typing.Any:
    """Our plan in the place of tinygrad's ``memory_plan_rewrite``: the same schedule, its buffers
    in one arena for each device. As there, buffers that are copied between devices have an arena of
    their own, and what is in ``held_bufs`` stays. Needs the package ``tinygrad``, version 0.14.
    Raises ``usm.RequestError`` for what is no schedule.
    """
    try:
        memory = _import_module("tinygrad.schedule.memory")
        ops = _import_module("tinygrad.uop.ops")
        dtypes = _import_module("tinygrad.dtype").dtypes
    except ModuleNotFoundError as error:
        raise ImportError(f"usm.adapt.tinygrad needs the package {error.name}: pip install tinygrad==0.14") from error
    if not isinstance(linear, ops.UOp) or linear.op is not ops.Ops.LINEAR:
        raise _RequestError(f"linear: an object of type {type(linear).__name__} is no schedule of tinygrad")
    held = held_bufs or set()
    first: dict[_typing.Any, int] = {}
    last: dict[_typing.Any, int] = {}
    copied = set()
    for index, call in enumerate(linear.src):
        used = [buffer for source in call.src[1:] for buffer in memory._collect_bufs(source) if memory._can_plan(buffer, held)]
        for buffer in used:
            first.setdefault(buffer, index)
            last[buffer] = index
        if call.src[0].op is ops.Ops.COPY:
            copied.update(used)
    arenas: dict[_typing.Any, list[_typing.Any]] = {}
    for buffer in first:
        arenas.setdefault((buffer.device, buffer in copied), []).append(buffer)
    places = {}
    for (device, is_copied), buffers in arenas.items():
        # A copy may still run beside the calls after it: it holds its bytes for as long again.
        ends = [last[buffer] + 1 + (last[buffer] - first[buffer] + 1 if is_copied else 0) for buffer in buffers]
        sizes = [buffer.max_numel() * buffer.dtype.itemsize for buffer in buffers]
        rows = [(first[buffer], end, size) for buffer, end, size in zip(buffers, ends, sizes, strict=True)]
        plan = _plan(rows, alignment=_TINYGRAD_ALIGNMENT)
        if not plan.peak:
            continue
        arena = ops.UOp.new_buffer(device, -(-plan.peak // _TINYGRAD_ALIGNMENT) * _TINYGRAD_ALIGNMENT, dtypes.int8)
        for buffer, offset in zip(buffers, memoryview(plan.offsets).tolist(), strict=True):
            places[buffer] = arena[offset : offset + buffer.nbytes()].bitcast(buffer.dtype)
    return linear.substitute(places, name="memory plan", walk=True)


def inductor(nodes: _typing.Any, name_to_buf: _typing.Any, name_to_fused_node: _typing.Any, graph_inputs: _typing.Any, graph_outputs: _typing.Any, *, time_limit: float | None = None) -> _typing.Any:
    """Our order in the place of ``torch._inductor.memory.reorder_for_peak_memory``: the scheduler's
    nodes in the order of the least peak of all that Inductor tries and of ours, by Inductor's own
    estimate. ``time_limit`` is for our search, in seconds. Needs the package ``torch``, version
    2.11. Raises ``usm.RequestError`` for what are no nodes of a scheduler.

        from torch._inductor import memory
        theirs = memory.reorder_for_peak_memory
        memory.reorder_for_peak_memory = usm.adapt.inductor
    """
    try:
        memory = _import_module("torch._inductor.memory")
    except ModuleNotFoundError as error:
        raise ImportError(f"usm.adapt.inductor needs the package {error.name}: pip install torch") from error
    nodes = list(nodes)
    for index, node in enumerate(nodes):
        if not hasattr(node, "get_outputs"):
            raise _RequestError(f"nodes[{index}]: an object of type {type(node).__name__} is no node of Inductor's scheduler")
    _, inputs = memory.prepare_planning_info(nodes, name_to_buf, name_to_fused_node, graph_inputs, graph_outputs)
    orders = [nodes, memory.topological_sort_lpmf(nodes, inputs, name_to_buf, graph_outputs), memory.topological_sort_bfs(nodes), memory.topological_sort_dfs(nodes)]
    if nodes:
        plan = _plan(_described(nodes, inputs, graph_outputs), reorder=True, alignment=1, strategy="greedy-by-size", time_limit=time_limit)
        orders.append([nodes[int(name)] for name in plan.order or ()])
    # The first of the least: an order of equal peak stays as it is.
    return min(orders, key=lambda order: memory.estimate_peak_memory(order, inputs, graph_outputs)[0])


class Comparison(_typing.NamedTuple):
    """A model's memory here and in onnxruntime, in bytes."""

    peak: int
    """The arena of our plan, with the results of the model."""
    pattern: int | None
    """The block that onnxruntime's memory pattern takes, without the results; None where it makes
    no pattern."""
    arena: int
    """All that onnxruntime's default arena took after three runs."""
    sizes: list[dict[str, _typing.Any]]
    """``name``, ``ours`` and ``theirs`` for each tensor that an operator makes."""


def onnxruntime(
    model: str | _os.PathLike[str] | bytes,
    *,
    dims: _abc.Mapping[str, int] | None = None,
    values: _abc.Mapping[str, bool | float] | None = None,
) -> Comparison:
    """Our plan of an ONNX model beside the memory that onnxruntime takes on the CPU, measured by
    running the model with one thread in a process of its own. The inputs are the ``values`` and
    random numbers below 1. Needs the packages ``onnxruntime`` and ``onnx``. Raises
    ``usm.RequestError`` for what ``usm.plan`` refuses, and ``RuntimeError`` with the message of
    onnxruntime.
    """
    for name in ("numpy", "onnx", "onnxruntime"):
        if _find_spec(name) is None:
            raise ImportError(f"usm.adapt.onnxruntime needs the package {name}: pip install onnxruntime onnx")
    said: dict[str, int | str | range] = {}
    for name, value in (dims or {}).items():
        if not isinstance(value, int):
            raise TypeError(f"dims: {name}: one number is wanted, not {value!r}")
        said[name] = value
    given = bytes(model) if isinstance(model, bytes | bytearray) else _os.fspath(model)
    plan = _plan(given, dims=said, values=dict(values or {}))
    # Every tensor by itself, as onnxruntime sees it.
    whole = _plan(given, dims=said, values=dict(values or {}), keep_order=True, views=False, strategy="greedy-by-size")
    ours = {name: size for name, size in zip(whole.names, whole.sizes, strict=True) if name is not None}
    measured = _run(given, dims or {}, values or {}, ours)
    theirs = measured["sizes"]
    sizes = [{"name": name, "ours": size, "theirs": theirs[name]} for name, size in ours.items() if name in theirs]
    return Comparison(plan.peak, measured["pattern"], measured["arena"], sizes)


def _whole(value: _typing.Any, name: str, least: int) -> int:
    """A number of bytes or operators that is not below ``least``."""
    try:
        number = _operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: an object of type {type(value).__name__} does not fit; an integer from {least} on does") from None
    if number < least:
        raise _RequestError(f"{name}: {number} does not fit; an integer from {least} on does")
    return number


def _checked(model: _typing.Any) -> _typing.Any:
    """The first subgraph of a model, in which every index is one of an entry. A file may omit a
    list without entries."""
    model.buffers = model.buffers or []
    for graph in model.subgraphs:
        graph.tensors = [] if graph.tensors is None else graph.tensors
        graph.operators = [] if graph.operators is None else graph.operators
        named = [graph.inputs, graph.outputs]
        for op in graph.operators:
            named += [op.inputs, op.outputs, op.intermediates]
        for group in named:
            for index in [] if group is None else group:
                # -1 is an input that the operator does not have.
                if not -1 <= index < len(graph.tensors):
                    raise ValueError(f"tensor {index} of {len(graph.tensors)}")
        for number, tensor in enumerate(graph.tensors):
            if not 0 <= tensor.buffer < len(model.buffers):
                raise ValueError(f"tensor {number} is in buffer {tensor.buffer} of {len(model.buffers)}")
    return model.subgraphs[0]


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
    for index in [] if graph.inputs is None else graph.inputs:
        use(int(index), 0)
    for index in [] if graph.outputs is None else graph.outputs:
        use(int(index), last)
    return lives


def _bytes(tensor: _typing.Any, index: int, schema: _typing.Any) -> int:
    kinds = schema.TensorType
    # The runtime gives a whole byte to 4 bits, and 4 bytes to the handle of a variable.
    widths = {
        1: "INT8 UINT8 BOOL INT4",
        2: "INT16 UINT16 FLOAT16",
        4: "FLOAT32 INT32 UINT32 RESOURCE",
        8: "INT64 FLOAT64 UINT64 COMPLEX64",
        16: "COMPLEX128",
    }
    for width, names in widths.items():
        if tensor.type in [getattr(kinds, name) for name in names.split() if hasattr(kinds, name)]:
            size = width
            for extent in [] if tensor.shape is None else tensor.shape:
                if extent < 0:
                    raise _RequestError(f"tensor {index}: its extent {extent} is not known")
                size *= int(extent)
            return size
    known = [name for name, value in vars(kinds).items() if value == tensor.type]
    raise _RequestError(f"tensor {index}: the runtime has no size for elements of type {known[0] if known else tensor.type}")
