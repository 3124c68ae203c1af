"""Runs one of Numba's test modules, or a part of it, on usm's runtime, and reports each test."""

import argparse
import atexit
import faulthandler
import gc
import importlib
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest


class Reporting(unittest.TextTestResult):
    """Writes the outcome of each test as a line of JSON."""

    def __init__(self, report, limit):
        super().__init__(unittest.runner._WritelnDecorator(io.StringIO()), False, 0)
        self.report, self.limit = report, limit

    def write(self, **line):
        self.report.write(json.dumps(line) + "\n")
        self.report.flush()

    def startTest(self, test):
        super().startTest(test)
        self.outcome = {"outcome": "passed"}
        self.write(start=name(test))
        self.started = time.perf_counter()
        faulthandler.dump_traceback_later(self.limit, exit=True)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        self.write(end=name(test), seconds=round(time.perf_counter() - self.started, 2), **self.outcome)
        super().stopTest(test)

    def addFailure(self, test, problem):
        super().addFailure(test, problem)
        self.failed(test, self.failures[-1][1])

    def addError(self, test, problem):
        super().addError(test, problem)
        self.failed(test, self.errors[-1][1])

    def addSubTest(self, test, subtest, problem):
        super().addSubTest(test, subtest, problem)
        if problem is not None:
            self.failed(test, f"{subtest}\n{self._exc_info_to_string(problem, test)}")

    def failed(self, test, text):
        if not isinstance(test, unittest.TestCase):
            # A failed preparation of a class or module: there is no test to stop.
            self.write(end=str(test), outcome="failed", text=text)
        self.outcome = {"outcome": "failed", "text": text}

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome = {"outcome": "skipped", "text": reason}

    def addExpectedFailure(self, test, problem):
        super().addExpectedFailure(test, problem)
        self.outcome = {"outcome": "expected failure"}

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.outcome = {"outcome": "unexpected success"}


def name(test):
    return ".".join(test.id().split(".")[-2:])


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("report")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--after")
    parser.add_argument("--test-limit", type=float, default=1200)
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--uncounted", action="store_true")
    parser.add_argument("--kind", default="host")
    parser.add_argument("--source")
    arguments = parser.parse_args()

    if not arguments.stock:
        install = f"import usm, usm.numba; usm.numba.install({arguments.source!r}, {arguments.kind!r})"
        # Many tests run in a process of their own: that one is to have the runtime too.
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        pathlib.Path(folder, "sitecustomize.py").write_text(install)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        import usm
        import usm.numba

        usm.numba.install(arguments.source, arguments.kind)
        stats = usm.nrt.get_allocation_stats

        usm.nrt.track()
    elif arguments.uncounted:
        stats = None
    else:
        # Never off, because leaks of the tests themselves must be visible.
        from numba.core.runtime import _nrt_python, rtsys

        _nrt_python.memsys_enable_stats()
        _nrt_python.memsys_disable_stats = lambda: None
        stats = rtsys.get_allocation_stats

    module = importlib.import_module(f"numba.tests.{arguments.module}")
    tests = list(flat(unittest.defaultTestLoader.loadTestsFromModule(module)))
    part, parts = map(int, arguments.part.split("/"))
    # Neighbours stay together, because they share their class's preparation.
    tests = tests[len(tests) * part // parts : len(tests) * (part + 1) // parts]
    if arguments.after:
        tests = tests[[name(test) for test in tests].index(arguments.after) + 1 :]
    with open(arguments.report, "a") as report:
        result = Reporting(report, arguments.test_limit)
        unittest.TestSuite(tests)(result)
        del tests
        gc.collect()
        left = {"blocks": None, "headers": None}
        if stats:
            now = stats()
            left = {"blocks": now.alloc - now.free, "headers": now.mi_alloc - now.mi_free}
        if not arguments.stock:
            left |= {"live": usm.numba.installed().live, "tracked": len(usm.nrt.leaks()), "kind": usm.numba.installed().kind}
        result.write(left=left)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
