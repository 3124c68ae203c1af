"""Cases for every backend; each configuration runs in its own process: `test_backends.py`."""
