"""The documentation is right: examples of the pages, types, the list of names."""

import ast
import doctest
import inspect
import pathlib
import re
import subprocess
import sys

import pages
import pytest

import usm
import usm.errors
import usm.memory
import usm.nrt
from conftest import lacking, require
from usm import _usm

ROOT = pathlib.Path(__file__).parents[1]
STUB = pathlib.Path(usm.__file__).with_name("_usm.pyi")


SITE = sorted(page for page in (ROOT.parent / "docs/python").rglob("*.md") if page.name != "tutorial.md")
# Names of the site that the reference documents otherwise.
MODULES = {"memory", "nrt"}


def named(page):
    return str(page.relative_to(ROOT.parent))


def run_page(page):
    folder = pathlib.Path(__file__).parent
    ended = subprocess.run([sys.executable, folder / "pages.py", page], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("page", SITE, ids=named)
def test_the_blocks_of_a_page(page):
    require("numba", "an example compiles")
    run_page(page)


def needing():
    """The pages with blocks that need more than the package: each with its needs."""
    return sorted({(page, block.needs) for page in SITE for block in pages.blocks(page) if block.needs})


@pytest.mark.parametrize(("page", "needs"), needing(), ids=lambda it: named(it) if isinstance(it, pathlib.Path) else "+".join(it))
def test_what_the_blocks_of_a_page_need_is_here(page, needs):
    """Where it is, the test above runs them."""
    absent = pages.missing(needs)
    if set(absent) & {"dpctl", "dpnp", "pyarrow", "sycl", "opencl"}:
        lacking("+".join(absent), f"blocks of {named(page)} do not run")
    if absent:
        pytest.skip(f"no {', '.join(absent)}: blocks of {named(page)} do not run")


def test_a_block_that_is_wrong_is_seen(tmp_path):
    page = tmp_path / "page.md"
    for text in (">>> 1 + 1\n3\n", "assert False\n", "1 +\n"):
        page.write_text(f"```python\n{text}```\n")
        with pytest.raises(AssertionError):
            run_page(page)
    page.write_text("```python\n>>> x = 1\n\n```\n\n```python\nassert x == 1\n```\n\n<!-- needs: no_such -->\n```python\nraise\n```\n")
    run_page(page)


def test_the_reference_documents_every_name_with_an_example():
    documented, shown = {}, {}
    for page in (page for page in SITE if page.parent.name == "reference"):
        text = page.read_text()
        for name in re.findall(r"^\.\. auto(?:function|class):: (\w+)(?:\(\))?$", text, re.MULTILINE):
            assert name not in documented, f"{name}: on {documented[name]} and {page.name}"
            documented[name] = page.name
        topic = page.parents[1] / page.name
        both = [page, topic] if topic.exists() else [page]
        code = "".join(block.text for it in both for block in pages.blocks(it) if block.language == "python")
        shown[page.name] = code + "".join(re.findall(r"`usm\.\w+`", text))
    errors, types = set(usm.errors.__all__), {name for name in usm.__all__ if isinstance(getattr(usm, name), usm.DType)}
    assert set(documented) >= set(usm.__all__) - errors - types - MODULES
    # What a function gives is shown by the function.
    given = {"Array", "Context", "Event", "Kernel", "KernelFunction", "KernelLaunch", "Plan"}
    assert [name for name, page in documented.items() if name not in given and f"usm.{name}" not in shown[page]] == []


@pytest.mark.parametrize("page", ["usm-python/README.md", "README.md"])
def test_the_examples_of_a_front_page(page):
    require("numpy", "the examples share memory with NumPy")
    result = doctest.testfile(str(ROOT.parent / page), module_relative=False)
    assert result.attempted >= 5 and result.failed == 0


def docstrings():
    """Name and text of every docstring: of modules, functions, classes and their members."""
    for module in (_usm, usm, usm.memory, usm.nrt, usm.errors, usm.adapt, usm.kernel_api, usm._kernel):
        yield module.__name__, module.__doc__
        for name, found in vars(module).items():
            if not name.startswith("__") and getattr(found, "__module__", "usm").startswith("usm"):
                yield f"{module.__name__}.{name}", found.__doc__
                if inspect.isclass(found):
                    members = ((member, getattr(it, "__doc__", None)) for member, it in vars(found).items())
                    yield from ((f"{module.__name__}.{name}.{member}", text) for member, text in members if member != "__doc__")


def test_the_examples_of_docstrings():
    import usm._kernel

    examples, runner, shown = 0, doctest.DocTestRunner(), set()
    for name, text in docstrings():
        if not isinstance(text, str) or ">>>" not in text or text in shown:
            continue
        shown.add(text)
        test = doctest.DocTestParser().get_doctest(text, {"usm": usm}, name, None, None)
        said = []
        runner.run(test, out=said.append)
        assert said == [], "".join(said)
        examples += len(test.examples)
    assert examples >= 18 and len(shown) >= 10, (examples, len(shown))


def test_a_docstring_that_is_wrong_is_seen():
    test = doctest.DocTestParser().get_doctest(">>> usm.zeros(1, device='host').size\n2\n", {"usm": usm}, "wrong", None, None)
    said = []
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 1 and said


def stubbed():
    """Names that the stub declares, and the members of its classes."""
    tree = ast.parse(STUB.read_text())
    names = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = node
        elif isinstance(node, ast.ClassDef):
            names[node.name] = {
                getattr(member, "name", None) or member.target.id: member
                for member in node.body
                if isinstance(member, (ast.FunctionDef, ast.AnnAssign))
            }
    return names


# Written by Python, or by the types of the stub alone.
IMPLIED = {"__delitem__", "__dir__", "__doc__", "__module__", "__new__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__"}
# Attributes that the first copy or pickle adds to a class.
IMPLIED |= {"__slotnames__"}
TYPES_ONLY = {"Counters", "Record"}
# Filled from C, without a name in Python before 3.12.
BUFFER = {"__buffer__", "__release_buffer__"}


def test_the_stub_names_exactly_the_members():
    declared = stubbed()
    public = {name for name in vars(_usm) if not name.startswith("__") and not isinstance(getattr(_usm, name), usm.DType)}
    assert set(declared) - TYPES_ONLY == public
    for name in public:
        actual = getattr(_usm, name)
        if not inspect.isclass(actual):
            continue
        # Names that only say what to call are no members.
        elsewhere = {member for member, it in vars(actual).items() if (it.__doc__ or "").startswith("Not here: use ")}
        members = {member for member in vars(actual) if member not in IMPLIED} - elsewhere
        written = set(declared[name]) - IMPLIED - BUFFER
        assert members - BUFFER == written, name


def test_the_stub_has_the_modules_parameters():
    for name, node in stubbed().items():
        if isinstance(node, dict) or name in TYPES_ONLY:
            continue
        written = [argument.arg for argument in node.args.args + node.args.kwonlyargs]
        assert list(inspect.signature(getattr(_usm, name)).parameters) == written, name


def test_everything_is_exported_and_documented():
    for module in (usm, usm.memory, usm.errors, usm.nrt):
        assert module.__doc__
        for name in module.__all__:
            assert getattr(module, name).__doc__, name
    assert pathlib.Path(usm.__file__).with_name("py.typed").exists()


def test_every_public_member_is_documented():
    public = ((usm, usm.__all__), (usm.memory, usm.memory.__all__), (usm.kernel_api, vars(usm.kernel_api)), (_usm, vars(_usm)))
    found = (getattr(module, name) for module, names in public for name in list(names))
    classes = [it for it in found if inspect.isclass(it) and it.__module__.startswith("usm")]
    members = {(it.__name__, name): member for it in classes for name, member in vars(it).items() if not name.startswith("_")}
    assert len(members) > 100 and [name for name, member in members.items() if not member.__doc__] == []


def test_every_error_derives_from_error():
    for name in usm.errors.__all__:
        error = getattr(usm.errors, name)
        assert issubclass(error, usm.Error) and getattr(usm, name) is error
    assert usm.memory.USMAllocationError is usm.AllocationError
    assert issubclass(usm.InterfaceError, ValueError) and issubclass(usm.AllocationError, MemoryError)
