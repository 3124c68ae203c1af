"""``usm.adapt``: models that another framework runs with our plan."""

import random
import re
import struct
import sys

import numpy
import pytest

import usm.adapt


def network(seed):
    """A random ``.tflite`` of additions of float vectors, as bytes."""
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("tflite_micro.tensorflow.lite.micro.python.schema_py_generated")
    source = random.Random(seed)

    def tensor(length):
        made = schema.TensorT()
        made.shape, made.type, made.buffer = [length], schema.TensorType.FLOAT32, 0
        return made

    graph = schema.SubGraphT()
    graph.tensors, graph.operators, graph.inputs = [tensor(64)], [], [0]
    for index in range(1, 20):
        op = schema.OperatorT()
        op.opcodeIndex, op.outputs = 0, [index]
        op.inputs = [source.randrange(max(0, index - 6), index) for _ in range(2)]
        op.builtinOptionsType, op.builtinOptions = schema.BuiltinOptions.AddOptions, schema.AddOptionsT()
        graph.tensors.append(tensor(64))
        graph.operators.append(op)
    graph.outputs = [19]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.ADD
    code.version = 1
    model = schema.ModelT()
    model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, [code], [graph], [schema.BufferT()]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def result(model, given, capfd):
    """The output of a run, and the bytes of the arena's head."""
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 20)
    interpreter.set_input(given, 0)
    interpreter.invoke()
    capfd.readouterr()
    interpreter.print_allocations()
    told = "".join(capfd.readouterr())
    return interpreter.get_output(0), int(re.search(r"Arena allocation head (\d+)", told)[1])


@pytest.mark.parametrize("seed", range(6))
def test_a_planned_model_computes_the_same_in_no_more_memory(seed, capfd):
    model = network(seed)
    planned = usm.adapt.tflm(model)
    given = numpy.random.default_rng(seed).random(64).astype("float32")
    (own, head), (ours, planned_head) = (result(made, given, capfd) for made in (model, planned))
    assert numpy.array_equal(own, ours)
    assert planned_head <= head


def test_the_plan_of_a_model_is_exact_and_replaces_an_older_one():
    schema = pytest.importorskip("tflite_micro.tensorflow.lite.micro.python.schema_py_generated")
    planned = usm.adapt.tflm(usm.adapt.tflm(network(1)))
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(planned), 0))
    assert [entry.name for entry in model.metadata] == [b"OfflineMemoryAllocation"]
    data = bytes(model.buffers[model.metadata[0].buffer].data)
    version, graphs, count, *offsets = struct.unpack(f"<{len(data) // 4}i", data)
    assert (version, graphs, count) == (1, 1, 20) and len(offsets) == count
    # A tensor without a reader or writer does not exist here; all have places, 16-aligned.
    assert all(offset >= 0 and offset % 16 == 0 for offset in offsets)


def test_what_is_no_model_is_refused():
    pytest.importorskip("tflite_micro")
    with pytest.raises(ValueError, match="TFL3"):
        usm.adapt.tflm(b"not a model at all")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    with pytest.raises(ImportError, match=r"usm.adapt.tflm needs the package flatbuffers.*tflite-micro"):
        usm.adapt.tflm(b"")
