"""A kernel that `bare.py` runs: from a file, as the front end reads its source."""

import usm


@usm.kernel
def double(a):
    i = usm.get_global_id(0)
    a[i] = a[i] * 2.0
