"""Plans of random ONNX models are right, by a replay of all true values in one arena.

`USM_RANDOM_MODELS` is the number of models, twelve by default.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import effort
from conftest import require

PROGRAM = Path(__file__).parents[2] / "usm-cli/tests/random_models.py"
# Inference of shapes stops at a few models, which the command then refuses.
REFUSED = re.compile(r"(\d+): [^;]*(?:could not be inferred|inference)")


def test_random_models_are_planned_right_and_wrong_arenas_refused():
    for package in ("numpy", "onnx", "onnxruntime"):
        require(package, "makes and runs random models")
    count = effort.cases("USM_RANDOM_MODELS", 12)
    words = [sys.executable, PROGRAM, "--command", shlex.join([sys.executable, "-m", "usm"])]
    done = subprocess.run([*words, "--first", "7000", "--count", str(count), "--wrong", "5"], capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout, done.stderr[-3000:])
    right, refused = map(int, re.search(r"(\d+) right, .* (\d+) refused[ ;]", done.stdout).groups())
    assert right + refused == count and right >= 0.8 * count, done.stdout
    assert sum(map(int, REFUSED.findall(done.stdout))) == refused, done.stdout
    arenas, moved, changed = map(int, re.search(r"(\d+) of (\d+) arenas .* (\d+) have to be", done.stdout).groups())
    assert moved >= arenas >= changed > 0.1 * moved > 0, done.stdout
