"""The peak of omnimalloc's search for a table (argument 1) within some seconds (argument 2)."""

import csv
import sys

import omnimalloc
from omnimalloc.allocators import SupermallocAllocator

file, seconds = sys.argv[1:3]
omnimalloc.set_max_threads(1)
with open(file, newline="") as rows:
    table = [
        omnimalloc.Allocation(id=number, size=int(row["size"]), start=int(row["lower"]), end=int(row["upper"]))
        for number, row in enumerate(csv.DictReader(rows, skipinitialspace=True))
        if int(row["size"]) > 0 and int(row["lower"]) < int(row["upper"])
    ]
placed = omnimalloc.allocate(table, SupermallocAllocator(timeout=float(seconds)), validate=True)
print(max(one.offset + one.size for one in placed))
