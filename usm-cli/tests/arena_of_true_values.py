"""Plans an ONNX model, runs it with onnxruntime, and lays every true value into one arena by the
plan: each must be there at each read.

    arena_of_true_values.py [--command USM] [--dim NAME=VALUE]... [--option=OPTION]... MODEL

Needs the packages onnx, onnxruntime and numpy. Of a view nothing is written: its bytes must be
those of the true value already. Writes one line and answers 0, or the first wrong read and 1.
`--wrong N` moves N tensors first, one after the other, and counts how many of these arenas are
refused. `random_models.py` does the same with models that it makes.
"""

import argparse
import csv
import json
import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime

TYPES = {"float": "float32", "double": "float64"}


def plan(command, model, folder, options):
    """The report, the planned graph and the rows of the plan, which stay in `folder`."""
    graph, rows = (Path(folder) / name for name in ("graph.json", "plan.csv"))
    words = [*shlex.split(command), "plan", model, "--json", *options, "--graph", graph, "--output", rows]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    with rows.open(newline="") as table:
        return json.loads(ran.stdout), json.loads(graph.read_text()), list(csv.DictReader(table))


def true_values(path, extents, low=0, high=100):
    """Every value of the model by name, after one run on random inputs from `low` to `high`."""
    model = onnx.load(path)
    known = {output.name for output in model.graph.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name and name not in known)
        known.update(node.output)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    source = numpy.random.default_rng(1)
    values = {}
    for given in session.get_inputs():
        name = given.type.removeprefix("tensor(").removesuffix(")")
        extent = [
            dim if isinstance(dim, int) and dim >= 0 else extents.get(f"{given.name}.{axis}", extents.get(dim))
            for axis, dim in enumerate(given.shape)
        ]
        drawn = numpy.asarray(low + source.random(extent) * (high - low))
        values[given.name] = drawn.astype(TYPES.get(name, name))
        if given.name == "sr":
            values["sr"] = numpy.array(16000, values["sr"].dtype)
    names = [output.name for output in session.get_outputs()]
    values.update(zip(names, session.run(names, values)))
    return {name: numpy.asarray(value, order="C") for name, value in values.items() if value is not None}


def bytes_of(graph, values):
    """The true bytes of each tensor by id."""
    named = {name: numpy.frombuffer(value.tobytes(), numpy.uint8) for name, value in values.items()}
    return {tensor["id"]: named.get(tensor["name"], numpy.zeros(0, numpy.uint8)) for tensor in graph["tensors"]}


def roots_of(graph):
    """For each tensor the one whose bytes it is a view of: itself if it has bytes of its own."""
    of = {tensor["id"]: tensor.get("alias_of") for tensor in graph["tensors"]}
    roots = {}
    for id in of:
        at = id
        while of[at] is not None:
            at = of[at]
        roots[id] = at
    return roots


def first_wrong(graph, offsets, values, size, ops=None, judge=None):
    """The first read that does not find its value, or None; and how many reads were looked at.

    The operators run in the order of `ops`, by default the graph's. `judge(tensor, inputs)` may
    refuse a tensor that is written over bytes of these inputs of its operator.
    """
    # No tensor is right before it is written because it is zero.
    arena = numpy.random.default_rng(0).integers(0, 256, size, numpy.uint8)
    tensors = {tensor["id"]: tensor for tensor in graph["tensors"]}
    value, root = bytes_of(graph, values), roots_of(graph)
    looked = 0

    def holds(id):
        here = arena[offsets[id] : offsets[id] + len(value[id])]
        return numpy.array_equal(here, value[id])

    def meets(one, other):
        low = max(offsets[one], offsets[other])
        return low < min(offsets[one] + len(value[one]), offsets[other] + len(value[other]))

    for op in graph["ops"] if ops is None else ops:
        inputs, outputs = ([id for id in op[part] if id in offsets] for part in ("inputs", "outputs"))
        for id in inputs:
            looked += 1
            if not holds(id):
                return f"{op['name']} reads {tensors[id]['name']}", looked
        for id in outputs:
            met = [of for of in inputs if meets(id, of)]
            if any(root[id] == root[of] for of in met):
                looked += 1
                if not holds(id):
                    return f"{op['name']} makes the view {tensors[id]['name']}", looked
                continue
            refusal = judge(id, met) if judge and met else None
            if refusal:
                return f"{op['name']} makes {tensors[id]['name']}: {refusal}", looked
            arena[offsets[id] : offsets[id] + len(value[id])] = value[id]
        for id in outputs:
            if not holds(id):
                return f"{op['name']} loses its output {tensors[id]['name']}", looked
    for id in filter(offsets.__contains__, graph["outputs"]):
        looked += 1
        if not holds(id):
            return f"the caller reads {tensors[id]['name']}", looked
    return None, looked


def misplaced(rows, values, peak):
    """What is wrong with rows of a plan by themselves: sizes, alignments and the peak."""
    faults = []
    for row in rows:
        name, offset, size, alignment = row["name"], *(int(row[part]) for part in ("offset", "size", "alignment"))
        if name not in values and size:
            faults.append(f"{name} has {size} bytes and no true value")
        elif name in values and values[name].nbytes != size:
            faults.append(f"{name} has {size} bytes, truly {values[name].nbytes}")
        if size and (offset % alignment or offset + size > peak):
            faults.append(f"{name} is at {offset} with {size} bytes, alignment {alignment}, peak {peak}")
    return faults


def with_one_moved(source, rows, offsets):
    """The offsets with one tensor at the place of another."""
    moved, place = source.sample(rows, 2)
    return {**offsets, int(moved["id"]): int(place["offset"])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--command", default="target/release/usm")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--wrong", type=int, default=0)
    arguments = parser.parse_args()
    options = [*(part for dim in arguments.dim for part in ("--dim", dim)), *arguments.option]
    with tempfile.TemporaryDirectory() as folder:
        try:
            report, graph, rows = plan(arguments.command, arguments.model, folder, options)
        except subprocess.CalledProcessError as error:
            sys.exit(error.stderr)
    extents = {name: int(value) for name, value in (dim.rsplit("=", 1) for dim in arguments.dim)}
    values = true_values(arguments.model, extents)
    offsets = {int(row["id"]): int(row["offset"]) for row in rows}
    faults = misplaced(rows, values, report["peak"])
    if faults:
        sys.exit(f"{arguments.model}: {'; '.join(faults[:5])}")
    wrong, looked = first_wrong(graph, offsets, values, report["peak"])
    views = sum("alias_of" in tensor for tensor in graph["tensors"])
    print(f"{arguments.model}: peak {report['peak']}, {len(rows)} tensors, {views} views, {looked} reads, {wrong or 'all right'}")
    source, refused = random.Random(1), 0
    for _ in range(arguments.wrong):
        onto = with_one_moved(source, rows, offsets)
        refused += first_wrong(graph, onto, values, 2 * report["peak"])[0] is not None
    if arguments.wrong:
        print(f"  {refused} of {arguments.wrong} arenas with one tensor at another's place are refused")
    sys.exit(wrong is not None)


if __name__ == "__main__":
    main()
