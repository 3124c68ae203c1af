"""Plans random ONNX models, and replays all true values of each in one arena by its plan.

    random_models.py [--command USM] [--first N] [--count N] [--wrong N]

Needs what `arena_of_true_values.py` needs, which replays. Models of files use few of the freedoms
of a plan at once; these mix views, parts, joins and operators in place in every order, with axes,
bounds and constants in each of their spellings. Which operators may write over which input is
written here a second time, and is not read from the planner.

Writes one line of counts and answers 0. At the first wrong plan it writes the seed and the command,
keeps the model and answers 1. `--wrong N` then moves N tensors of each right plan, one after the
other, and counts how many of these arenas are refused: a second judge, without an arena, says which
have to be.
"""

import argparse
import collections
import functools
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from arena_of_true_values import bytes_of, first_wrong, misplaced, plan, roots_of, true_values, with_one_moved

OPSET = 18
# Few sizes, so that many values can be reshaped, added and joined to each other.
SHAPES = [(4, 16), (1, 8, 16), (2, 1, 32), (16,), (64,), (1,), (), (0, 16), (2, 3), (4, 1, 16), (32, 2), (1, 1, 64)]
SHAPES += [(8, 16), (1, 4, 4, 4), (3, 16), (1, 16)]
# The most elements of one value.
LARGEST = 4096
INT64 = 2**63 - 1
# Orders in which an out-of-order plan is replayed.
ORDERS = 6

ELEMENTWISE = ["Relu", "Neg", "Tanh", "Sigmoid", "Abs", "Softsign", "Ceil", "Erf", "LeakyRelu", "HardSigmoid"]
# These read an element of each input only for the same element of the result.
OVER_ANY_INPUT = {*ELEMENTWISE, "Add", "Mul", "Sub", "PRelu", "Cast", "Greater", "Where"}
# These may write over their first input, if it is no other input too.
OVER_FIRST_INPUT = {"Sum", "Max", "Min", "Mean", "Softmax", "LogSoftmax", "BatchNormalization", "Clip"}


class Graph:
    """A growing ONNX graph. The arrays in `values` have each value's shape and type, no numbers."""

    def __init__(self, source):
        self.source = source
        self.nodes, self.initializers, self.inputs, self.results, self.values = [], [], [], [], {}

    def name(self, sort):
        return f"{sort}{len(self.nodes)}.{len(self.initializers)}.{len(self.values)}"

    def constant(self, numbers, type=numpy.int64):
        """An initializer, or now and then the node Constant."""
        name = self.name("c")
        tensor = numpy_helper.from_array(numpy.array(numbers, type), name)
        if self.source.random() < 0.3:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.initializers.append(tensor)
        return name

    def pick(self, suits=lambda value: True):
        """The name of a value of float32 that suits, or None; often a late one: chains are long."""
        found = [name for name, value in self.values.items() if value.dtype == numpy.float32 and suits(value)]
        if not found:
            return None
        return self.source.choice(found[-6:] if self.source.random() < 0.7 else found)

    def add(self, operator, inputs, *results, **attributes):
        """Appends a node with a value for each result, and returns their names."""
        names = []
        for result in results:
            names.append(self.name("t"))
            self.values[names[-1]] = numpy.asarray(result)
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        self.results.extend(names)
        return names

    def spelled_axis(self, axis, rank):
        """The axis, or the same one counted from the end."""
        return axis if self.source.random() < 0.6 else axis - rank


def blank(shape, type=numpy.float32):
    return numpy.zeros(shape, type)


def broadcasts_with(shape, value):
    try:
        return numpy.broadcast_shapes(shape, value.shape) is not None
    except ValueError:
        return False


# Each of these adds one operator on the value `x`, or nothing where `x` does not suit it.


def add_unary(graph, x):
    graph.add(graph.source.choice(ELEMENTWISE), [x], graph.values[x])


