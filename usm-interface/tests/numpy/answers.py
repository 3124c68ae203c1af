"""NumPy's readings of types: its version, then one JSON string a line in, one JSON answer a line
out."""
import ast
import json
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


def members(dtype):
    if dtype.names is None:
        return None
    answer = []
    for name in dtype.names:
        entry = dtype.fields[name]
        field, offset = entry[0], entry[1]
        title = entry[2] if len(entry) > 2 else None
        size, shape = field.itemsize, []
        while field.subdtype is not None:
            field, outer = field.subdtype
            shape += list(outer)
        answer.append([name, title, offset, size, shape, None if field.names is not None else field.str, members(field)])
    return answer


print(json.dumps(np.__version__))
for line in sys.stdin:
    text = json.loads(line)
    try:
        dtype = np.dtype(ast.literal_eval(text) if text.startswith("[") else text)
        answer = {"itemsize": dtype.itemsize, "alignment": dtype.alignment, "str": dtype.str, "members": members(dtype)}
    except Exception as error:
        answer = {"error": type(error).__name__}
    print(json.dumps(answer))
