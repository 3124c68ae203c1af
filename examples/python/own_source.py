"""A kernel of one's own source: Python, or code that was finished elsewhere. `python own_source.py
[SELECTOR]`."""

import sys

import usm

device = usm.Device(sys.argv[1] if len(sys.argv) > 1 else "host")


@usm.kernel
def scale(y, x, a):
    i = usm.get_global_id(0)
    y[i] = a * x[i]


with device:
    x = usm.asarray([1.0, 2.0, 3.0, 4.0], dtype="f4").copy()
    y = usm.zeros_like(x)
    scale[4](y, x, 2.5)
    assert y.tolist() == [2.5, 5.0, 7.5, 10.0]
    assert scale.proof[4](y, x, 2.5) == "proven"
    print(scale.code("opencl-c", "float32[:], float32[:], float32"))

SOURCE = """
__kernel void scale(__global float *y, __global const float *x, long times) {
    size_t i = get_global_id(0);
    y[i] = times * x[i];
}
"""

# The same from OpenCL C, for devices that take it. usm does not check such code.
there = next((it for it in usm.devices() if it.backend == "opencl"), None)
if there is None:
    print("no OpenCL device here")
else:
    with there:
        x = usm.asarray([1.0, 2.0, 3.0, 4.0], dtype="f4").copy()
        y = usm.zeros_like(x)
        usm.Module(SOURCE)["scale"][4](y, x, 3)
        assert y.tolist() == [3.0, 6.0, 9.0, 12.0]
        print("the same on", there.name)
