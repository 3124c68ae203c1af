"""A memory plan: of a table, of a graph, as a page, and as memory. `python a_plan.py
[MODEL.onnx]`."""

import pathlib
import sys
import tempfile

import usm

# Rows of (first step, step after the last, bytes): three layers, each reads the one before.
plan = usm.plan([(0, 2, 4096), (1, 3, 8192), (2, 4, 4096)])
print(f"{len(plan)} buffers in {plan.peak} bytes; nothing below {plan.lower_bound} is possible")
assert plan.optimal and plan.peak == 12288
plan.verify()

# With names: the arena hands out arrays by them.
layers = ["input", "hidden", "output"]
graph = {
    "tensors": [{"id": id, "size": 1024, "name": name} for id, name in enumerate(layers)],
    "ops": [{"inputs": [id - 1] if id else [], "outputs": [id]} for id in range(len(layers))],
    "outputs": [2],
}
plan = usm.plan(graph if len(sys.argv) < 2 else pathlib.Path(sys.argv[1]))
arena = plan.arena("host")
name = next(iter(arena))
print(arena.nbytes, "bytes for all;", name, "is", arena[name])

# One page for a browser, which needs nothing from the network; `plan.show()` opens it.
with tempfile.TemporaryDirectory() as folder:
    page = pathlib.Path(folder) / "plan.html"
    plan.to_html(page)
    print("a page of", page.stat().st_size, "bytes")
