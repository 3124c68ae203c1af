"""Finds leaks: live blocks, the code that allocated them, a file for PyTorch's memory_viz."""

import os
import pathlib
import tempfile

import usm

# Records the last 1,000 requests of each context from now on, with the lines that made them.
usm.history(1000, lines=True)
kept = []


def step():
    work = usm.zeros(1 << 16, "u1", device="host")
    result = usm.zeros(1 << 10, "u1", device="host")
    result.fill(work.tolist()[0])
    kept.append(result)  # the leak


with usm.track() as block:
    for _ in range(10):
        step()
print(f"{block.allocations} allocations, {block.peak} bytes at most, {block.live} still live")
assert (block.allocations, block.live) == (20, 10 << 10)

# Lists the memory that was allocated and not freed, by the line that requested it.
live = {}
for records in usm.history().values():
    for record in records:
        if record["operation"] == "allocate":
            live[record["address"]] = record
        elif record["operation"] == "free":
            del live[record["address"]]
lines = [record["lines"][0] for record in live.values()]
file, line, function = max(set(lines), key=lines.count)
print(f"{lines.count((file, line, function))} blocks live from {os.path.basename(file)}:{line} in {function}")
assert function == "step" and len(live) == 10

# The same for a viewer.
with tempfile.TemporaryDirectory() as folder:
    usm.snapshot().dump(pathlib.Path(folder) / "memory.pickle")  # opens in pytorch.org/memory_viz
    usm.snapshot().trace(pathlib.Path(folder) / "memory.json")  # opens in ui.perfetto.dev
