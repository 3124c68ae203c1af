"""Buffers of structured types as NumPy exports them: `COUNT` random types, one JSON answer a line:
its version first, then format, itemsize and where every element of every member lies."""
import json
import random
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
choices = random.Random(7797)
NUMBERS = ["i1", "i2", "i4", "i8", "f4", "f8", "u1", "u2", "S3", "c8", "?", ">i4", "U2"]


def structure(depth):
    names = [f"f{i}" for i in range(choices.randint(1, 3))]
    formats = []
    for _ in names:
        one = structure(depth - 1) if depth and choices.random() < 0.6 else np.dtype(choices.choice(NUMBERS))
        if choices.random() < 0.5:
            one = np.dtype((one, choices.choice([(1,), (2,), (3,), (2, 2), (0,)])))
        formats.append(one)
    kind = choices.random()
    if kind < 0.35:
        return np.dtype({"names": names, "formats": formats}, align=True)
    if kind < 0.6:
        return np.dtype({"names": names, "formats": formats})
    offset, offsets = 0, []
    for one in formats:
        if choices.random() < 0.3:
            offset += choices.randint(0, 7)
        offsets.append(offset)
        offset += one.itemsize
    if choices.random() < 0.5:
        offset += choices.randint(0, 9)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": max(offset, 1)})


def places(dtype, start):
    if dtype.subdtype is not None:
        element, shape = dtype.subdtype
        for index in range(int(np.prod(shape))):
            yield from places(element, start + index * element.itemsize)
    elif dtype.names is not None:
        for name in dtype.names:
            member, offset = dtype.fields[name][:2]
            yield from places(member, start + offset)
    else:
        yield start


print(json.dumps(np.__version__))
for _ in range(int(sys.argv[1])):
    dtype = structure(2)
    try:
        answer = [memoryview(np.empty(1, dtype)).format, dtype.itemsize, list(places(dtype, 0))]
    except (ValueError, TypeError, BufferError):
        answer = None  # NumPy itself cannot express it.
    print(json.dumps(answer))
