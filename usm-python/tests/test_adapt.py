"""``usm.adapt``: models that another framework runs with our plan."""

import random
import re
import struct
import sys
import types

import numpy
import pytest

import effort
import usm.adapt
from conftest import require

SCHEMA = "tflite_micro.tensorflow.lite.micro.python.schema_py_generated"


def network(seed):
    """A random ``.tflite`` of additions of float vectors, as bytes."""
    flatbuffers = require("flatbuffers", "writes a model")
    schema = require(SCHEMA, "writes a model")
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
    runtime = require("tflite_micro.python.tflite_micro.runtime", "runs a model")
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


def test_handles_of_variables_have_a_place():
    """As in models that keep a state between calls, such as those that wait for a word."""
    schema = require(SCHEMA, "reads a model")
    flatbuffers = require("flatbuffers", "writes a model")
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(network(2)), 0))
    main = model.subgraphs[0]
    main.tensors[5].type, main.tensors[5].shape = schema.TensorType.RESOURCE, []
    main.tensors[6].type = schema.TensorType.STRING
    builder = flatbuffers.Builder(1024)

    def packed():
        builder.Clear()
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    with pytest.raises(ValueError, match="tensor 6: the runtime has no size for elements of type STRING"):
        usm.adapt.tflm(packed())
    main.tensors[6].type = schema.TensorType.INT4
    planned = usm.adapt.tflm(packed())
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(planned), 0))
    entry = model.buffers[model.metadata[0].buffer].data
    offsets = struct.unpack(f"<{len(main.tensors)}i", bytes(entry)[12:])
    assert min(offsets[5:7]) >= 0


def test_the_plan_of_a_model_is_exact_and_replaces_an_older_one():
    schema = require(SCHEMA, "reads a model")
    planned = usm.adapt.tflm(usm.adapt.tflm(network(1)))
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(planned), 0))
    assert [entry.name for entry in model.metadata] == [b"OfflineMemoryAllocation"]
    data = bytes(model.buffers[model.metadata[0].buffer].data)
    version, graphs, count, *offsets = struct.unpack(f"<{len(data) // 4}i", data)
    assert (version, graphs, count) == (1, 1, 20) and len(offsets) == count
    # A tensor without a reader or writer does not exist here; all have places, 16-aligned.
    assert all(offset >= 0 and offset % 16 == 0 for offset in offsets)


def altered(source, models):
    """A model that is cut, or has other bits or bytes in some places."""
    model = bytearray(source.choice(models))
    how, places = source.randrange(4), source.choice((1, 1, 2, 8))
    if how == 0:
        return bytes(model[: source.randrange(8, len(model))])
    for _ in range(places):
        place = source.randrange(8, len(model))
        if how == 1:
            model[place] ^= 1 << source.randrange(8)
        elif how == 2:
            model[place] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
        else:
            # A whole number: an index, an extent, a count, an offset.
            place -= place % 4
            model[place : place + 4] = struct.pack("<i", source.choice((0, -1, -2, 1, 19, 20, 21, 1 << 16, 1 << 30, -(1 << 31))))[: len(model) - place]
    return bytes(model)


def test_an_altered_model_is_refused_by_a_typed_error():
    require(SCHEMA, "reads a model")
    source, refused = random.Random(2036), 0
    models = [network(seed) for seed in range(4)]
    models += [usm.adapt.tflm(model) for model in models[:2]]
    count = effort.cases("USM_TFLM_CASES", 250)
    for _ in range(count):
        try:
            planned = usm.adapt.tflm(altered(source, models))
        except usm.RequestError as error:
            refused += 1
            assert str(error) and error.__cause__ is None or isinstance(error.__cause__, Exception)
        else:
            # What is accepted is a model, with a plan that is found again.
            assert usm.adapt.tflm(planned)[4:8] == b"TFL3"
    assert 0.5 * count < refused < count


