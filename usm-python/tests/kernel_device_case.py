"""Runs the programs on the first device of a backend, and prints how many agreed.

A separate process has the variables of that backend.
"""

import sys

import numpy as np
from kernel_programs import programs

import usm

device = next(device for device in usm.devices() if device.backend == sys.argv[1])
agreed = 0
for name, kernel, sizes, arguments, expected in programs():
    if len(sys.argv) > 2 and name not in sys.argv[2:]:
        continue
    with usm.device_context(device):
        kernel[sizes](*arguments)
    for place, wanted in expected.items():
        np.testing.assert_allclose(arguments[place], wanted, rtol=2e-5, atol=1e-6, err_msg=name)
    agreed += 1
print(agreed)
