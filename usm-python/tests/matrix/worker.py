"""The process of one runtime: `python worker.py BACKEND PLACE FIRST PARTS`.

It runs every row of the cases from number FIRST, and one in PARTS of those two conversions deep. It
prints each fault as a line of JSON, then the counts. The file PLACE always holds the numbers of the
case and the row that run now: if the process dies, the parent starts a new one after them.
"""

import json
import mmap
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

ANSWERS = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

import usm  # noqa: E402
from matrix.conversions import CONVERSIONS  # noqa: E402
from matrix.rows import Flag, Read, Write, rows  # noqa: E402
from matrix.sources import sources  # noqa: E402
from matrix.state import CONTENT, State  # noqa: E402

REFUSALS = (usm.Error, TypeError, ValueError, BufferError, AttributeError)
VALUE = 200


def refusals():
    """With Numba's, once it is there."""
    numba = sys.modules.get("numba")
    return REFUSALS + ((numba.core.errors.NumbaError,) if numba else ())


def cases(backend, parts):
    """`(source, conversion, conversion)`: all of depth one, and one in `parts` of depth two.

    Every pair of conversions gets another part of the sources.
    """
    names = list(CONVERSIONS)
    for number, source in enumerate(sources(backend)):
        yield source, ()
        for place, first in enumerate(names):
            yield source, (first,)
            for other, second in enumerate(names):
                if (number + place * len(names) + other) % parts == 0:
                    yield source, (first, second)


def build(make, path):
    source = make()
    state = State(source.object, list(range(len(CONTENT))), CONTENT, True, source.writable)
    for name in path:
        state = CONVERSIONS[name](state)
    return source, state


class Wrong(Exception):
    pass


def check(condition, *words):
    if not condition:
        raise Wrong(*words)


def write(source, state, row):
    try:
        row.call(state.object, VALUE)
    except refusals():
        check(source.look() == CONTENT, "refused, and wrote")
        return "refused"
    check(state.writable is not False, "wrote read-only memory" if source.look() != CONTENT else "was not refused")
    check(source.look() == state.after(VALUE), "wrote other bytes", source.look().hex())
    try:
        check(usm.asarray(state.object).tobytes() == bytes([VALUE]) * len(state.index), "does not see its own write")
    except refusals():
        pass
    return "done"


def look(source, state, row):
    try:
        found = row.call(state.object)
    except refusals():
        return "refused"
    if isinstance(row, Read):
        right = state.bytes()
        if row.of_span:
            right = state.content[min(state.index) : max(state.index) + 1]
        check(found.ljust(64, b"\0") == right.ljust(64, b"\0"), "read other bytes", found.hex())
    if isinstance(row, Flag) and state.writable is False:
        check(found is True, "does not say that it is read-only")
    return "done"


def main(backend, place, first, parts):
    with open(place, "r+b") as file:
        here = mmap.mmap(file.fileno(), 16)
    start, skip = first
    all_sources, counts = sources(backend), {}
    for number, (source, path) in enumerate(cases(backend, parts)):
        if number < start:
            continue
        after = skip if number == start else -1
        here[:] = struct.pack("qq", number, max(after, 0))
        name = "/".join((source, *path))
        try:
            try:
                kept = build(all_sources[source], path)
            except refusals():
                counts[" -> ".join(path[-1:])] = counts.get(" -> ".join(path[-1:]), 0)
                continue
            for index, (row_name, row) in enumerate(rows(kept[1].object)):
                if index <= after:
                    continue
                here[:] = struct.pack("qq", number, index)
                fresh = isinstance(row, Write)
                outcome = write(*build(all_sources[source], path), row) if fresh else look(*kept, row)
                if outcome == "done":
                    counts[row_name] = counts.get(row_name, 0) + 1
                counts["operations"] = counts.get("operations", 0) + 1
            row_name = "all that reads"
            check(kept[0].look() == CONTENT, "changed the source")
        except Exception as error:
            ANSWERS.write(json.dumps([name, row_name if isinstance(error, Wrong) else "", f"{type(error).__name__}: {error}"]) + "\n")
    ANSWERS.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], tuple(map(int, sys.argv[3].split(","))), int(sys.argv[4]))
