"""How much a test tries: random cases, and tables of cases that are alike."""

import os

#: 1 in ``cargo xtask test``, 10 in ``cargo xtask ci``, 100 in the nightly run.
EFFORT = int(os.environ.get("USM_EFFORT") or 1)


def cases(variable: str, usual: int) -> int:
    """The environment variable ``variable``, else ``usual`` times ``USM_EFFORT`` (1 without it)."""
    return int(os.environ.get(variable) or usual * EFFORT)


def some(first, others):
    """The cases that every run tries, and those that only a run with more effort adds."""
    return [*first, *(others if EFFORT > 1 else ())]