def test_what_is_no_model_is_refused():
    require(SCHEMA, "reads a model")
    with pytest.raises(ValueError, match="TFL3"):
        usm.adapt.tflm(b"not a model at all")
    for cut in (b"\x08\0\0\0TFL3" + bytes(40), bytearray(b"\x08\0\0\0TFL3" + b"\xff" * 40), network(1)[:50]):
        with pytest.raises(ValueError, match=f"no whole .tflite model in {len(cut)} bytes"):
            usm.adapt.tflm(cut)
    for wrong in ("x", 5, None, [1]):
        with pytest.raises(TypeError, match=f"model: an object of type {type(wrong).__name__} does not fit"):
            usm.adapt.tflm(wrong)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    with pytest.raises(ImportError, match=r"usm.adapt.tflm needs the package flatbuffers.*tflite-micro"):
        usm.adapt.tflm(b"")


class Spec:
    """A substitute with what ExecuTorch's ``TensorSpec`` shows a planner. The package itself brings
    all of torch, which the tests do not install."""

    def __init__(self, begin, end, size, mem_id=None, base=None, offset=0):
        self.lifetime, self.size, self.mem_id = [begin, end], size, mem_id
        self.storage_base, self.storage_base_offset = base, offset
        self.allocated_memory = None

    def realign(self, alignment):
        self.allocated_memory = -(-self.size // alignment) * alignment


class Result:
    def __init__(self, mem_id, mem_obj_id, mem_offset):
        self.mem_id, self.mem_obj_id, self.mem_offset = mem_id, mem_obj_id, mem_offset


class AllResults:
    def __init__(self, spec_dict, bufsizes):
        self.spec_dict, self.bufsizes = spec_dict, bufsizes


@pytest.fixture
def exir(monkeypatch):
    module = types.ModuleType("executorch.exir.memory_planning")
    module.MemoryAlgoResult, module.SpecAllocResult = AllResults, Result
    for name in ("executorch", "executorch.exir"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.parametrize("seed", range(8))
def test_specs_that_live_together_share_no_byte(seed, exir):
    source = random.Random(seed)
    specs = []
    for begin in range(30):
        specs.append(Spec(begin, begin + source.randrange(6), source.randrange(16, 500), source.choice([None, 1, 3])))
    specs.append(Spec(5, 5, 16, base=specs[5], offset=0))
    module = types.SimpleNamespace(input_mem_buffer_sizes=[0, 100])
    made = usm.adapt.executorch(16, set(specs), module, None, 64)
    assert len(made.bufsizes) == 4 and made.bufsizes[0] == made.bufsizes[2] == 0
    assert set(made.spec_dict) == set(specs)
    for spec, place in made.spec_dict.items():
        assert place.mem_id == ((spec.storage_base or spec).mem_id or 1) and place.mem_offset % 16 == 0
        assert place.mem_obj_id == 0
        # The first 100 bytes of memory 1 are the caller's, the last 64 the padding.
        assert place.mem_offset >= (100 if place.mem_id == 1 else 0)
        assert place.mem_offset + spec.allocated_memory + 64 <= made.bufsizes[place.mem_id]
    bases = [spec for spec in specs if spec.storage_base is None]
    for index, one in enumerate(bases):
        for other in bases[:index]:
            here, there = made.spec_dict[one], made.spec_dict[other]
            together = one.lifetime[0] <= other.lifetime[1] and other.lifetime[0] <= one.lifetime[1]
            if together and here.mem_id == there.mem_id:
                low = max(here.mem_offset, there.mem_offset)
                ends = (here.mem_offset + one.allocated_memory, there.mem_offset + other.allocated_memory)
                assert low >= min(ends)
    assert made.spec_dict[specs[-1]].mem_offset == made.spec_dict[specs[5]].mem_offset


def test_executorch_has_views_inside_of_their_base_and_no_spec_is_no_memory(exir):
    assert usm.adapt.executorch(16, set(), None, None, 5).bufsizes == [0, 0]
    base = Spec(0, 4, 64)
    inner = Spec(1, 2, 32, base=base, offset=32)
    deep = Spec(1, 2, 16, base=inner, offset=16)
    made = usm.adapt.executorch(16, {base, inner, deep}, None, None, 0)
    offset = made.spec_dict[base].mem_offset
    assert [made.spec_dict[spec].mem_offset - offset for spec in (inner, deep)] == [32, 48]
    assert made.spec_dict[deep].mem_obj_id == made.spec_dict[base].mem_obj_id
    for wrong, reason in [
        (Spec(0, 1, 64, base=base, offset=16), "64 bytes at 16 is outside"),
        (Spec(0, 1, 16, base=base, offset=8), "at 8 .* not aligned to 16"),
    ]:
        with pytest.raises(ValueError, match=reason):
            usm.adapt.executorch(16, {base, wrong}, None, None, 0)
    with pytest.raises(ValueError, match="not among the specs"):
        usm.adapt.executorch(16, {inner}, None, None, 0)


def test_executorch_gets_typed_errors(exir):
    """Numbers that no plan can hold, in every place."""
    wrong = (-1, -(1 << 40), 1 << 70, None, 1.5, "1", [1])

    def specs(**change):
        base = Spec(0, 4, 64)
        view = Spec(1, 2, 32, base=base, offset=32)
        for name, value in change.items():
            setattr(view if name == "storage_base_offset" else base, name, value)
        return {base, view}

    calls = [lambda value=value: usm.adapt.executorch(value, specs(), None, None, 0) for value in (*wrong, 0, 3)]
    calls += [lambda value=value: usm.adapt.executorch(16, specs(), None, None, value) for value in wrong if value != 1 << 70]
    for value in wrong:
        if value is not None:
            calls.append(lambda value=value: usm.adapt.executorch(16, specs(mem_id=value), None, None, 0))
        calls.append(lambda value=value: usm.adapt.executorch(16, specs(lifetime=value), None, None, 0))
        calls.append(lambda value=value: usm.adapt.executorch(16, specs(storage_base_offset=value), None, None, 0))
        for lifetime in ([0, value], [value, 0], [value, value], (0, 1, value)):
            if lifetime != [0, 1 << 70]:
                calls.append(lambda lifetime=lifetime: usm.adapt.executorch(16, specs(lifetime=lifetime), None, None, 0))
    for place, call in enumerate(calls):
        with pytest.raises((usm.RequestError, TypeError)) as caught:
            call()
        # A `TypeError` of ours has the name of what does not fit.
        assert type(caught.value) is not TypeError or "does not fit" in str(caught.value), (place, caught.value)


def test_executorch_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "executorch", None)
    with pytest.raises(ImportError, match=r"usm.adapt.executorch needs the package executorch"):
        usm.adapt.executorch(16, set(), None, None, 0)


def layers(extents, batch="N", domain=""):
    """An ONNX model of matrix products: the columns of each result, after those of the input."""
    onnx = require("onnx", "writes a model")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights, nodes = [], []
    for index, (rows, columns) in enumerate(zip(extents, extents[1:])):
        weights.append(numpy_helper.from_array(numpy.ones((rows, columns), numpy.float32), f"w{index}"))
        nodes.append(helper.make_node("MatMul", [f"t{index}", f"w{index}"], [f"t{index + 1}"], domain=domain))
    shown = [
        helper.make_tensor_value_info(f"t{index}", onnx.TensorProto.FLOAT, [batch, columns])
        for index, columns in enumerate(extents)
    ]
    graph = helper.make_graph(nodes, "layers", shown[:1], shown[-1:], weights, value_info=shown[1:-1])
    sets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()


def test_onnxruntime_is_measured_beside_our_plan(tmp_path):
    require("onnxruntime", "runs a model")
    model = layers([16, 256, 512, 256, 16])
    path = tmp_path / "layers.onnx"
    path.write_bytes(model)
    for rows in (1, 3):
        found = usm.adapt.onnxruntime(path, dims={"N": rows})
        # The second and the third result live together, and nothing else with them.
        assert found.peak == rows * 4 * (256 + 512)
        assert found.pattern == rows * 4 * (256 + 512)
        assert found.arena >= found.pattern
        assert found.sizes == [
            {"name": f"t{index}", "ours": rows * 4 * columns, "theirs": rows * 4 * columns}
            for index, columns in enumerate([256, 512, 256, 16], 1)
        ]
    assert usm.adapt.onnxruntime(model, dims={"t0.0": 3}) == found


def test_onnxruntime_without_a_tensor_between_has_no_pattern():
    require("onnxruntime", "runs a model")
    found = usm.adapt.onnxruntime(bytearray(layers([16, 32])), dims={"N": 2})
    assert (found.peak, found.pattern) == (256, None)


def test_onnxruntime_has_a_block_for_a_branch_too():
    onnx = require("onnx", "writes a model")
    require("onnxruntime", "runs a model")
    helper, kinds = onnx.helper, onnx.TensorProto

    def value(name, columns):
        return helper.make_tensor_value_info(name, kinds.FLOAT, [1, columns])

    def grown(names, columns):
        """Products whose columns double: each result lives until the next one is made."""
        steps = zip(names, names[1:])
        nodes = [helper.make_node("Concat", [one, one], [next_], axis=1) for one, next_ in steps]
        return nodes, [value(name, columns << at) for at, name in enumerate(names[1:], 1)]

    def branch(name):
        nodes, made = grown(["b", f"{name}1", f"{name}2", f"{name}3"], 256)
        return helper.make_graph(nodes, name, [], made[-1:], value_info=made[:-1])

    nodes, made = grown(["x", "a", "b"], 64)
    nodes.append(helper.make_node("If", ["c"], ["y"], then_branch=branch("then"), else_branch=branch("else")))
    given = [value("x", 64), helper.make_tensor_value_info("c", kinds.BOOL, [1])]
    graph = helper.make_graph(nodes, "branches", given, [value("y", 2048)], value_info=made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    found = usm.adapt.onnxruntime(model, values={"c": True})
    # `a` and `b` of 128 and 256 columns, then results of 512 and 1,024 columns in the branch; the
    # output is in no block. onnxruntime rounds up.
    least = 4 * (128 + 256 + 512 + 1024)
    assert least <= found.pattern <= least + 512


def test_onnxruntime_has_the_given_values():
    onnx = require("onnx", "writes a model")
    require("onnxruntime", "runs a model")
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("ConstantOfShape", ["n"], ["zeros"]), helper.make_node("Exp", ["zeros"], ["out"])]
    given, out = helper.make_tensor_value_info("n", kinds.INT64, [1]), helper.make_tensor_value_info("out", kinds.FLOAT, ["L"])
    graph = helper.make_graph(nodes, "zeros", [given], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    found = usm.adapt.onnxruntime(model, values={"n": 1000})
    assert found.sizes == [{"name": name, "ours": 4000, "theirs": 4000} for name in ("zeros", "out")]


def test_sizes_of_quantised_products_and_layers_are_those_of_onnxruntime():
    onnx = require("onnx", "writes a model")
    require("onnxruntime", "runs a model")
    helper, kinds = onnx.helper, onnx.TensorProto

    def constant(name, dtype, *shape):
        return onnx.numpy_helper.from_array(numpy.ones(shape, dtype), name)

    nodes = [
        helper.make_node("DynamicQuantizeMatMul", ["x", "w", "scale", "zero"], ["a"], domain="com.microsoft"),
        helper.make_node("DynamicQuantizeLinear", ["a"], ["q", "qs", "qz"]),
        helper.make_node("MatMulIntegerToFloat", ["q", "v", "qs", "scale", "qz", "zero"], ["b"], domain="com.microsoft"),
        helper.make_node("Unsqueeze", ["b", "axis"], ["s"]),
        helper.make_node(
            "DynamicQuantizeLSTM",
            ["s", "lw", "lr", "", "", "", "", "", "scales", "zeros", "scales", "zeros"],
            ["steps", "last", "cell"],
            domain="com.microsoft",
            hidden_size=16,
            direction="bidirectional",
        ),
        helper.make_node("Relu", ["last"], ["y"]),
    ]
    constants = [
        constant("w", "int8", 8, 24), constant("v", "int8", 24, 12), constant("scale", "float32", 1), constant("zero", "int8", 1),
        constant("axis", "int64", 1), constant("lw", "int8", 2, 12, 64), constant("lr", "int8", 2, 16, 64),
        constant("scales", "float32", 2), constant("zeros", "int8", 2),
    ]  # fmt: skip
    given = helper.make_tensor_value_info("x", kinds.FLOAT, ["N", 8])
    out = helper.make_tensor_value_info("y", kinds.FLOAT, [2, 1, 16])
    graph = helper.make_graph(nodes, "quantised", [given], [out], constants)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
    found = usm.adapt.onnxruntime(model, dims={"N": 10})
    assert {size["name"]: size["ours"] for size in found.sizes} == {
        "a": 960, "q": 240, "qs": 4, "qz": 1, "b": 480, "s": 480, "steps": 1280, "last": 128, "cell": 128, "y": 128,
    }  # fmt: skip
    assert all(size["ours"] == size["theirs"] for size in found.sizes)


def test_onnxruntime_tells_what_it_refuses():
    require("onnxruntime", "runs a model")
    with pytest.raises(RuntimeError, match="onnxruntime did not run the model: .*nobody.s"):
        usm.adapt.onnxruntime(layers([16, 32], domain="nobody.s"), dims={"N": 2})
    with pytest.raises(usm.RequestError, match="no value for `N`"):
        usm.adapt.onnxruntime(layers([16, 32]))
    with pytest.raises(TypeError, match="dims: N: .*1..2"):
        usm.adapt.onnxruntime(layers([16, 32]), dims={"N": "1..2"})


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_package_that_onnxruntime_needs_is_named(package, monkeypatch):
    for name in ("numpy", "onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None if name == package else types.ModuleType(name))
        if name != package:
            monkeypatch.setattr(sys.modules[name], "__spec__", object(), raising=False)
    with pytest.raises(ImportError, match=f"usm.adapt.onnxruntime needs the package {package}: "):
        usm.adapt.onnxruntime(b"")


def test_tinygrad_runs_with_our_plan_and_no_larger_arena(monkeypatch):
    # It reads the device when it is imported.
    monkeypatch.setenv("DEV", "PYTHON")
    tinygrad = require("tinygrad", "runs a schedule")
    memory, jit = require("tinygrad.schedule.memory", "plans"), require("tinygrad.engine.jit", "calls the planner")
    sizes = {"theirs": 0, "ours": 0, "none": 0}

    def arenas(linear):
        """Bytes of all buffers that the calls of a schedule name and nobody holds."""
        used = {buffer for call in linear.src for source in call.src[1:] for buffer in source.toposort() if buffer.op.name == "BUFFER"}
        return sum(buffer.max_numel() * buffer.dtype.itemsize for buffer in used)

    def ours(linear, held=None):
        made = usm.adapt.tinygrad(linear, held)
        sizes["ours"] += arenas(made)
        sizes["none"] += arenas(linear)
        sizes["theirs"] += arenas(theirs(linear, held))
        return made

    theirs = memory.memory_plan_rewrite

    def results(seed):
        source = numpy.random.default_rng(seed)

        def tensor(rows):
            return tinygrad.Tensor(source.standard_normal((rows, 12), dtype=numpy.float32)).realize()

        layers = [tensor(12) for _ in range(5)]

        # Only a captured schedule has buffers that nobody holds.
        @tinygrad.TinyJit
        def network(x):
            y = x
            for layer in layers:
                y = (x @ layer).relu().contiguous()
                x = (x + y @ layer).contiguous() if seed % 2 else (y * 2).contiguous()
            return (x.sum(0) + y.max(0)).realize()

        return [network(tensor(7 + seed)).numpy() for _ in range(4)]

    expected = [results(seed) for seed in range(3)]
    monkeypatch.setattr(jit, "memory_plan_rewrite", ours)
    for seed in range(3):
        assert all((one == other).all() for one, other in zip(results(seed), expected[seed], strict=True))
    assert 0 < sizes["ours"] <= sizes["theirs"] < sizes["none"], sizes


def test_tinygrad_gets_typed_errors(monkeypatch):
    monkeypatch.setitem(sys.modules, "tinygrad.schedule.memory", None)
    with pytest.raises(ImportError, match="usm.adapt.tinygrad needs the package tinygrad"):
        usm.adapt.tinygrad(None)
    monkeypatch.undo()
    require("tinygrad", "has schedules")
    for wrong in (None, 3, [], "linear"):
        with pytest.raises(usm.RequestError, match="is no schedule of tinygrad"):
            usm.adapt.tinygrad(wrong)
