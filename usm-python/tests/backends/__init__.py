"""One set of cases for every backend, each configuration in a process of its own: see `test_backends.py`."""
