"""Plans of ONNX models by the Python module beside the command's; rows of JSON.

    USM_COMMAND=usm PYTHONPATH=FOLDER_OF_THE_PACKAGE python3 both_plans.py FOLDER...

Each folder is searched for files `*.onnx`, such as those of the packages in `models.txt`; equal
files count once. A row has both peaks, and whether peak, lower bound and proof of optimality
agree. The status is 1 if two plans differ, or only one of the two refuses a model.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

import onnx

import usm
from models import INPUTS, plan, values_of


def by_module(path, dims, values):
    begin = time.process_time()
    made = usm.plan(str(path), dims=dims or None, values=values or None)
    seconds = time.process_time() - begin
    return {"peak": made.peak, "bound": made.lower_bound, "optimal": made.optimal}, seconds


def by_command(path, dims, values):
    report, _ = plan(path, dims, values)
    return {"peak": report["peak"], "bound": report["lower_bound"], "optimal": report["optimal"]}


def outcome(call):
    try:
        return call(), None
    except (RuntimeError, ValueError, OSError) as error:
        return None, str(error).splitlines()[-1]


def main(folders):
    seen, differ = set(), 0
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.onnx")):
        digest = hashlib.sha256(path.read_bytes()).digest()
        if digest in seen:
            continue
        seen.add(digest)
        model = onnx.load(path, load_external_data=False)
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = [tensor for tensor in model.graph.input if tensor.name not in constants]
        given = (path, values_of(path, inputs), {t.name: INPUTS[t.name] for t in inputs if t.name in INPUTS})
        (module, refusal), (command, other) = outcome(lambda: by_module(*given)), outcome(lambda: by_command(*given))
        plans = [module and module[0], command]
        is_equal = plans[0] == plans[1]
        differ += not is_equal
        row = {"case": "/".join(path.parts[-3:]), "equal": is_equal, "peaks": [one and one["peak"] for one in plans]}
        row |= {"seconds": module and round(module[1], 2), "refusals": [refusal, other]}
        print(json.dumps(row), flush=True)
    print(json.dumps({"case": "all", "models": len(seen), "differ": differ}))
    return differ > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
