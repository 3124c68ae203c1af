"""Exchanges of memory with other libraries, each as a user of the library tries it first.

    pip install --target FOLDER -r requirements.txt
    PYTHONPATH=FOLDER python3 exchange.py [LIBRARY...]

Prints a row for each exchange: it works, it is refused by a decision record, it fails, or the
library is not installed. The last line counts them. The status is 1 if one fails, or if one that is
refused works.
"""

import importlib
import sys
import traceback
from collections import Counter
from typing import NamedTuple

import usm


class Exchange(NamedTuple):
    library: str
    task: str
    run: object
    #: The decision record that refuses it, and the words that the error must have.
    refusal: tuple


#: The module to import for a library; without one, its name.
MODULES = {
    "Python": "sys",
    "NumPy": "numpy",
    "ml_dtypes": "ml_dtypes",
    "SciPy": "scipy",
    "scikit-learn": "sklearn",
    "Pillow": "PIL",
    "mpi4py": "mpi4py",
    "OpenCV": "cv2",
    "tvm-ffi": "tvm_ffi",
}
EXCHANGES = []


def exchange(library, task, refused_by=None, words=""):
    """Adds a function as an exchange. It returns, or raises."""

    def add(run):
        EXCHANGES.append(Exchange(library, task, run, (refused_by, words)))
        return run

    return add


def array(values=(0.0, 1.0, 2.0, 3.0), dtype="f4", shape=None):
    """A new array on the host."""
    made = usm.asarray(list(values), dtype, device="host", kind="host")
    return made if shape is None else made.reshape(shape)


def shares(one, other):
    """Whether two arrays show the same memory: a write to the first one, which is ours, is seen."""
    import numpy as np

    one[(0,) * one.ndim] = 9
    first = np.asarray(other).reshape(-1)[0]
    return float(first) == 9


def outcome(case):
    """What became of an exchange, and a reason."""
    record, words = case.refusal
    try:
        case.run()
    except Exception as error:  # noqa: BLE001
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        if record is not None and words in text:
            return f"refused by {record}", text
        place = traceback.extract_tb(error.__traceback__)[1]
        return "fails", f"line {place.lineno}, {place.line}: {text}"
    if record is not None:
        return "fails", f"works, although {record} refuses it"
    return "works", ""


def main(names):
    for module in ("cases_arrays", "cases_numpy", "cases_tables"):
        importlib.import_module(module)
    counts, libraries, missing = Counter(), set(), {}
    for case in EXCHANGES:
        if names and case.library not in names:
            continue
        module = MODULES.get(case.library, case.library)
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing.setdefault(case.library, f"{error}")
            counts["not tried"] += 1
            continue
        libraries.add(case.library)
        result, reason = outcome(case)
        counts[result.split(" by ")[0]] += 1
        print(f"{case.library:13} {case.task:46} {result:16} {reason[:150]}", flush=True)
    for library, reason in missing.items():
        print(f"{library:13} skipped: {reason}")
    parts = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    print(f"{sum(counts.values())} exchanges, {len(libraries)} libraries here: {parts}")
    return 1 if counts["fails"] else 0


if __name__ == "__main__":
    # The modules of the cases import this one by its name.
    sys.modules["exchange"] = sys.modules[__name__]
    sys.exit(main(sys.argv[1:]))
