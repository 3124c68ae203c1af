"""Plans an ONNX model, runs it with onnxruntime, and lays every true value into one arena by the
plan: each must be there at each read.

    arena_of_true_values.py [--command USM] [--dim NAME=VALUE]... [--option=OPTION]... MODEL

Needs the packages onnx, onnxruntime and numpy. Of a view nothing is written: its bytes must be
those of the true value already. Writes one line and answers 0, or the first wrong read and 1.
`--wrong N` moves N tensors first, one after the other, and counts how many of these arenas are
refused.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime

TYPES = {"float": "float32", "double": "float64"}


def true_values(path, extents):
    """Every value of the model by name, after one run on random inputs."""
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
        values[given.name] = (source.random(extent) * 100).astype(TYPES.get(name, name))
        if given.name == "sr":
            values["sr"] = numpy.array(16000, values["sr"].dtype)
    names = [output.name for output in session.get_outputs()]
    values.update(zip(names, session.run(names, values)))
    return {name: numpy.ascontiguousarray(value).tobytes() for name, value in values.items() if value is not None}


def first_wrong(graph, offsets, values, size):
    """The first read that does not find its value, or None; and how many reads were looked at."""
    arena = numpy.zeros(size, numpy.uint8)
    tensors = {tensor["id"]: tensor for tensor in graph["tensors"]}
    value = {id: numpy.frombuffer(values.get(tensor["name"], b""), numpy.uint8) for id, tensor in tensors.items()}
    root = {}
    for id in tensors:
        at = id
        while "alias_of" in tensors[at]:
            at = tensors[at]["alias_of"]
        root[id] = at
    looked = 0

    def holds(id):
        here = arena[offsets[id] : offsets[id] + len(value[id])]
        return numpy.array_equal(here, value[id])

    def meets(one, other):
        low = max(offsets[one], offsets[other])
        return low < min(offsets[one] + len(value[one]), offsets[other] + len(value[other]))

    for op in graph["ops"]:
        for id in filter(offsets.__contains__, op["inputs"]):
            looked += 1
            if not holds(id):
                return f"{op['name']} reads {tensors[id]['name']}", looked
        for id in filter(offsets.__contains__, op["outputs"]):
            if any(root[id] == root[of] and meets(id, of) for of in op["inputs"]):
                looked += 1
                if not holds(id):
                    return f"{op['name']} makes the view {tensors[id]['name']}", looked
            else:
                arena[offsets[id] : offsets[id] + len(value[id])] = value[id]
    for id in filter(offsets.__contains__, graph["outputs"]):
        looked += 1
        if not holds(id):
            return f"the caller reads {tensors[id]['name']}", looked
    return None, looked


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--command", default="target/release/usm")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--wrong", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("graph.json", "plan.csv")]
        dims = [part for dim in arguments.dim for part in ("--dim", dim)]
        command = [arguments.command, "plan", arguments.model, "--json", *dims, *arguments.option]
        ran = subprocess.run([*command, "--graph", files[0], "--output", files[1]], capture_output=True, text=True)
        if ran.returncode:
            sys.exit(ran.stderr)
        report, graph = json.loads(ran.stdout), json.loads(files[0].read_text())
        rows = list(csv.DictReader(files[1].open(newline="")))
    extents = {name: int(value) for name, value in (dim.rsplit("=", 1) for dim in arguments.dim)}
    values = true_values(arguments.model, extents)
    offsets = {int(row["id"]): int(row["offset"]) for row in rows}
    other = [row["name"] for row in rows if row["name"] in values and len(values[row["name"]]) != int(row["size"])]
    unknown = [row["name"] for row in rows if row["name"] not in values and int(row["size"])]
    if other or unknown:
        sys.exit(f"{arguments.model}: of another size {other[:5]}, without a true value {unknown[:5]}")
    wrong, looked = first_wrong(graph, offsets, values, report["peak"])
    views = sum("alias_of" in tensor for tensor in graph["tensors"])
    print(f"{arguments.model}: peak {report['peak']}, {len(rows)} tensors, {views} views, {looked} reads, {wrong or 'all right'}")
    source, refused = random.Random(1), 0
    for _ in range(arguments.wrong):
        moved, place = source.sample(rows, 2)
        onto = {**offsets, int(moved["id"]): int(place["offset"])}
        refused += first_wrong(graph, onto, values, 2 * report["peak"])[0] is not None
    if arguments.wrong:
        print(f"  {refused} of {arguments.wrong} arenas with one tensor at another's place are refused")
    sys.exit(wrong is not None)


if __name__ == "__main__":
    main()
