"""Faults that the compiler of kernels could have, put into it: the programs see each of them."""

import importlib

import numpy as np
import pytest
from kernel_programs import programs

import usm
from usm._kernel import nodes
from usm._kernel.atomics import Atomics
from usm._kernel.indexing import Indexing
from usm._kernel.operators import Operators
from usm._kernel.values import Static, Val
from usm._kernel.work_items import WorkItems

QUERY, ELEMENT, ATOMIC = WorkItems.id_or_size_node, Indexing.element_place, Atomics.atomic_on


def no_barrier(self, name, node):
    return Static(None)


def other_dimension(self, query, name, node):
    found = QUERY(self, query, name, node)
    dimensions = self.signature.dimensions
    last = dimensions - 1
    for dimension in range(dimensions):
        if f"({query} u64 {dimension} " in found.text:
            return Val(found.text.replace(f"({query} u64 {dimension} ", f"({query} u64 {last - dimension} "), found.ty, None, found.high)
    raise AssertionError(found.text)


def division_of_c(self, operator, one, two, ty, node):
    plain = "div" if operator == "floordiv" else "rem"
    stored = ty.replace("wi", "i64")
    return Val(nodes.binary(plain, stored, self.to(one, ty), self.to(two, ty), self.scope.at), ty)


def plain_sum(self, array, reference, function, values, node, alone, only_check=False):
    if function != "add" or only_check:
        return ATOMIC(self, array, reference, function, values, node, alone, only_check)
    # The array stays one that is written.
    self.draft.stored_arguments.add(array.argument)
    place = self.element_place(array, reference.places, [reference.node] * len(reference.places), node)
    ty, at = array.ty, self.scope.at
    total = nodes.binary("add", ty, nodes.load(ty, array.number, place, at), self.to(values[0], ty), at)
    self.emit(nodes.store(array.number, place, total, at))
    return Static(None)


def one_too_far(self, array, values, indices, node):
    values, at = list(values), self.scope.at
    for place, value in enumerate(values):
        if value.const is None:
            values[place] = Val(nodes.binary("add", "i64", self.to(value, "i64"), nodes.literal("i64", 1, at), at), "i64")
            break
    return ELEMENT(self, array, values, indices, node)


FAULTS = {
    "a dropped barrier": (WorkItems, "barrier", no_barrier, ["scan", "sort", "function with a barrier", "transposition"]),
    "a swapped dimension": (WorkItems, "id_or_size_node", other_dimension, ["stencil", "stencil in three dimensions", "transposition"]),
    "the division of C": (Operators, "floor_division", division_of_c, ["integers of int8", "integers of int32", "integers of int64"]),
    "a plain sum for an atomic one": (Atomics, "atomic_on", plain_sum, ["histogram", "histogram of floats"]),
    "an index one too far": (Indexing, "element_place", one_too_far, None),
}
CASES = {case[0]: case[1:] for case in programs()}


def is_seen(kernel, sizes, arguments, expected):
    """Whether the check has a fault, or a run gives something else."""
    kernel = usm.kernel(kernel.__wrapped__)
    given = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    try:
        kernel.check[sizes](*given)
        kernel[sizes](*given)
    except usm.KernelError:
        return True
    return any(not np.allclose(given[place], wanted, rtol=2e-5, atol=1e-6) for place, wanted in expected.items())


@pytest.mark.parametrize("fault", FAULTS)
def test_every_planted_fault_is_seen(fault, monkeypatch):
    place, name, planted, concerned = FAULTS[fault]
    concerned = concerned or list(CASES)
    assert not any(is_seen(*CASES[name]) for name in concerned[:4])
    compiler = importlib.import_module("usm._kernel.compiler").Compiler
    monkeypatch.setattr(compiler, name, planted)
    assert getattr(compiler, name) is planted and place in compiler.__mro__
    missed = [one for one in concerned if not is_seen(*CASES[one])]
    assert not missed, f"{fault} is not seen in {missed}"