def add_binary(graph, x):
    y = graph.pick(functools.partial(broadcasts_with, graph.values[x].shape))
    if graph.source.random() < 0.5:
        x, y = y, x
    shape = numpy.broadcast_shapes(graph.values[x].shape, graph.values[y].shape)
    # The slope of PRelu is the input that may be broadcast.
    last = "PRelu" if shape == graph.values[x].shape else "Add"
    graph.add(graph.source.choice(["Add", "Mul", "Sub", "Max", "Min", last]), [x, y], blank(shape))


def add_many_inputs(graph, x):
    shape = graph.values[x].shape

    def adds_nothing(value):
        return broadcasts_with(shape, value) and numpy.broadcast_shapes(shape, value.shape) == shape

    inputs = [x, *(graph.pick(adds_nothing) for _ in range(graph.source.randint(1, 2)))]
    graph.source.shuffle(inputs)
    graph.add(graph.source.choice(["Sum", "Max", "Min", "Mean"]), inputs, blank(shape))


def add_reshape(graph, x):
    size = graph.values[x].size
    same_size = [shape for shape in SHAPES if blank(shape).size == size]
    shape = graph.source.choice([*same_size, (size,), (1, size), (size, 1)])
    attributes = {"allowzero": 1} if 0 in shape else {}
    graph.add("Reshape", [x, graph.constant(shape)], graph.values[x].reshape(shape), **attributes)


def add_squeeze(graph, x):
    value = graph.values[x]
    ones = [axis for axis, extent in enumerate(value.shape) if extent == 1]
    if not ones:
        return
    if graph.source.random() < 0.2:
        graph.add("Squeeze", [x], numpy.squeeze(value))
    else:
        axis = graph.spelled_axis(graph.source.choice(ones), value.ndim)
        graph.add("Squeeze", [x, graph.constant([axis])], numpy.squeeze(value, axis))


def add_unsqueeze(graph, x):
    value = graph.values[x]
    if value.ndim <= 3:
        axis = graph.source.randint(-value.ndim - 1, value.ndim)
        graph.add("Unsqueeze", [x, graph.constant([axis])], numpy.expand_dims(value, axis))


def add_flatten(graph, x):
    value = graph.values[x]
    if value.ndim:
        axis = graph.source.randint(-value.ndim, value.ndim)
        at = axis if axis >= 0 else axis + value.ndim
        rows, columns = (blank(part).size for part in (value.shape[:at], value.shape[at:]))
        graph.add("Flatten", [x], value.reshape(rows, columns), axis=axis)


def add_identity(graph, x):
    graph.add("Identity", [x], graph.values[x])


def add_dropout(graph, x):
    value = graph.values[x]
    way = graph.source.choice(["plain", "with a mask", "with a ratio", "without a ratio"])
    if way == "plain":
        graph.add("Dropout", [x], value)
    elif way == "with a mask":
        graph.add("Dropout", [x], value, blank(value.shape, bool))
    else:
        ratio = graph.constant(0.5, numpy.float32) if way == "with a ratio" else ""
        graph.add("Dropout", [x, ratio, graph.constant(False, bool)], value)


