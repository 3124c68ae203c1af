"""``usm.adapt.inductor``: our order in PyTorch's scheduler, with the package and a substitute."""

import importlib
import itertools
import random
import sys
import types

import pytest

import effort
import usm.adapt


class Buffer:
    """What Inductor's planner knows of a buffer."""

    def __init__(self, name, alloc, free):
        self.name = name
        self.mpi_buffer = types.SimpleNamespace(size_alloc=alloc, size_free=free, succ_nodes=set())

    def get_name(self):
        return self.name


class Node:
    """What it knows of a node of the scheduler."""

    def __init__(self, *outputs):
        self.outputs = outputs
        self.mpi_node = types.SimpleNamespace(pred_buffers=set(), succ_nodes=set())

    def get_outputs(self):
        return self.outputs


def read(node, buffer, producer):
    """Makes a node read a buffer."""
    buffer.mpi_buffer.succ_nodes.add(node)
    node.mpi_node.pred_buffers.add(buffer)
    if producer is not None:
        producer.mpi_node.succ_nodes.add(node)


def schedule(seed):
    """Random nodes, inputs that end, and names of outputs; some nodes have several results."""
    source = random.Random(seed)
    nodes, made = [], []
    inputs = {f"arg{at}": Buffer(f"arg{at}", 0, source.randrange(1, 60)) for at in range(source.randrange(3))}
    while len(nodes) < source.randrange(4, 8):
        at = len(nodes)
        size = source.randrange(1, 100)
        if source.randrange(4) == 0:
            whole, parts = Buffer(f"whole{at}", size + 10, 0), [Buffer(f"buf{at}_{part}", 0, it) for part, it in enumerate((size, 10))]
            nodes.append(Node(whole))
            for part in parts:
                nodes.append(Node(part))
                read(nodes[-1], whole, nodes[at])
                made.append((part, nodes[-1]))
        else:
            nodes.append(Node(Buffer(f"buf{at}", size, size)))
            made.append((nodes[-1].outputs[0], nodes[-1]))
        for buffer, producer in source.sample(made[:-1], min(len(made) - 1, source.randrange(3))):
            if producer not in nodes[at:]:
                read(nodes[at], buffer, producer)
    for buffer in inputs.values():
        read(source.choice(nodes), buffer, None)
    outputs = {buffer.name for buffer, _ in made if not buffer.mpi_buffer.succ_nodes or source.randrange(8) == 0}
    return nodes, inputs, outputs


def estimate(order, inputs, outputs):
    """The most bytes at a node of an order. As for Inductor, an output ends before all."""
    step = {node: at for at, node in enumerate(order)}
    change = [0] * (len(order) + 1)
    for name, buffer in inputs.items():
        memory = buffer.mpi_buffer
        change[0] += memory.size_free
        change[0 if name in outputs else max(step[node] for node in memory.succ_nodes) + 1] -= memory.size_free
    for at, node in enumerate(order):
        for buffer in node.outputs:
            memory = buffer.mpi_buffer
            change[at] += memory.size_alloc
            change[0 if buffer.name in outputs else max((step[node] for node in memory.succ_nodes), default=at) + 1] -= memory.size_free
    return max(0, *itertools.accumulate(change)), []


def is_order(order, nodes):
    at = {node: index for index, node in enumerate(order)}
    return len(at) == len(nodes) and all(at[node] < at[later] for node in nodes for later in node.mpi_node.succ_nodes)


@pytest.fixture
def inductor(monkeypatch):
    """A substitute for the package; its own orders are the given one."""
    module = types.ModuleType("torch._inductor.memory")
    module.inputs = {}
    module.prepare_planning_info = lambda nodes, *_: (0, module.inputs)
    module.estimate_peak_memory = estimate
    module.topological_sort_lpmf = lambda nodes, *_: nodes
    module.topological_sort_bfs = module.topological_sort_dfs = lambda nodes: nodes
    for name in ("torch", "torch._inductor"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_the_order_is_the_best_of_all_by_inductors_estimate(inductor):
    better = 0
    for seed in range(effort.cases("USM_CASES", 60)):
        nodes, inductor.inputs, outputs = schedule(seed)
        order = usm.adapt.inductor(nodes, {}, {}, {}, outputs)
        assert is_order(order, nodes), seed
        peak = estimate(order, inductor.inputs, outputs)[0]
        orders = (order for order in itertools.permutations(nodes) if is_order(order, nodes)) if len(nodes) < 8 else [nodes]
        assert peak <= min(estimate(order, inductor.inputs, outputs)[0] for order in orders), seed
        better += peak < estimate(nodes, inductor.inputs, outputs)[0]
    assert better > 5, better
    assert usm.adapt.inductor([], {}, {}, {}, set()) == []


def test_an_order_that_is_no_better_leaves_the_nodes_as_they_are(inductor):
    chain = [Node(Buffer(str(at), 8, 8)) for at in range(5)]
    for one, other in itertools.pairwise(chain):
        read(other, one.outputs[0], one)
    assert usm.adapt.inductor(chain, {}, {}, {}, {"4"}) == chain


def test_what_is_no_schedule_gets_typed_errors(inductor, monkeypatch):
    with pytest.raises(usm.RequestError, match=r"nodes\[0\]: an object of type int is no node"):
        usm.adapt.inductor([3], {}, {}, {}, set())
    monkeypatch.setitem(sys.modules, "torch._inductor.memory", None)
    with pytest.raises(ImportError, match="usm.adapt.inductor needs the package torch"):
        usm.adapt.inductor([], {}, {}, {}, set())


def test_compiled_models_give_the_same_results(monkeypatch):
    # Not in the set-up: 3.8 GB.
    torch = pytest.importorskip("torch", reason="torch is not installed: compiles a model")
    memory, config = importlib.import_module("torch._inductor.memory"), importlib.import_module("torch._inductor.config")
    monkeypatch.setattr(config, "force_disable_caches", True)
    theirs, seen = memory.reorder_for_peak_memory, []

    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = torch.nn.ModuleList([torch.nn.Linear(32, 64 * size) for size in range(1, 5)])
            self.narrow = torch.nn.ModuleList([torch.nn.Linear(64 * size, 8) for size in range(1, 5)])

        def forward(self, x):
            return torch.cat([narrow(torch.tanh(wide(x))) for wide, narrow in zip(self.wide, self.narrow, strict=True)], -1)

    def ours(nodes, *rest):
        own, other = usm.adapt.inductor(nodes, *rest), theirs(nodes, *rest)
        _, inputs = memory.prepare_planning_info(nodes, *rest)
        seen.append([memory.estimate_peak_memory(order, inputs, rest[-1])[0] for order in (own, other)])
        return own

    def results():
        torch._dynamo.reset()
        torch.manual_seed(1)
        model = Branches()
        value = torch.compile(model)(torch.randn(16, 32))
        value.square().mean().backward()
        return [value.detach(), *(parameter.grad for parameter in model.parameters())]

    expected = results()
    monkeypatch.setattr(memory, "reorder_for_peak_memory", ours)
    assert all(torch.equal(one, other) for one, other in zip(results(), expected, strict=True))
    assert seen and all(own <= other for own, other in seen), seen
