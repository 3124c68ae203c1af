"""Starts the package of a wheel for another processor: called by `cargo xtask wheels`."""

import pickle
import platform
import sys

import usm


@usm.kernel
def add(a: usm.Array, x: float):
    i = usm.get_global_id(0)
    a[i] = a[i] + x


def main():
    print(platform.machine(), sys.version.split()[0], "usm", usm.__version__)
    array = usm.asarray([1.0, 2.0, 3.0], dtype="<f8", queue="host")
    add[3](array, 0.5)
    assert array.tolist() == [1.5, 2.5, 3.5], array
    again = pickle.loads(pickle.dumps(array))
    assert again.tolist() == array.tolist(), again
    plan = usm.plan([(0, 2, 4), (1, 3, 8), (2, 4, 4)])
    plan.verify()
    print("peak", plan.peak, "bytes")
    from usm.__main__ import main as command

    sys.argv = ["usm", "demo"]
    command()


if __name__ == "__main__":
    main()
