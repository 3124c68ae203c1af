"""The cases: functions of a `Backend`, without a word about which one it is. What one cannot do is a `Skip` with its reason."""

import importlib

ROOMS = ["objects", "memory", "transfer", "flight", "threads", "exchange"]


def _cases():
    for room in ROOMS:
        module = importlib.import_module(f"{__name__}.{room}")
        for name, value in vars(module).items():
            if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
                yield f"{room}.{name}", value


CASES = dict(_cases())
