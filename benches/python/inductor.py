"""Orders of PyTorch's compiler beside ours: peaks of graphs that Inductor schedules.

    USM_COMMAND=usm python3 inductor.py [NAME...]

Needs torch 2.11 and torchvision. Each model is traced, forward or as a training step with its
gradients, and lowered by Inductor down to its scheduler; nothing is compiled. A row has the peak of
Inductor's three orders and of ours, in bytes, by Inductor's own lives and sizes, where outputs live
to the end. The last rows are geometric means of ours / the best of the three.
"""

import importlib.util
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx, config, memory
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional
from torchvision import models

FILE = pathlib.Path(__file__).resolve().parents[2] / "usm-python/python/usm/_inductor.py"


class Layer(torch.nn.Module):
    """A transformer's layer."""

    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads, self.norms = heads, torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        sizes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
        self.maps = torch.nn.ModuleList(torch.nn.Linear(*size) for size in sizes)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.maps[0](self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(parts[0] @ parts[1].transpose(-1, -2), -1)
        x = x + self.maps[1]((weights @ parts[2]).transpose(1, 2).reshape(batch, length, width))
        return x + self.maps[3](functional.gelu(self.maps[2](self.norms[1](x))))


def transformer():
    parts = [torch.nn.Embedding(1000, 256), *(Layer() for _ in range(4)), torch.nn.Linear(256, 1000)]
    return torch.nn.Sequential(*parts)


def image(side, batch=1):
    return torch.randn(batch, 3, side, side)


FORWARD = {
    "googlenet": lambda: (models.googlenet(init_weights=False, aux_logits=False), image(224)),
    "inception_v3": lambda: (models.inception_v3(init_weights=False, aux_logits=False), image(299)),
    "deeplabv3": lambda: (models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None), image(129)),
    "transformer": lambda: (transformer(), torch.randint(0, 1000, (2, 128))),
}
NAMES = "resnet18 densenet121 vit_b_16 swin_t mobilenet_v3_large efficientnet_b0 shufflenet_v2_x1_0 squeezenet1_1 regnet_y_400mf convnext_tiny"
FORWARD |= {name: lambda name=name: (getattr(models, name)(), image(224)) for name in NAMES.split()}
TRAINING = {
    f"{name}, training": lambda name=name: (getattr(models, name)(), image(64, 2))
    for name in ("resnet50", "swin_t", "efficientnet_b0", "mobilenet_v3_large")
}
TRAINING["transformer, training"] = lambda: (transformer(), torch.randint(0, 1000, (2, 64)))


class Scheduled(Exception):
    """The graph has reached the scheduler."""


def record(nodes, buffers, fused, graph_inputs, outputs, *_):
    """In the place of Inductor's choice of an order."""
    _, inputs = memory.prepare_planning_info(nodes, buffers, fused, graph_inputs, outputs)
    spec = importlib.util.spec_from_file_location("described", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    orders = [memory.topological_sort_lpmf(nodes, inputs, buffers, outputs)]
    orders += [memory.topological_sort_bfs(nodes), memory.topological_sort_dfs(nodes)]
    orders.append([nodes[at] for at in ours(module.described(list(nodes), inputs, outputs))])
    raise Scheduled([len(nodes), *(peak(order, inputs, outputs) for order in orders)])


def ours(graph):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(graph, file)
        file.flush()
        words = [os.environ["USM_COMMAND"], "plan", file.name, "--reorder", "--alignment", "1", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    return map(int, json.loads(done.stdout)["order"])


def peak(order, inputs, outputs):
    """The most bytes at a node, outputs to the end."""
    step = {node: at for at, node in enumerate(order)}
    assert all(step[earlier] < step[node] for node in order for earlier in node.mpi_node.pred_nodes)
    change = [0] * (len(order) + 1)
    made = [(0, buffer) for buffer in inputs.values()]
    made += [(at, buffer) for at, node in enumerate(order) for buffer in node.get_outputs()]
    for at, buffer in made:
        known = buffer.mpi_buffer
        end = max((step[node] for node in known.succ_nodes), default=at)
        change[at] += known.size_alloc
        change[len(order) if buffer.get_name() in outputs else end + 1] -= known.size_free
    return max(itertools.accumulate(change))


def scheduled(model, value, is_training):
    """The peaks of a model's graph."""
    model.train(is_training)
    state = [dict(model.named_parameters()), dict(model.named_buffers())]

    def run(parameters, buffers, value):
        result = torch.func.functional_call(model, {**parameters, **buffers}, (value,))
        result = getattr(result, "logits", result)
        if not is_training:
            return result
        return torch.autograd.grad(result.square().mean(), list(parameters.values()), allow_unused=True)

    with torch.set_grad_enabled(is_training):
        graph = make_fx(run, decomposition_table=select_decomp_table(), tracing_mode="fake")(*state, value)
    graph.graph.set_codegen(torch.fx.CodeGen())
    graph.graph.eliminate_dead_code()
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for at, node in enumerate(inputs):
        # The names of memory that Inductor does not free.
        node.target = node.name = f"primals_{at}" if is_training else f"arg{at}_1"
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    leaves = torch.utils._pytree.tree_leaves(output.args[0])
    output.args = (tuple(leaf for leaf in leaves if leaf is not None),)
    graph.recompile()
    values = [node.meta["val"] for node in inputs]
    try:
        with torch.no_grad(), tracing(TracingContext(values[0].fake_mode)):
            compile_fx.compile_fx_inner(graph, values)
    except Exception as error:
        while error is not None and not isinstance(error, Scheduled):
            error = error.__cause__ or error.__context__
        if error is None:
            raise
        return error.args[0]
    raise RuntimeError("Inductor scheduled nothing")


def main(names):
    config.force_disable_caches = True
    memory.reorder_for_peak_memory = record
    for title, made in (("forward", FORWARD), ("training", TRAINING)):
        ratios = []
        for name, make in made.items():
            if names and name not in names:
                continue
            torch.manual_seed(0)
            nodes, *theirs, own = scheduled(*make(), title == "training")
            ratios.append(own / min(theirs))
            row = {"case": name, "nodes": nodes, "lpmf": theirs[0], "bfs": theirs[1], "dfs": theirs[2]}
            print(json.dumps(row | {"ours": own, "ratio": ratios[-1]}), flush=True)
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(json.dumps({"case": title, "ratio": mean, "above": sum(ratio > 1 for ratio in ratios)}))


if __name__ == "__main__":
    main(sys.argv[1:])
