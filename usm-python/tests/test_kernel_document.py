"""The example of numba-dppy's documentation, unchanged but for three places.

These are its imports, the `#` before the decorator, and the device's name.
"""

import numpy as np
import pytest
from conftest import device_of

import usm as dppy, usm as dpctl  # noqa: E401
from usm import float32


def local_memory(selector):
    blocksize = 10

    @dppy.kernel("void(float32[::1])")
    def reverse_array(A):
        lm = dppy.local.array(shape=10, dtype=float32)
        i = dppy.get_global_id(0)

        # preload
        lm[i] = A[i]
        # barrier local or global will both work as we only have one work group
        dppy.barrier(dppy.CLK_LOCAL_MEM_FENCE)  # local mem fence
        # write
        A[i] += lm[blocksize - 1 - i]

    arr = np.arange(blocksize).astype(np.float32)

    with dpctl.device_context(selector) as gpu_queue:
        reverse_array[blocksize, dppy.DEFAULT_LOCAL_SIZE](arr)

    # there arr should be orig[::-1] + orig, i.e. [9, 9, 9, ...]
    assert gpu_queue.device.selector == selector
    reverse_array.check[blocksize, dppy.DEFAULT_LOCAL_SIZE](arr)
    return arr


@pytest.mark.parametrize("backend", ["host", "opencl", "sycl"])
def test_the_documented_example_gives_nines(backend):
    assert local_memory(device_of(backend).selector).tolist() == [9.0] * 10
