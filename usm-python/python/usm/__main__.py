"""The command ``usm``, also as ``python -m usm``."""

import os
import signal
import sys
import threading
from collections.abc import Sequence as _Sequence


def _prepare() -> None:
    """Sets ``USM_DPCTL_LIBRARY``, because the command itself cannot look up Python packages."""
    from importlib.util import find_spec

    if "USM_DPCTL_LIBRARY" in os.environ:
        return
    spec = find_spec("dpctl")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        library = os.path.join(folder, "libDPCTLSyclInterface.so")
        if os.path.isfile(library):
            os.environ["USM_DPCTL_LIBRARY"] = library


def main(arguments: _Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code; ``arguments`` default to ``sys.argv[1:]``."""
    from ._usm import _run_command

    _prepare()
    given = sys.argv[1:] if arguments is None else list(arguments)
    # A closed standard output is None.
    if sys.stdout is not None:
        sys.stdout.flush()
    # Python's handler only sets a flag, which the command never reads: Ctrl-C would have no effect.
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN) or threading.current_thread() is not threading.main_thread():
        return _run_command(["usm", *given])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return _run_command(["usm", *given])
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
