"""An exception of the program's own code, raised where a call reads a value, reaches the caller:
no call puts an error of its own in its place."""

import itertools

import numpy
import pytest

import usm
import usm.memory

HOOKS = [
    "__index__", "__float__", "__len__", "__iter__", "__getitem__", "__getattr__", "__fspath__",
    "__dlpack__", "__dlpack_device__", "__array__", "__array_interface__",
    "__sycl_usm_array_interface__", "__cuda_array_interface__",
]  # fmt: skip
SHAPES = {"itself": lambda value: value, "in a tuple": lambda value: (value,), "in a list": lambda value: [value]}


class Interrupt(KeyboardInterrupt):
    """What a signal handler may raise in any line of Python."""


def raising(hook, error):
    """An object that raises in one special method, and the number of its calls."""
    calls = []

    def method(*_arguments, **_keywords):
        calls.append(hook)
        raise error("planned")

    member = property(method) if hook.endswith("_interface__") else method
    members = {hook: member}
    if hook == "__dlpack__":
        members["__dlpack_device__"] = lambda _self: (1, 0)
    return type("Raising", (), members)(), calls


def described(**changes):
    data = numpy.arange(4, dtype="i4")
    return type("Described", (), {"__array_interface__": {**data.__array_interface__, **changes}, "data": data})()


ARRAY = usm.zeros(4, "i4", device="host")


@usm.kernel
def assign(target, value):
    target[usm.get_global_id(0)] = value


CALLS = {
    "shape": lambda value: usm.zeros(value, device="host"),
    "dtype": lambda value: usm.zeros(1, value, device="host"),
    "device": lambda value: usm.zeros(1, device=value),
    "queue": lambda value: usm.zeros(1, queue=value),
    "kind": lambda value: usm.zeros(1, kind=value, device="host"),
    "alignment": lambda value: usm.zeros(1, alignment=value, device="host"),
    "value": lambda value: usm.full(1, value, "f4", device="host"),
    "asarray": usm.asarray,
    "from_dlpack": usm.from_dlpack,
    "copy": lambda value: usm.copy(ARRAY, value),
    "index": lambda value: ARRAY[value],
    "slice": lambda value: ARRAY[value:],
    "element": lambda value: ARRAY.__setitem__(0, value),
    "reshape": lambda value: ARRAY.reshape(value),
    "memory": lambda value: usm.memory.MemoryUSMHost(value, queue="host"),
    "range": lambda value: assign[value](numpy.zeros(4, "i4"), 1),
    "local size": lambda value: assign[4, value](numpy.zeros(4, "i4"), 1),
    "argument": lambda value: assign[4](value, 1),
    "scalar": lambda value: assign[4](numpy.zeros(4, "i4"), value),
    "plan": usm.plan,
    "capacity": lambda value: usm.plan([[0, 1, 4]], capacity=value),
    "timeout": lambda value: ARRAY.queue.wait(value),
    **{
        f"entry {key}": lambda value, key=key: usm.asarray(described(**{key: value}))
        for key in ("shape", "strides", "typestr", "data", "version", "descr", "mask")
    },
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [Interrupt, MemoryError])
def test_what_a_value_raises_reaches_the_caller(call, error):
    lost = []
    for hook, (place, shaped) in itertools.product(HOOKS, SHAPES.items()):
        value, calls = raising(hook, error)
        try:
            CALLS[call](shaped(value))
            outcome = None
        except BaseException as raised:
            outcome = raised
        if calls and not any(isinstance(one, error) for one in chain(outcome)):
            lost.append((hook, place, repr(outcome)))
    assert lost == []


def chain(error):
    """An exception and its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
