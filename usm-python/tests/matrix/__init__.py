"""Every source of memory, under every conversion of usm's twice over, through every write, read and export: what each may do.

`state.py` says what a case knows, `sources.py`, `conversions.py` and `rows.py` have the three axes, `worker.py` runs the cases of one
runtime in a process that may die, and `test_matrix.py` counts.
"""
