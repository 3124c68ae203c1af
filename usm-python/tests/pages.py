"""Runs the code blocks of pages: `python pages.py PAGE`.

Blocks of Python with prompts are compared with what they print; those without are executed; those
of sh run as commands. All blocks of a page share their names, in the page's order. A comment before
a block says what it needs (`<!-- needs: cupy, cuda -->`), that it runs in a process of its own
(`<!-- alone -->`), or why it does not run (`<!-- not run: installs packages -->`).
"""

import doctest
import importlib.util
import linecache
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

# Devices, in the place of packages.
BACKENDS = ("cuda", "opencl", "sycl")
MARK = re.compile(r"<!-- (needs|alone|not run)(?:: ([^>]+))? -->")


class Block(NamedTuple):
    line: int
    language: str
    text: str
    needs: tuple[str, ...]
    own_process: bool
    excuse: str


def blocks(page):
    """The blocks of code of a page, in their order."""
    lines, number = pathlib.Path(page).read_text().splitlines(), 0
    while number < len(lines):
        if lines[number].startswith("```"):
            end = next(at for at in range(number + 1, len(lines)) if lines[at].startswith("```"))
            mark = MARK.fullmatch(lines[number - 1]) if number else None
            what, words = (mark[1], mark[2] or "") if mark else ("", "")
            needs = tuple(words.split(", ")) if what == "needs" else ()
            text = "\n".join(lines[number + 1 : end]) + "\n"
            yield Block(number + 2, lines[number][3:].strip(), text, needs, what == "alone", words if what == "not run" else "")
            number = end
        number += 1


def missing(needs):
    """The packages and devices that are not here."""
    import usm

    backends = {device.backend for device in usm.devices()} if set(needs) & set(BACKENDS) else set()
    return [need for need in needs if (need not in backends if need in BACKENDS else importlib.util.find_spec(need) is None)]


def run_python(page, block, names):
    if ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, names, str(page), str(page), block.line - 1)
        runner = doctest.DocTestRunner()
        runner.run(test, clear_globs=False)
        names.update(test.globs)
        if runner.failures:
            sys.exit(f"{page}:{block.line}: the examples differ")
        return
    # Kernels read their source, and lines of the history name it.
    file = f"{page}:{block.line}"
    linecache.cache[file] = (len(block.text), None, block.text.splitlines(True), file)
    exec(compile(block.text, file, "exec"), names)


def run_page(page, line=None):
    """Runs what can run here, or the one block at a line."""
    names = {"__name__": "page"}
    for block in blocks(page):
        if block.excuse or missing(block.needs) or (line != block.line if line else block.language.startswith("{")):
            continue
        if block.own_process and line is None:
            subprocess.run([sys.executable, __file__, str(page), str(block.line)], check=True)
        elif block.language == "python":
            run_python(page, block, names)
        elif block.language == "sh":
            path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["sh", "-ec", block.text], check=True, cwd=folder, env={**os.environ, "PATH": path})
        else:
            sys.exit(f"{page}:{block.line}: a block of {block.language!r} that nothing runs")


if __name__ == "__main__":
    run_page(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
