"""One memory, several libraries: `python exchange.py`. NumPy takes part when it is there; `usm`
alone needs nothing."""

import array

import usm

# Memory of the standard library, taken without a copy.
numbers = array.array("f", range(6))
ours = usm.asarray(numbers)
numbers[0] = 7.0
assert ours.tolist() == [7.0, 1.0, 2.0, 3.0, 4.0, 5.0]

# Our memory, looked at by the buffer protocol.
shared = usm.zeros((2, 3), dtype="f4", kind="shared")
view = memoryview(shared)
shared[1, 2] = 5.0
assert view[1, 2] == 5.0

# Device memory is copied, never looked into.
device = usm.zeros(3, dtype="f4", kind="device")
usm.copy(device, ours[:3])
print(device.tolist(), "on", device.device.selector)

try:
    import numpy
except ImportError:
    print("no NumPy here")
else:
    theirs = numpy.asarray(shared)
    theirs[0, 0] = 9.0
    assert shared.tolist()[0][0] == 9.0
    assert usm.asarray(theirs).pointer == shared.pointer
    print("NumPy and usm share", theirs.nbytes, "bytes")

try:
    import dpctl.memory
except ImportError:
    print("no dpctl here")
else:
    if dpctl.get_devices():
        # SYCL memory, seen by both.
        sycl = usm.zeros(4, dtype="f4", kind="shared", queue=dpctl.SyclQueue())
        theirs = dpctl.memory.as_usm_memory(sycl)
        theirs.copy_from_host(array.array("f", [1, 2, 3, 4]).tobytes())
        assert sycl.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert usm.asarray(theirs).pointer == sycl.pointer
        print("dpctl and usm share", theirs.nbytes, "bytes on", sycl.device.selector)
