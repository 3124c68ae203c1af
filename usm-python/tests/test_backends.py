"""The same cases on every backend: devices to events, `usm.memory`, `usm.Array`, exchange."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import effort
from backends.cases import CASES
from backends.configurations import CONFIGURATIONS, Missing
from conftest import lacking

WORKER = Path(__file__).with_name("backends") / "worker.py"
# A case that takes longer hangs; the worker gives up before, with the place of each thread.
LIMIT = 120
VARIABLES_OF_A_MACHINE = ("ZE_", "USM_ZE_", "USM_DEVICE", "USM_VERBOSE")


class Worker:
    def __init__(self, configuration, environment):
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(VARIABLES_OF_A_MACHINE)}
        if not configuration.required:
            inherited = dict(os.environ)
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), configuration.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**inherited, "USM_DEVICE": configuration.backend, **environment},
        )
        self.outcome, self.reason = self.answer()

    def answer(self):
        """The next answer, or how the process ended without one."""
        hangs = threading.Timer(LIMIT, self.process.kill)
        hangs.start()
        line = self.process.stdout.readline()
        hangs.cancel()
        if line:
            return json.loads(line)
        return ["died", f"the process ended with status {self.process.wait()}\n{self.error_output()}"]

    def run(self, case):
        self.process.stdin.write(f"{case}\n".encode())
        self.process.stdin.flush()
        return self.answer()

    def error_output(self):
        self.errors.seek(0)
        return self.errors.read()[-4000:].decode(errors="replace")

    def end(self):
        """By the usual way out: a runtime that dies while it closes is a failure too."""
        self.process.stdin.close()
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "none: killed"


@pytest.fixture(scope="module")
def workers(request):
    """The running processes by configuration."""
    running = {}
    yield running
    ends = {name: (worker.end(), worker.error_output()) for name, worker in running.items() if worker.outcome == "ready"}
    assert all(status == 0 for status, _ in ends.values()), ends


def without(configuration, reason):
    if configuration.required:
        lacking(configuration.name, reason)
    pytest.skip(f"{configuration.name}: {reason}")


# The stricter of two configurations of a driver finds what the other one does, or more.
MILDER = ["level_zero", "cuda_on_host", "hip_on_host_late"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", effort.some([name for name in CONFIGURATIONS if name not in MILDER], MILDER))
def test_case(name, case, workers, request):
    configuration = CONFIGURATIONS[name]
    if name not in workers:
        try:
            environment = configuration.environment(request.getfixturevalue)
        except Missing as reason:
            without(configuration, reason)
        workers[name] = Worker(configuration, environment)
    worker = workers[name]
    if worker.outcome == "missing":
        without(configuration, worker.reason)
    assert worker.outcome == "ready", worker.reason
    outcome, reason = worker.run(case)
    if outcome == "skipped":
        pytest.skip(reason)
    if outcome == "died":
        del workers[name]
    assert outcome == "passed", reason
