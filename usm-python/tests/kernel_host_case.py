"""Runs the programs on the host, in a process with its own variables; prints how many agreed."""

import numpy as np
from kernel_programs import programs

import usm

agreed = 0
for _, kernel, sizes, arguments, expected in programs():
    with usm.device_context("host"):
        kernel[sizes](*arguments)
    for place, wanted in expected.items():
        np.testing.assert_allclose(arguments[place], wanted, rtol=2e-5, atol=1e-6)
    agreed += 1
print(agreed)
