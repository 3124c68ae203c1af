"""The compiler of kernels: what its parts may touch, and who writes nodes."""

import ast
import inspect
import pathlib

import pytest

import usm._kernel.compiler
from usm._kernel.compiler import Compiler
from usm._kernel.source import Source
from usm._kernel.state import Checks, Draft, Facts, Lines, Scope

FOLDER = pathlib.Path(usm._kernel.compiler.__file__).parent
TOPICS = [topic for topic in Compiler.__mro__ if topic not in (Compiler, object)]


def parts_in(topic):
    """The parts of the state that the methods of a class name."""
    tree = ast.parse(inspect.getsource(topic))
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    names = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "self"}
    return names & set(Compiler.__slots__)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.__name__)
def test_a_topic_touches_the_parts_of_the_state_that_it_names(topic):
    assert parts_in(topic) == set(topic.__annotations__)


@pytest.mark.parametrize("state", [Compiler, Facts, Draft, Checks, Lines, Scope])
def test_no_other_attribute_can_be_set(state):
    assert all("__slots__" in vars(part) for part in state.__mro__[:-1])


def function(a):
    pass


def test_a_misspelled_attribute_is_an_error():
    compiler = Compiler(Source(function), [1, 0])
    with pytest.raises(AttributeError):
        compiler.fact = None
    with pytest.raises(AttributeError):
        compiler.facts.typos = {}


def begins_node(node):
    """Whether a text of code begins a node, as `(set $0 ..` does."""
    first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
    text = first.value if isinstance(first, ast.Constant) else ""
    return isinstance(text, str) and text.startswith("(") and text[1:].partition(" ")[0].replace("-", "").isalpha()


def test_one_file_writes_nodes():
    writers = set()
    for file in FOLDER.glob("*.py"):
        tree = ast.parse(file.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (node for node in ast.walk(tree) if isinstance(node, (ast.JoinedStr, ast.Constant)) and id(node) not in docstrings)
        if any(begins_node(node) for node in texts):
            writers.add(file.name)
    assert writers == {"nodes.py"}