def add_split(graph, x):
    value, source = graph.values[x], graph.source
    if not value.ndim:
        return
    axis = source.randrange(value.ndim)
    extent = value.shape[axis]
    if extent < 2:
        return
    count = source.randint(2, min(4, extent))
    ends = [0, *sorted(source.sample(range(1, extent), count - 1)), extent]
    sizes = [end - begin for begin, end in zip(ends, ends[1:])]
    if source.random() < 0.4 and extent % count == 0:
        sizes = [extent // count] * count
    if source.random() < 0.1:
        sizes.insert(0, 0)
    parts = numpy.split(value, numpy.cumsum(sizes)[:-1], axis)
    spelled = graph.spelled_axis(axis, value.ndim)
    if len(set(sizes)) == 1 and source.random() < 0.5:
        graph.add("Split", [x], *parts, axis=spelled, num_outputs=len(sizes))
    else:
        graph.add("Split", [x, graph.constant(sizes)], *parts, axis=spelled)


def sliced_axis(source, extent):
    """Begin, end and step of a Slice of one axis, and which elements these are by the standard."""
    step = source.choice([1, 1, 1, 1, 2, -1, -2])
    if step > 0:
        begin = source.choice([0, source.randint(-extent, extent), -INT64, source.randint(-extent - 3, extent + 3)])
        end = source.choice([INT64, source.randint(-extent, extent + 2), extent, 2**31 - 1])
        lowest, highest = (0, 0), (extent, extent)
    else:
        begin = source.choice([INT64, -1, source.randint(-extent, extent + 2)])
        end = source.choice([-INT64 - 1, source.randint(-extent, extent)])
        lowest, highest = (0, -1), (extent - 1, extent - 1)
    # Python's slices put a begin before the first element at -1, the standard puts it at 0.
    bounds = [bound + extent if bound < 0 else bound for bound in (begin, end)]
    bounds = [max(low, min(high, bound)) for low, high, bound in zip(lowest, highest, bounds)]
    return begin, end, step, list(range(*bounds, step)) if extent else []


def add_slice(graph, x):
    value, source = graph.values[x], graph.source
    if not value.ndim:
        return
    axes = source.sample(range(value.ndim), source.randint(1, value.ndim))
    if source.random() < 0.6:
        # An axis with nothing but ones outside: the part is one piece of memory.
        axes = [source.choice([axis for axis in range(value.ndim) if set(value.shape[:axis]) <= {1}])]
    cuts = [sliced_axis(source, value.shape[axis]) for axis in axes]
    begins, ends, steps, kept = (list(part) for part in zip(*cuts))
    part = value
    for axis, elements in zip(axes, kept):
        part = numpy.take(part, numpy.array(elements, int), axis)
    type = source.choice([numpy.int64, numpy.int64, numpy.int32])
    limits = numpy.iinfo(type)
    begins, ends = ([max(limits.min, min(limits.max, bound)) for bound in bounds] for bounds in (begins, ends))
    inputs = [x, graph.constant(begins, type), graph.constant(ends, type)]
    plain = set(steps) == {1}
    if not (plain and axes == list(range(len(axes))) and source.random() < 0.4):
        inputs.append(graph.constant([graph.spelled_axis(axis, value.ndim) for axis in axes], type))
        if not plain or source.random() < 0.5:
            inputs.append(graph.constant(steps, type))
    graph.add("Slice", inputs, part)


def add_concat(graph, x):
    shape, source = graph.values[x].shape, graph.source
    if not shape:
        return
    axis = source.choice([0, 0, source.randrange(len(shape))])
    if shape[0] == 1 and len(shape) > 1 and source.random() < 0.5:
        axis = 1

    def fits(value):
        others = (value.shape[:axis], value.shape[axis + 1 :])
        return value.ndim == len(shape) and others == (shape[:axis], shape[axis + 1 :])

    inputs = [x, *(graph.pick(fits) for _ in range(source.randint(1, 3)))]
    source.shuffle(inputs)
    joined = numpy.concatenate([graph.values[name] for name in inputs], axis)
    if joined.size <= LARGEST:
        graph.add("Concat", inputs, joined, axis=graph.spelled_axis(axis, len(shape)))


def add_softmax(graph, x):
    value = graph.values[x]
    if value.ndim and value.size:
        axis = graph.source.randint(-value.ndim, value.ndim - 1)
        graph.add(graph.source.choice(["Softmax", "LogSoftmax"]), [x], value, axis=axis)


def add_normalization(graph, x):
    value = graph.values[x]
    if value.ndim < 2 or not value.size:
        return
    channels = value.shape[1]
    scale, bias, mean, variance = (graph.constant([number] * channels, numpy.float32) for number in (1, 0, 0, 1))
    computed = graph.pick(lambda value: value.shape == (channels,))
    if computed and graph.source.random() < 0.5:
        bias = computed
    graph.add("BatchNormalization", [x, scale, bias, mean, variance], value)


def add_transpose(graph, x):
    value = graph.values[x]
    if value.ndim:
        axes = graph.source.sample(range(value.ndim), value.ndim)
        graph.add("Transpose", [x], value.transpose(axes), perm=axes)


def add_sum_of_axis(graph, x):
    value = graph.values[x]
    if value.ndim:
        axis, keeps = graph.source.randrange(value.ndim), graph.source.randint(0, 1)
        graph.add("ReduceSum", [x, graph.constant([axis])], value.sum(axis, keepdims=bool(keeps)), keepdims=keeps)


def add_cast(graph, x):
    type = numpy.dtype(graph.source.choice(["int32", "float16", "uint8", "bool", "float64"]))
    value = graph.values[x]
    [cast] = graph.add("Cast", [x], blank(value.shape, type), to=helper.np_dtype_to_tensor_dtype(type))
    if graph.source.random() < 0.8:
        graph.add("Cast", [cast], value, to=TensorProto.FLOAT)


def add_where(graph, x):
    shape = graph.values[x].shape
    y, z = (graph.pick(lambda value: value.shape == shape) for _ in range(2))
    [greater] = graph.add("Greater", [x, y], blank(shape, bool))
    graph.add("Where", [greater, x, z], graph.values[x])


def add_clip(graph, x):
    bound = graph.pick(lambda value: value.shape == ())
    if bound and graph.source.random() < 0.6:
        bounds = [bound]
    else:
        low = graph.source.choice(["", graph.constant(-1, numpy.float32)])
        bounds = [low, graph.constant(1, numpy.float32)]
    graph.add("Clip", [x, *bounds], graph.values[x])


def add_gather(graph, x):
    value = graph.values[x]
    if value.ndim and value.shape[0]:
        rows = graph.source.choices(range(value.shape[0]), k=graph.source.randint(1, 3))
        graph.add("Gather", [x, graph.constant(rows)], value[rows], axis=0)


def add_expand(graph, x):
    value = graph.values[x]
    shape = graph.source.choice([(2, *value.shape), value.shape])
    if 2 * value.size <= LARGEST:
        graph.add("Expand", [x, graph.constant(shape)], blank(shape))


def add_product(graph, x):
    value = graph.values[x]
    if value.ndim == 2 and value.shape[1]:
        y = graph.pick(lambda other: other.ndim == 2 and other.shape[0] == value.shape[1])
        if y is not None:
            graph.add("MatMul", [x, y], blank((value.shape[0], graph.values[y].shape[1])))


# One that is here more than once is drawn more often.
OPERATORS = [add_unary] * 2 + [add_binary] * 3 + [add_concat] * 3 + [add_slice] * 2
OPERATORS += [add_many_inputs, add_reshape, add_squeeze, add_unsqueeze, add_flatten, add_identity, add_dropout]
OPERATORS += [add_split, add_softmax, add_normalization, add_transpose, add_sum_of_axis, add_cast, add_where]
OPERATORS += [add_clip, add_gather, add_expand, add_product]


def random_model(source):
    """A model that onnxruntime runs. Some state every shape, the others leave them to inference."""
    graph = Graph(source)
    for index in range(source.randint(1, 3)):
        graph.inputs.append(f"in{index}")
        graph.values[f"in{index}"] = blank(source.choice(SHAPES))
    if source.random() < 0.4:
        shape = source.choice(SHAPES)
        weights = numpy.arange(blank(shape).size, dtype=numpy.float32).reshape(shape)
        graph.initializers.append(numpy_helper.from_array(weights, "w"))
        graph.values["w"] = weights
    for _ in range(source.choice([6, 12, 25, 50])):
        source.choice(OPERATORS)(graph, graph.pick())
    if not graph.results:
        add_unary(graph, graph.pick())
    outputs = {*source.sample(graph.results, min(len(graph.results), source.randint(1, 3))), graph.results[-1]}
    outputs = source.sample(sorted(outputs), len(outputs))

    def typed(names):
        described = ((name, graph.values[name]) for name in names)
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in described
        ]

    between = [name for name in graph.results if name not in outputs] if source.random() < 0.7 else []
    made = helper.make_graph(
        graph.nodes, "random", typed(graph.inputs), typed(outputs), graph.initializers, value_info=typed(between)
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def random_options(source):
    """Options of the command, and whether the plan is for an out-of-order queue."""
    options = ["--time-limit", "5", "--alignment", source.choice(["1", "4", "16", "64", "64", "64"])]
    options += ["--strategy", source.choice(["auto", "auto", "greedy-by-size", "best-fit", "search"])]
    unordered = source.random() < 0.25
    if unordered:
        options += ["--queue", "out-of-order"]
    else:
        options += ["--keep-order"] * (source.random() < 0.3) + ["--no-views"] * (source.random() < 0.15)
    return options, unordered


def random_order(source, graph, report):
    """The operators in an order that their inputs and the plan's ordering edges allow."""
    ops = graph["ops"]
    producer = {id: number for number, op in enumerate(ops) for id in op["outputs"]}
    number_of = {op["name"]: number for number, op in enumerate(ops)}
    before = [{producer[id] for id in op["inputs"] if id in producer} for op in ops]
    for first, then in report["ordering_edges"]:
        before[number_of[then]].add(number_of[first])
    done, waiting = [], list(range(len(ops)))
    while waiting:
        ready = [number for number in waiting if before[number].issubset(done)]
        done.append(source.choice(ready))
        waiting.remove(done[-1])
    return [ops[number] for number in done]


def judge_in_place(model, graph, values, offsets):
    """A judge of tensors that are written over inputs of their operators, for `first_wrong`."""
    name_of = {tensor["id"]: tensor["name"] for tensor in graph["tensors"]}
    node_of = {name: node for node in model.graph.node for name in node.output if name}

    def judge(id, met):
        node, value = node_of[name_of[id]], values[name_of[id]]
        if node.op_type not in OVER_ANY_INPUT | OVER_FIRST_INPUT:
            return f"{node.op_type} cannot write over an input"
        for of in met:
            other = values[name_of[of]]
            if (offsets[of], other.shape, other.itemsize) != (offsets[id], value.shape, value.itemsize):
                return f"it lies over a part of {name_of[of]}"
        first = node.input[0]
        if node.op_type in OVER_FIRST_INPUT and ({name_of[of] for of in met} != {first} or list(node.input).count(first) > 1):
            return f"{node.op_type} may write over its first input alone"
        return None

    return judge


def has_changed_bytes(graph, offsets, values, ops):
    """Whether any read finds other bytes, by the list of all writes: the judge without an arena."""
    value, root = bytes_of(graph, values), roots_of(graph)
    writes = []

    def end(id):
        return offsets[id] + len(value[id])

    def has_other_bytes(id):
        found, known = numpy.zeros(len(value[id]), numpy.uint8), numpy.zeros(len(value[id]), bool)
        for written in writes:
            low, high = max(offsets[id], offsets[written]), min(end(id), end(written))
            if low < high:
                here = slice(low - offsets[id], high - offsets[id])
                found[here] = value[written][low - offsets[written] : high - offsets[written]]
                known[here] = True
        return not known.all() or not numpy.array_equal(found, value[id])

    for op in ops:
        inputs, outputs = ([id for id in op[part] if id in offsets] for part in ("inputs", "outputs"))
        if any(map(has_other_bytes, inputs)):
            return True
        for id in outputs:
            same_root = [of for of in inputs if root[of] == root[id]]
            if not any(max(offsets[of], offsets[id]) < min(end(of), end(id)) for of in same_root):
                writes.append(id)
    return any(has_other_bytes(id) for id in graph["outputs"] if id in offsets)


def reason_of(refusal):
    """What the command says, without the names and numbers of one model."""
    lines = refusal.split("model.onnx: ")[-1].strip().splitlines() or ["no reason"]
    return re.sub(r"\d+", "N", re.sub(r"`[^`]*`|\"[^\"]*\"", "...", lines[0]))


class WrongPlan(Exception):
    """What is wrong with a plan, or with a judge that accepts a wrong one."""


class Counts:
    """What the models came to."""

    def __init__(self):
        self.right = self.reads = self.moved = self.changed = self.refused_arenas = 0
        self.refused = collections.Counter()

    def line(self, models):
        text = f"{models} models: {self.right} right, {self.reads} reads, {self.refused.total()} refused"
        reasons = "; ".join(f"{count}: {reason}" for reason, count in self.refused.most_common())
        text += f" ({reasons})" if reasons else ""
        if self.moved:
            text += f"; {self.refused_arenas} of {self.moved} arenas with one tensor at another's place are refused"
            text += f", {self.changed} have to be"
        return text


def check_model(seed, command, folder, moves, counts):
    """Plans the model of a seed, and raises `WrongPlan` if a replay goes wrong."""
    source = random.Random(seed)
    model, path = random_model(source), folder / "model.onnx"
    onnx.save(model, path)
    values = true_values(path, {}, -2, 2)
    options, unordered = random_options(source)
    try:
        report, graph, rows = plan(command, path, folder, options)
    except subprocess.CalledProcessError as error:
        if error.returncode not in (1, 2) or "panicked" in error.stderr:
            raise WrongPlan(f"exit code {error.returncode}: {error.stderr[-300:]}") from error
        counts.refused[reason_of(error.stderr)] += 1
        return
    offsets = {int(row["id"]): int(row["offset"]) for row in rows}
    orders = [random_order(source, graph, report) for _ in range(ORDERS)] if unordered else [graph["ops"]]

    def first_wrong_of(offsets, size):
        judge = judge_in_place(model, graph, values, offsets)
        found = [first_wrong(graph, offsets, values, size, ops, judge) for ops in orders]
        return next((wrong for wrong, _ in found if wrong), None), sum(looked for _, looked in found)

    faults = misplaced(rows, values, report["peak"])
    kinds, root = {tensor["id"]: tensor.get("kind") for tensor in graph["tensors"]}, roots_of(graph)
    faults += [
        f"{tensor['name']} has no place"
        for tensor in graph["tensors"]
        if kinds[root[tensor["id"]]] == "activation" and tensor["id"] not in offsets
    ]
    wrong, looked = first_wrong_of(offsets, report["peak"])
    if faults or wrong:
        raise WrongPlan("; ".join(filter(None, [wrong, *faults]))[:500] + f": plan {shlex.join(options)}")
    counts.right += 1
    counts.reads += looked
    for _ in range(moves if len(rows) > 1 else 0):
        moved = with_one_moved(source, rows, offsets)
        refused = first_wrong_of(moved, 2 * report["peak"])[0] is not None
        changed = any(has_changed_bytes(graph, moved, values, ops) for ops in orders)
        if changed and not refused:
            raise WrongPlan(f"accepted with changed bytes: offsets {moved}")
        counts.moved += 1
        counts.changed += changed
        counts.refused_arenas += refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default="target/release/usm")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--wrong", type=int, default=0)
    arguments = parser.parse_args()
    counts, folder = Counts(), Path(tempfile.mkdtemp(prefix="random-models-"))
    for seed in range(arguments.first, arguments.first + arguments.count):
        try:
            check_model(seed, arguments.command, folder, arguments.wrong, counts)
        except WrongPlan as wrong:
            print(counts.line(seed - arguments.first))
            sys.exit(f"seed {seed}: {wrong}\nthe model is kept: {folder / 'model.onnx'}")
    shutil.rmtree(folder)
    print(counts.line(arguments.count))


if __name__ == "__main__":
    main()
