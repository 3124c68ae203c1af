"""Code that was finished elsewhere: modules, their kernels, and launches of them."""

import numpy as np
import pytest
from conftest import device_of

import usm

SOURCE = """
__kernel void saxpy(const float s, __global const float *x, __global float *y, const uint n)
{
    const size_t i = get_global_id(0);
    if (i < n) y[i] += s * x[i];
}
__kernel void reverse(__global int *a, __local int *lm)
{
    const size_t l = get_local_id(0);
    lm[l] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    a[get_global_id(0)] = lm[get_local_size(0) - 1 - l];
}
"""


@pytest.fixture(params=["opencl", "sycl"])
def queue(request):
    return usm.Queue(device_of(request.param))


def test_kernels_of_a_module(queue):
    module = usm.Module(SOURCE, queue=queue)
    saxpy, reverse = module["saxpy"], module["reverse"]
    assert (saxpy.name, saxpy.max_work_group_size > 0) == ("saxpy", True)
    x = usm.asarray(np.arange(10, dtype=np.float32), queue=queue, kind="shared", copy=True)
    y = np.ones(10, np.float32)
    saxpy[16](np.float32(2.0), x, y, np.uint32(10))
    assert y.tolist() == [1 + 2 * i for i in range(10)]
    a = usm.asarray(np.arange(8, dtype=np.int32), queue=queue, kind="device", copy=True)
    event = usm.launch(reverse, usm.NdRange(8, 4), [a, usm.Local(4, "int32")])
    assert event.done and usm.to_numpy(a).tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


def test_generated_code_can_be_loaded_as_a_module(queue):
    @usm.kernel
    def double(a):
        a[usm.get_global_id(0)] *= 2

    a = usm.asarray(np.arange(4, dtype=np.int64), queue=queue, kind="shared", copy=True)
    usm.Module(double.code("opencl-c", "int64[:]"), queue=queue)["usm_double"][4](a)
    assert usm.to_numpy(a).tolist() == [0, 2, 4, 6]


def test_bad_modules_and_launches_are_errors(queue):
    module = usm.Module(SOURCE, queue=queue)
    with pytest.raises(usm.KernelError, match="no function \"nothing\""):
        module["nothing"]
    with pytest.raises(usm.KernelError, match="does not compile"):
        usm.Module("__kernel void broken( {", queue=queue)
    with pytest.raises(usm.KernelError, match="format \"metal\" and a text"):
        usm.Module(SOURCE, format="metal", queue=queue)
    # SYCL does not say how many parameters a kernel has.
    with usm.device_context(queue), pytest.raises(usm.KernelError, match="kernel saxpy: "):
        module["saxpy"][4](1.0, np.zeros(4, np.float32))
    with pytest.raises(usm.KernelError, match="another context"):
        module["saxpy"][4](1.0, *[usm.zeros(4, "float32", queue="host")] * 2, 4)
    with pytest.raises(usm.KernelError, match="int is no usm.Kernel"):
        usm.launch(3, 4, [])


def test_a_number_of_another_size_names_the_sizes():
    queue = usm.Queue(device_of("opencl"))
    saxpy = usm.Module(SOURCE, queue=queue)["saxpy"]
    x, y = (usm.zeros(4, "float32", queue=queue) for _ in "xy")
    message = r"argument 0 has 4 bytes, argument 3 has 8 bytes: pass np\.int32\(n\) for an int"
    with pytest.raises(usm.KernelError, match=message):
        saxpy[4](np.float32(2), x, y, 4)
    saxpy[4](np.float32(2), x, y, np.int32(4))


def test_the_host_refuses_modules():
    with pytest.raises(usm.KernelError, match="host"):
        usm.Module(SOURCE, queue="host")
