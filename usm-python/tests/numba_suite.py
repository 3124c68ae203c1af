"""Runs one of Numba's own test modules on usm's runtime and prints what came of it, as one JSON document.

    python numba_suite.py MODULE [--stock [--uncounted] | --kind KIND --source SELECTOR]

``--stock`` runs it on Numba's runtime, for comparison, and counts there too unless ``--uncounted``.
"""

import argparse
import atexit
import gc
import importlib
import io
import json
import os
import pathlib
import shutil
import tempfile
import time
import unittest


def names(cases):
    return sorted(".".join(case.id().split(".")[-2:]) for case, *_ in cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
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
        # Never off: what the tests leak themselves is to be seen.
        from numba.core.runtime import _nrt_python, rtsys

        _nrt_python.memsys_enable_stats()
        _nrt_python.memsys_disable_stats = lambda: None
        stats = rtsys.get_allocation_stats

    module = importlib.import_module(f"numba.tests.{arguments.module}")
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    output = io.StringIO()
    start = time.perf_counter()
    result = unittest.TextTestRunner(stream=output, verbosity=2).run(suite)
    seconds = time.perf_counter() - start
    report = {
        "ran": result.testsRun,
        "failed": names(result.failures + result.errors),
        "unexpected": names((case,) for case in result.unexpectedSuccesses),
        "skipped": names(result.skipped),
        "expected_failures": names(result.expectedFailures),
        "seconds": round(seconds, 1),
        "output": "" if result.wasSuccessful() else output.getvalue(),
    }
    del suite, result
    gc.collect()
    report["stats"] = stats and stats()._asdict()
    if not arguments.stock:
        installed = usm.numba.installed()
        report |= {"live": installed.live, "kind": installed.kind, "leaks": len(usm.nrt.leaks())}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
