"""The cases: functions of a `Backend`, independent of which one it is.

A case that a backend cannot run raises `Skip` with the reason.
"""

import importlib

ROOMS = ["objects", "memory", "transfer", "layouts", "flight", "threads", "exchange"]


def _cases():
    for room in ROOMS:
        module = importlib.import_module(f"{__name__}.{room}")
        for name, value in vars(module).items():
            if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
                yield f"{room}.{name}", value


CASES = dict(_cases())
