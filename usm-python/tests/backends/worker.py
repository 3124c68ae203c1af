"""The process of one configuration: `python worker.py CONFIGURATION`.

It reads names of cases, one a line, and answers each with a line of JSON: the outcome and the
reason. The first answer is about the runtime: an empty reason, or why the runtime is missing.
"""

import faulthandler
import json
import os
import pathlib
import signal
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# Output of libraries must not be taken for an answer.
ANSWERS = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

from backends.cases import CASES  # noqa: E402
from backends.fixture import Backend, Skip  # noqa: E402

# Less than the parent's limit, so that this process can print where each thread was.
LIMIT = 100


def answer(outcome, reason=""):
    ANSWERS.write(json.dumps([outcome, reason]) + "\n")


def run(backend, name):
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        CASES[name](backend)
        backend.check_nothing_is_left()
    except Skip as reason:
        return "skipped", str(reason)
    except BaseException as error:
        # Pytest's view of assertions is not to be had here: the values of all names stand in for
        # it.
        lines = traceback.TracebackException.from_exception(error, capture_locals=True).format()
        return "failed", "".join(lines)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "passed", ""


def main(name):
    # A shell that starts the tests in the background makes them and all their children ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        backend = Backend(name)
    except Skip as reason:
        answer("missing", str(reason))
        return
    answer("ready")
    for line in sys.stdin:
        answer(*run(backend, line.strip()))


if __name__ == "__main__":
    main(sys.argv[1])
