"""The graph of Inductor's scheduler as its own estimate of the peak counts it."""

import typing as _typing


def described(nodes: _typing.Any, inputs: _typing.Any, graph_outputs: _typing.Any) -> dict[str, _typing.Any]:
    """A graph in the form of graph.json. An operator is named by the index of its node."""
    tensors: list[dict[str, _typing.Any]] = []
    outputs: list[int] = []
    reads: list[list[int]] = [[] for _ in nodes]
    writes: list[list[int]] = [[] for _ in nodes]
    index = {node: at for at, node in enumerate(nodes)}

    def add(size: int, producer: int | None, readers: _typing.Iterable[int], to_end: bool) -> None:
        tensor: dict[str, _typing.Any] = {"id": len(tensors), "size": size, "kind": "activation"}
        if producer is not None:
            writes[producer].append(tensor["id"])
        for reader in sorted(set(readers) - {producer}):
            reads[reader].append(tensor["id"])
        if to_end:
            outputs.append(tensor["id"])
        tensors.append(tensor)

    for name, buffer in inputs.items():
        memory = buffer.mpi_buffer
        add(memory.size_free, None, (index[node] for node in memory.succ_nodes), name in graph_outputs)
    for at, node in enumerate(nodes):
        # What must come first, also where no bytes say so.
        add(0, at, (index[later] for later in node.mpi_node.succ_nodes), False)
        for buffer in node.get_outputs():
            memory = buffer.mpi_buffer
            if not memory.size_free:
                # A name for bytes of another buffer, or the whole of some that follow.
                continue
            readers = {index[later] for later in memory.succ_nodes}
            producer = at
            if not memory.size_alloc:
                # One of several results: the operator that computes all of them begins it.
                wholes = [whole for whole in node.mpi_node.pred_buffers if getattr(whole.mpi_buffer, "size_alloc", 0) > whole.mpi_buffer.size_free]
                for whole in wholes[:1]:
                    producer = next(earlier for earlier, other in enumerate(nodes) if whole in other.get_outputs())
                    readers.add(at)
            add(memory.size_free, producer, readers, buffer.get_name() in graph_outputs)
    ops = [{"name": str(at), "inputs": reads[at], "outputs": writes[at]} for at in range(len(nodes))]
    return {"tensors": tensors, "ops": ops, "outputs": outputs}
