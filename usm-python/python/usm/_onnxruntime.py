"""What onnxruntime allocates for a model, measured in a process of its own: an allocator is
registered for a whole process, and the log is the only place where the arena tells its sizes."""

import collections.abc as _abc
import contextlib as _contextlib
import json as _json
import os as _os
import re as _re
import subprocess as _subprocess
import sys as _sys
import tempfile as _tempfile
import typing as _typing
from collections import Counter as _Counter
from importlib import import_module as _import_module

# Results of one run that are kept at a time, to measure their sizes.
_KEPT = 1 << 28

_ELEMENTS = {
    "float": "float32", "double": "float64", "float16": "float16", "bool": "bool",
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
}  # fmt: skip

_CHILD = "import json, sys; request = json.load(sys.stdin); sys.path[:] = request['path']; from usm._onnxruntime import measure; measure(request)"


def run(
    model: bytes | str, dims: _abc.Mapping[str, int], values: _abc.Mapping[str, _typing.Any], sizes: _abc.Mapping[str, int]
) -> dict[str, _typing.Any]:
    """``pattern``, ``arena``, and ``sizes`` by name. Those of ``sizes`` are ours: they say which to
    measure, and how many at a time."""
    if not _sys.executable:
        raise RuntimeError("usm.adapt.onnxruntime runs onnxruntime in a process of its own, and sys.executable is empty")
    with _contextlib.ExitStack() as stack:
        if isinstance(model, bytes):
            file = _os.path.join(stack.enter_context(_tempfile.TemporaryDirectory(prefix="usm-")), "model.onnx")
            with open(file, "wb") as out:
                out.write(model)
        else:
            file = _os.path.abspath(model)
        request = {"path": _sys.path, "file": file, "dims": dict(dims), "values": dict(values), "sizes": dict(sizes)}
        # NumPy's numbers are no numbers of JSON.
        text = _json.dumps(request, default=lambda number: number.item())
        done = _subprocess.run([_sys.executable, "-c", _CHILD], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"]
        raise RuntimeError(f"onnxruntime did not run the model: {lines[-1]}")
    answer: dict[str, _typing.Any] = _json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(request: dict[str, _typing.Any]) -> None:
    """In the child: prints the answer as JSON."""
    ort = _import_module("onnxruntime")
    ort.set_default_logger_severity(0)
    file, sizes = request["file"], request["sizes"]

    def session(model: str | bytes, level: str, **entries: str) -> _typing.Any:
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        # Every thread has scratch memory of its own, which is no part of a plan.
        options.intra_op_num_threads = 1
        options.log_severity_level = 0
        for name, value in entries.items():
            options.add_session_config_entry("session." + name, value)
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    given: dict[str, _typing.Any] = {}

    def default() -> None:
        made = session(file, "ORT_ENABLE_ALL")
        given.update(_inputs(made, request["dims"], request["values"]))
        for _ in range(3):
            made.run(None, given)

    arena = sum(_extensions(default))

    # Each block is as large as it must be, and no free block stays between runs: the second run,
    # which has the pattern of the first, begins with the block for that pattern.
    exact = ort.OrtArenaCfg({"arena_extend_strategy": 1})
    place = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(place, exact)
    shrink = ort.RunOptions()
    shrink.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    kept: list[_typing.Any] = []
    _extensions(lambda: kept.append(session(file, "ORT_DISABLE_ALL", use_env_allocators="1")))
    first, second = (_extensions(lambda: kept[0].run(None, given, shrink)) for _ in range(2))
    # Without a pattern the second run takes what the first one took.
    pattern = second[0] if second and second != first else None

    onnx = _import_module("onnx")
    whole = onnx.load(file, load_external_data=False)
    if pattern is not None and any(node.op_type in ("If", "Loop", "Scan") for node in whole.graph.node):
        # A branch or a body has a pattern and a block of its own, which only the second run takes.
        blocks = _Counter(second[1:]) - _Counter(first)
        pattern += max(blocks, default=0)
    present = {output.name for output in whole.graph.output}
    made_by = [name for node in whole.graph.node for name in node.output if name]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made_by if name not in present)
    folder = {"model_external_initializers_file_folder_path": _os.path.dirname(file)}
    shown = session(whole.SerializeToString(), "ORT_DISABLE_ALL", **folder)
    theirs: dict[str, int] = {}
    batch: list[str] = []
    for name in [*(name for name in made_by if name in sizes), None]:
        if batch and (name is None or sum(sizes[kept] for kept in batch) + sizes[name] > _KEPT):
            results = shown.run(batch, given)
            theirs.update((kept, result.nbytes) for kept, result in zip(batch, results, strict=True) if hasattr(result, "nbytes"))
            batch = []
        if name is not None:
            batch.append(name)
    print(_json.dumps({"pattern": pattern, "arena": arena, "sizes": theirs}))


def _extensions(action: _abc.Callable[[], object]) -> list[int]:
    """The blocks in bytes that arenas took while the action ran, from the log on standard error."""
    with _tempfile.TemporaryFile() as log:
        before = _os.dup(2)
        _sys.stderr.flush()
        _os.dup2(log.fileno(), 2)
        try:
            action()
        finally:
            _sys.stderr.flush()
            _os.dup2(before, 2)
            _os.close(before)
        log.seek(0)
        return [int(bytes_) for bytes_ in _re.findall(rb"Extended allocation by (\d+) bytes", log.read())]


def _inputs(session: _typing.Any, dims: dict[str, int], values: dict[str, _typing.Any]) -> dict[str, _typing.Any]:
    """The given values; for the other inputs numbers below 1, which are indices of every table."""
    numpy = _import_module("numpy")
    source = numpy.random.default_rng(0)
    inputs = {}
    for node in session.get_inputs():
        element = _re.fullmatch(r"tensor\((\w+)\)", node.type)
        if element is None or element[1] not in _ELEMENTS:
            raise ValueError(f"input {node.name!r}: its type {node.type} has no NumPy type")
        dtype = _ELEMENTS[element[1]]
        shape = []
        for axis, extent in enumerate(node.shape):
            if not (isinstance(extent, int) and extent >= 0):
                extent = dims.get(f"{node.name}.{axis}", dims.get(extent))
            shape.append(extent)
        if node.name in values:
            inputs[node.name] = numpy.full(shape, values[node.name], dtype)
        else:
            inputs[node.name] = source.random(shape).astype(dtype)
    return inputs
