"""How many random cases a test tries."""

import os


def cases(variable: str, usual: int) -> int:
    """The environment variable ``variable``, else ``usual`` times ``USM_EFFORT`` (1 without it)."""
    return int(os.environ.get(variable) or usual * int(os.environ.get("USM_EFFORT") or 1))
