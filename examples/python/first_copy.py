"""The first copy: host to device and back. `python first_copy.py [SELECTOR]`, such as cuda:gpu or
host."""

import sys

import usm

device = usm.Device(sys.argv[1]) if len(sys.argv) > 1 else usm.Device()
print(device.name, "as", device.selector)

with device:
    # Device memory has no host view: the copies are written down.
    there = usm.empty(6, "f4", kind="device")
    usm.copy(there, usm.asarray([0, 1, 2, 3, 4, 5], dtype="f4"))
    there[2:4] = [20, 30]
    print(there)
    assert there.tolist() == [0, 1, 20, 30, 4, 5]

    # Shared memory is read and written by both.
    shared = there.copy(kind="shared")
    memoryview(shared)[0] = 7.0
    assert shared.tolist()[0] == 7.0 and there.tolist()[0] == 0.0

    # A copy that is not waited for: the event says when it is done.
    with usm.Queue(device) as queue:
        event = queue.copy(there, shared)
        event.wait()
    assert there.tolist()[0] == 7.0
