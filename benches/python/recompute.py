"""The recompute curve on the graphs of MOCCASIN's and Checkmate's papers; rows of JSON.

    USM_COMMAND=usm python3 recompute.py FILE...

The files are those of the folder `data` of haoming-codes/moccasin: random layered graphs and
training graphs of Checkmate. A row has the peak of the given order in the file's unit, how many
points, whether they fall, and the added time in percent of a peak within 0.9 and 0.8 of that, from
the whole curve and by `--budget`; null if none was reached. Each run has 10 s, or `USM_SECONDS`.
"""

import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile


def graph_of(path):
    """The order of the file, and for each node its size, cost and inputs."""
    data = json.loads(path.read_text())
    layered = "out_cost" in data["nodes"][0]
    size, cost, name = ("out_cost", "duration", "name") if layered else ("cost_ram", "cost_cpu", "id")
    ends = ("0", "1") if layered else ("source", "target")
    nodes = {node[name]: (node[size], node[cost], set()) for node in data["nodes"]}
    for edge in data["links"]:
        nodes[edge[ends[1]]][2].add(edge[ends[0]])
    order = data["graph"].get("order") or topological(nodes)
    number = {node: at for at, node in enumerate(order)}
    tensors = [{"id": at, "size": nodes[node][0]} for at, node in enumerate(order)]
    ops = [
        {"name": str(at), "cost": nodes[node][1], "inputs": sorted(number[it] for it in nodes[node][2]), "outputs": [at]}
        for at, node in enumerate(order)
    ]
    return {"tensors": tensors, "ops": ops}


def topological(nodes):
    """The order of networkx: layer by layer, in a layer by the last input."""
    waits = {node: len(rest[2]) for node, rest in nodes.items()}
    order = [node for node in nodes if not waits[node]]
    for done in order:
        for node in (node for node in nodes if done in nodes[node][2]):
            waits[node] -= 1
            if not waits[node]:
                order.append(node)
    return order


def load(graph):
    """The most bytes at an operator."""
    ops, tensors = graph["ops"], graph["tensors"]
    last = list(range(len(ops)))
    for at, op in enumerate(ops):
        for tensor in op["inputs"]:
            last[tensor] = at
    change = [0] * (len(ops) + 1)
    for at, tensor in enumerate(tensors):
        change[at] += tensor["size"]
        change[last[at] + 1] -= tensor["size"]
    return max(itertools.accumulate(change))


def curve(file, *options):
    seconds = os.environ.get("USM_SECONDS", "10")
    words = ["plan", file, "--curve-recompute", "--json", "--alignment", "1", "--time-limit", seconds, *options]
    done = subprocess.run([os.environ["USM_COMMAND"], *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)["points"] if done.returncode == 0 else []


def main(files):
    for path in map(pathlib.Path, files):
        graph = graph_of(path)
        total = sum(op["cost"] for op in graph["ops"])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(graph, file)
            file.flush()
            points = curve(file.name)
            peak = load(graph)
            pairs = list(zip(points, points[1:], strict=False))
            falls = all(one["peak"] > other["peak"] and one["time"] < other["time"] for one, other in pairs)
            row = {"case": path.name, "ops": len(graph["ops"]), "peak": peak, "points": len(points), "falls": falls}
            for part in (0.9, 0.8):
                budget = math.ceil(peak * part)
                fit = [point for point in points if point["peak"] <= budget][:1]
                found = curve(file.name, "--budget", str(budget))[-1:]
                pair = [fit[0] if fit else None, found[0] if found else None]
                row[str(part)] = [point and round(100 * point["time"] / total, 2) for point in pair]
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
