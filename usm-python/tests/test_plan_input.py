"""What a graph or a table in Python's objects may not be: each error names the place."""

import copy

import pytest
import usm

GRAPH = {
    "tensors": [{"id": 0, "size": 100}, {"id": 1, "size": 200}],
    "ops": [{"name": "load", "outputs": [0]}, {"inputs": [0], "outputs": [1]}],
    "outputs": [1],
}


class Number:
    """A whole number that is no int, as NumPy's are."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def put(value, *path):
    """The graph with another value at a place."""
    graph = copy.deepcopy(GRAPH)
    at = graph
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return graph


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (put(-1, "tensors", 1, "size"), "input: tensors[1].size: integer `-1` does not fit; a whole number from 0"),
        (put(1.5, "tensors", 1, "size"), "input: tensors[1].size: floating point `1.5` does not fit; a whole number"),
        (put(float("nan"), "tensors", 1, "size"), "input: tensors[1].size: NaN is no number of a graph"),
        (put(1 << 64, "tensors", 1, "size"), "input: tensors[1].size: the number exceeds 64 bits"),
        (put({"id": 1}, "tensors", 1), "input: tensors[1]: no key `size`"),
        (put(5, "tensors", 1), "input: tensors[1]: integer `5` does not fit; a tensor does"),
        (put("x", "ops", 1, "inputs"), 'input: ops[1].inputs: string "x" does not fit; a list does'),
        (put(["x"], "ops", 1, "inputs"), 'input: ops[1].inputs[0]: string "x" does not fit; a whole number from 0'),
        (put([99], "ops", 1, "inputs"), "input: op 1: input 99 is not a tensor"),
        (put([[0]], "ops", 1, "in_place"), "input: ops[1].in_place[0]: a list of 1 does not fit; a pair does"),
        (put(None, "ops"), "input: ops: null does not fit; a list does"),
        (put(3, "tensors", 1, "sise"), "input: tensors[1].sise: an unknown key"),
        (put("\udc00", "tensors", 1, "name"), "input: tensors[1].name: a text with a lone surrogate"),
        ({"tensors": []}, "input: no key `ops`"),
        ({"ops": []}, "input: no key `tensors`"),
        ({}, 'table: no column "lower"; a dict of a graph has "tensors" and "ops"'),
        ({"lower": [0], "upper": [1], "size": [8], "in_place": [[0, 1]]}, 'table: an unknown column "in_place"; there are lower'),
    ],
)
def test_a_bad_value_is_named_by_its_place(graph, words):
    with pytest.raises(usm.RequestError) as refused:
        usm.plan(graph)
    # The text that usm makes of a dict is not the user's: no line, no column.
    assert str(refused.value).startswith(words) and "column " not in str(refused.value).removeprefix(words)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (put({1}, "tensors", 1, "size"), "input: tensors[1].size: an object of type set does not fit"),
        (put(object(), "ops", 1, "cost"), "input: ops[1].cost: an object of type object does not fit"),
        (put(1, 7), "input: a key: an object of type int does not fit"),
        (put({0: 1}, "tensors", 1), "input: tensors[1]: a key: an object of type int does not fit"),
    ],
)
def test_an_object_of_another_type_is_named_by_its_place(graph, words):
    with pytest.raises(TypeError) as refused:
        usm.plan(graph)
    assert str(refused.value).startswith(words)


def test_a_graph_that_contains_itself_is_refused():
    graph = put(None, "tensors", 1, "self")
    graph["tensors"][1]["self"] = graph
    with pytest.raises(usm.RequestError, match=r"input: tensors\[1\]\.self\..*: lists and dicts more than 16 deep"):
        usm.plan(graph)


def test_numbers_and_tuples_of_other_libraries_are_taken():
    graph = put(Number(300), "tensors", 1, "size")
    graph["tensors"] = tuple(graph["tensors"])
    assert usm.plan(graph).sizes.tolist() == [100, 300]
    names = {"tensors": [{"id": 0, "size": 8, "name": 'a "b" \\ \n \x00 \u00e4'}], "ops": [{"outputs": [0]}], "outputs": [0]}
    assert usm.plan(names).names == [names["tensors"][0]["name"]]


class Changing:
    """A number that changes what it lies in when it is read."""

    def __init__(self, change):
        self.change = change

    def __index__(self):
        self.change()
        return 8


def test_a_number_may_change_the_graph_that_has_it():
    tensor, tensors = {"id": 0}, []
    tensor["size"] = Changing(lambda: tensor.update({f"x{number}": 1 for number in range(50)}))
    graph = {"tensors": [tensor], "ops": [{"outputs": [0]}], "outputs": [0]}
    assert usm.plan(graph).peak == 8
    tensors += [{"id": 0, "size": Changing(tensors.clear)}, {"id": 1, "size": 8}]
    assert usm.plan(graph | {"tensors": tensors}).peak == 8
