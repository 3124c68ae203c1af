"""Runs each script in a process of its own, without repeating the imports.

The imports are made once; every script runs in a fork of the process that made them.
"""

import os
import select
import signal
import struct
import subprocess
import sys
import tempfile

# : Reads the length of a script, the script and the file for its output; a fork leaves the loop and
# runs it to its end.
SERVER = """
import os, struct, sys
while True:
    header = sys.stdin.buffer.read(8)
    if len(header) < 8:
        os._exit(0)
    sizes = struct.unpack("<II", header)
    script, output = (sys.stdin.buffer.read(size).decode() for size in sizes)
    child = os.fork()
    if child == 0:
        file = os.open(output, os.O_WRONLY)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, place in (nothing, 0), (file, 1), (file, 2):
            os.dup2(descriptor, place)
        os.close(file), os.close(nothing)
        break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.buffer.write(struct.pack("<i", code))
    sys.stdout.buffer.flush()
exec(compile(script, "<string>", "exec"))
"""


class Warm:
    """Runs scripts after ``imports``."""

    def __init__(self, imports):
        self.imports = imports
        self.server = None

    def run(self, script, timeout=600):
        """Exit status (negative: the signal) and the script's output."""
        if sys.platform != "linux":
            done = subprocess.run(
                [sys.executable, "-c", self.imports + script], capture_output=True, text=True, timeout=timeout
            )
            return done.returncode, done.stdout + done.stderr
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-c", self.imports + SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
            )
        with tempfile.NamedTemporaryFile() as output:
            parts = script.encode(), output.name.encode()
            self.server.stdin.write(struct.pack("<II", *map(len, parts)) + b"".join(parts))
            self.server.stdin.flush()
            if not select.select([self.server.stdout], [], [], timeout)[0]:
                self.close()
                raise TimeoutError(f"{timeout} s\n{output.read().decode(errors='replace')}")
            answer = self.server.stdout.read(4)
            printed = output.read().decode(errors="replace")
        if len(answer) < 4:
            self.close()
            raise RuntimeError(f"the process that forks ended\n{printed}")
        return struct.unpack("<i", answer)[0], printed

    def close(self):
        """Ends the process and its fork."""
        if self.server is not None:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.communicate()
            self.server = None
