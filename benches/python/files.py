"""Loads of files beside their peers; rows of JSON.

A safetensors file of 32 tensors is opened on the host beside `safetensors.numpy.load_file` and
`safe_open`, without reading and with a sum of all elements. To a device, `usm.load` stands beside
the copies alone: new arrays of the same sizes, written from memory of the program. Medians of
elapsed time in microseconds, measured in turns, with the file in the system's cache. A number is
the size of the file in MiB, by default 256. Without the build system:
``PYTHONPATH=FOLDER_OF_THE_PACKAGE python3 files.py 1024``.
"""

import pathlib
import sys
import tempfile

import numpy as np
from copies import compare, skipped

import usm

TENSORS = 32


def host(path, size):
    try:
        from safetensors import safe_open
        from safetensors.numpy import load_file
    except ImportError as error:
        return skipped("files: beside safetensors", error)

    def ours_sum():
        return sum(float(np.asarray(array).sum()) for array in usm.load(path).values())

    def theirs_sum():
        with safe_open(path, framework="np") as file:
            return sum(float(file.get_tensor(name).sum()) for name in file.keys())

    assert ours_sum() == theirs_sum()
    compare(f"files: open {size} MiB, host", "safetensors load_file", lambda: list(usm.load(path).values()), lambda: load_file(path))

    def theirs_mapped():
        with safe_open(path, framework="np") as file:
            return [file.get_slice(name) for name in file.keys()]

    compare(f"files: open {size} MiB, host, lazily", "safetensors safe_open", lambda: usm.load(path), theirs_mapped)
    compare(f"files: sum of {size} MiB, host", "safetensors safe_open", ours_sum, theirs_sum)


def devices(path, size):
    for backend in ("sycl", "opencl", "cuda"):
        device = next((device for device in usm.devices() if device.backend == backend), None)
        if device is None:
            skipped(f"files: {backend}", LookupError("no device"))
            continue
        queue = usm.Queue(device)
        count = (size << 18) // TENSORS
        memory = np.ones((TENSORS, count), "f4")

        def ours(queue=queue):
            arrays = list(usm.load(path, device=queue).values())
            queue.wait()
            return arrays

        def copies(queue=queue, memory=memory, count=count):
            arrays = [usm.empty(count, "f4", queue=queue, kind="device") for _ in memory]
            for array, row in zip(arrays, memory):
                array[:] = row
            queue.wait()
            return arrays

        compare(f"files: load {size} MiB, {backend}", "the copies alone", ours, copies)


def main(size=256):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.safetensors"
        count = (size << 20) // 4 // TENSORS
        usm.save(path, {f"layer.{at}": np.full(count, at, "f4") for at in range(TENSORS)})
        host(path, size)
        devices(path, size)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
