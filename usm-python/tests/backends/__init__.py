"""Cases for every backend; each configuration runs in a process of its own: `test_backends.py`."""
