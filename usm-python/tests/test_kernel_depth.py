"""Kernels that are nested very deeply, in every construct, are refused with a place."""

import importlib.util

import numpy as np
import pytest

import usm

SHAPES = {
    "minus": lambda n: "a[0] = " + "-" * n + "a[1]",
    "not": lambda n: "a[0] = 1.0 if " + "not " * n + "(a[1] > 0) else 2.0",
    "sum": lambda n: "a[0] = a[1]" + " + a[1]" * n,
    "power": lambda n: "a[0] = " + "a[1] ** " * n + "a[1]",
    "attribute": lambda n: "a[0] = a" + ".x" * n,
    "value of branches": lambda n: "a[0] = " + "1.0 if a[1] > 0 else " * n + "2.0",
    "branches": lambda n: "if a[0] > 0:\n        a[0] = 1\n" + "    elif a[0] > 1:\n        a[0] = 1\n" * n,
    "and": lambda n: "if a[0] > 0" + " and a[1] > 0" * n + ":\n        a[0] = 1",
    "comparison": lambda n: "if a[0] > 0" + " > a[1]" * n + ":\n        a[0] = 1",
}


def kernel(folder, name, levels):
    path = folder / "deep.py"
    path.write_text(f"import usm\n\n\n@usm.kernel\ndef k(a):\n    {SHAPES[name](levels)}\n")
    spec = importlib.util.spec_from_file_location("deep", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k


@pytest.mark.parametrize("name", SHAPES)
def test_deep_nesting_is_refused_with_place_and_depth(name, tmp_path):
    with pytest.raises(usm.KernelError, match=r"deep\.py:\d+:\d+: nested [4-8]\d\d levels deep, 160 are allowed$"):
        kernel(tmp_path, name, 420)[8](np.zeros(8, np.float32))


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("attribute", "comparison")])
def test_too_many_levels_for_the_nodes_are_refused_at_the_users_line(name, tmp_path):
    with pytest.raises(usm.KernelError, match=r"deep\.py:\d+:\d+: more than 96 nested"):
        kernel(tmp_path, name, 97)[8](np.zeros(8, np.float32))


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("attribute", "comparison")])
def test_moderate_nesting_runs(name, tmp_path):
    kernel(tmp_path, name, 40)[8](np.zeros(8, np.float32))


def test_a_long_chain_of_comparisons_runs_or_is_refused_with_its_place(tmp_path):
    kernel(tmp_path, "comparison", 75)[8](np.zeros(8, np.float32))
    with pytest.raises(usm.KernelError, match=r"deep\.py:6:8: nested \d+ levels deep, 160 are allowed$"):
        kernel(tmp_path, "comparison", 100)
