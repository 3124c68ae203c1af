"""``usm.plan``: plans of the command, from Python objects."""

import array
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import usm
from conftest import require

CHAIN = {
    "tensors": [{"id": i, "name": f"t{i}", "size": size} for i, size in enumerate([4096, 1024, 4096])],
    "ops": [{"name": f"op{i}", "inputs": [i - 1] if i else [], "outputs": [i]} for i in range(3)],
    "outputs": [2],
}


def table(seed, count):
    source = random.Random(seed)
    starts = [source.randrange(count) for _ in range(count)]
    return [(start, start + source.randrange(1, 20), source.randrange(1, 4096)) for start in starts]


def overlap(plan, rows):
    """The first two buffers that live together and share bytes, found by the definition."""
    for i, (lower, upper, size) in enumerate(rows):
        for j, (other_lower, other_upper, other_size) in enumerate(rows[:i]):
            together = max(lower, other_lower) < min(upper, other_upper)
            begin = max(plan.offsets[i], plan.offsets[j])
            if together and begin < min(plan.offsets[i] + size, plan.offsets[j] + other_size):
                return i, j
    return None


def load(rows):
    """Most bytes that live at one time."""
    return max(sum(size for lower, upper, size in rows if lower <= at < upper) for at, _, _ in rows)


def test_a_table_is_planned():
    for seed in range(10):
        rows = table(seed, 60)
        plan = usm.plan(rows, strategy="greedy-by-size")
        assert overlap(plan, rows) is None
        assert plan.peak == max(offset + row[2] for offset, row in zip(plan.offsets, rows))
        assert plan.lower_bound >= load(rows)
        assert plan.optimal == (plan.peak == plan.lower_bound)
        assert len(plan) == len(rows) and plan.ids == list(range(60)) and plan.names == [None] * 60
        assert plan.order is None
        plan.verify()


def test_the_best_order_has_a_proof():
    sizes, reads = [1, 100, 289, 10], [[], [0], [0], [2]]
    graph = {
        "tensors": [{"id": i, "size": size} for i, size in enumerate(sizes)],
        "ops": [{"name": f"op{i}", "inputs": inputs, "outputs": [i]} for i, inputs in enumerate(reads)],
        "outputs": [1, 3],
    }
    given = usm.plan(graph, alignment=1)
    assert (given.peak, given.optimal, given.order_optimal, given.order_bound) == (399, True, False, None)
    best = usm.plan(graph, alignment=1, reorder=True)
    assert (best.peak, best.optimal, best.order_optimal, best.order_bound) == (300, True, True, 300)
    assert best.order == ["op0", "op2", "op3", "op1"]
    assert best.to_dict()["order_bound"] == 300
    assert (given.order_optimality, best.order_optimality) == (None, "proven")
    assert "order: proven" in repr(best) and "order:" not in repr(given)
    # A workspace counts during its operator alone.
    graph["ops"][1]["workspace"] = 500
    assert usm.plan(graph, alignment=1, reorder=True).peak == 601
    for options in [{"queue": "out-of-order"}, {"keep_order": True}]:
        with pytest.raises(usm.RequestError, match="reorder: "):
            usm.plan(graph, reorder=True, **options)
    with pytest.raises(usm.RequestError, match="^reorder: buffers have no operators"):
        usm.plan([(0, 1, 2)], reorder=True)


def test_an_order_without_a_proof_is_a_heuristic():
    sizes = [50, 98, 54, 6, 34, 66, 63, 52, 39, 62, 46, 75, 28, 65]
    reads = [[], [0], [], [1, 0], [0], [0, 2], [4], [], [5], [7], [5, 8], [8], [8, 6], [7, 12]]
    graph = {
        "tensors": [{"id": i, "size": 64 * size} for i, size in enumerate(sizes)],
        "ops": [{"name": f"op{i}", "inputs": inputs, "outputs": [i]} for i, inputs in enumerate(reads)],
        "outputs": [3, 9, 10, 11, 13],
    }
    plans = [usm.plan(graph, reorder=True), usm.plan(graph, reorder=True, time_limit=0)]
    assert [(plan.order_optimality, plan.order_optimal) for plan in plans] == [("proven", True), ("heuristic", False)]
    assert "order: heuristic" in repr(plans[1]) and plans[1].to_dict()["order_optimality"] == "heuristic"


# Two branches from one tensor, which an out-of-order queue may run at once.
BRANCHES = {
    "tensors": [{"id": id, "size": size} for id, size in enumerate([64, 4096, 64, 4096, 64, 64])],
    "ops": [
        {"name": "source", "outputs": [0]},
        {"name": "left", "inputs": [0], "outputs": [1]},
        {"name": "shrink left", "inputs": [1], "outputs": [2]},
        {"name": "right", "inputs": [0], "outputs": [3]},
        {"name": "shrink right", "inputs": [3], "outputs": [4]},
        {"name": "join", "inputs": [2, 4], "outputs": [5]},
    ],
    "outputs": [5],
}


def test_tensors_lie_in_the_memories_of_the_graph():
    memories = [{"name": "sram", "capacity": 4096, "cost": 1}, {"name": "dram", "capacity": 1 << 20, "cost": 8}]
    tensors = [{**tensor, "memory": "dram"} if tensor["id"] == 5 else tensor for tensor in BRANCHES["tensors"]]
    graph = {**BRANCHES, "memories": memories, "tensors": tensors}
    plan = usm.plan(graph)
    plan.verify()
    report = plan.to_dict()
    assert set(plan.memories) == {"sram", "dram"} and plan.memories[plan.ids.index(5)] == "dram"
    assert [memory["memory"] for memory in report["memories"]] == ["sram", "dram"]
    assert report["memories"][0]["peak"] <= 4096 and report["cost_bound"] <= report["cost"]
    with pytest.raises(usm.RequestError, match="capacity: the graph has memories"):
        usm.plan(graph, capacity=1 << 20)
    with pytest.raises(usm.RequestError, match=r"memories\[0\]\.cost"):
        usm.plan({**graph, "memories": [{"name": "dram", "capacity": 8, "cost": float("nan")}]})


def test_tensors_beyond_the_device_are_listed():
    plan = usm.plan(BRANCHES, max_alloc=2048)
    assert plan.spilled == [1, 3]
    memories = plan.to_dict()["memories"]
    assert [memory["buffers"] for memory in memories] == [4, 2] and memories[0]["peak"] <= 2048
    assert usm.plan(BRANCHES, device_memory=1 << 20).spilled == []


def test_ordering_edges_lower_the_peak_of_a_queue_without_order():
    free = usm.plan(BRANCHES, queue="out-of-order")
    plan = usm.plan(BRANCHES, queue="out-of-order", ordering_edges=2, curve=True, keep_critical_path=False)
    assert (free.ordering_edges, free.peak > plan.peak) == ([], True)
    assert 1 <= len(plan.ordering_edges) <= 2 and plan.ordering_edges[0][0] in plan.order
    assert [point["edges"] for point in plan.to_dict()["curve"]][0] == 0


def test_strategies_and_proofs_are_as_the_command_writes_them(tmp_path):
    plan = usm.plan(BRANCHES, compare=True, proof=True)
    report = plan.to_dict()
    assert {row["strategy"] for row in report["strategies"]} >= {"greedy-by-size", "search"}
    assert report["proof"]["bound"] == plan.lower_bound and plan.proof.splitlines()
    assert usm.plan(BRANCHES).proof is None
    (tmp_path / "graph.json").write_text(json.dumps(BRANCHES))
    (tmp_path / "proof").write_text(plan.proof)
    command = [sys.executable, "-m", "usm", "plan", str(tmp_path / "graph.json"), "--check", str(tmp_path / "proof")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ordering_edges": 1}, "ordering_edges: an in-order queue"),
        ({"curve": True}, "curve: it needs ordering edges"),
        ({"keep_critical_path": True}, "keep_critical_path: it needs"),
        ({"proof": True, "max_alloc": 9}, "max_alloc: a proof is about one memory"),
        ({"threads": 0}, "threads: 0 is not a number from 1 to 1024"),
        ({"alignment": 3}, "alignment: 3 is not a power of two"),
        ({"dims": {"n": range(1, 3)}, "device_memory": 9}, "device_memory: it is for one value"),
        ({"dims": {"n": "1..3"}, "capacity": 9}, "capacity: it is for one value"),
        ({"values": {"n": 1}}, "values: only an ONNX model"),
    ],
)
def test_options_that_contradict_each_other_are_refused_by_name(options, words):
    with pytest.raises(usm.RequestError) as refused:
        usm.plan(BRANCHES, **options)
    assert words in str(refused.value) and "--" not in str(refused.value), refused.value


def test_every_form_of_a_table_is_the_same_plan():
    rows = table(1, 30)
    lower, upper, size = (list(column) for column in zip(*rows))
    want = bytes(usm.plan(rows).offsets)
    forms = [
        iter(rows),
        [list(row) for row in rows],
        [(*row, 1) for row in rows],
        {"lower": lower, "upper": upper, "size": size},
        {"size": array.array("Q", size), "upper": array.array("q", upper), "lower": memoryview(array.array("I", lower))},
    ]
    for form in forms:
        assert bytes(usm.plan(form).offsets) == want
    ids = usm.plan({"lower": [0, 1], "upper": [2, 3], "size": [5, 6], "id": [70, 7], "alignment": [1, 64]})
    assert ids.ids == [70, 7] and ids.offsets[1] % 64 == 0


def test_offsets_are_a_buffer_of_64_bit_numbers():
    offsets = usm.plan([(0, 2, 10), (1, 3, 10)]).offsets
    assert (offsets.format, offsets.itemsize, offsets.readonly, len(offsets)) == ("Q", 8, True, 2)
    numpy = require("numpy", "an array of buffers")
    assert numpy.asarray(offsets).dtype == numpy.uint64


def test_a_graph_is_planned_with_its_names():
    plan = usm.plan(CHAIN)
    assert (plan.peak, plan.optimal, plan.names) == (5120, True, ["t0", "t1", "t2"])
    assert plan.order == ["op0", "op1", "op2"]
    report = plan.to_dict()
    assert report["peak"] == 5120 and report["certificate"] == plan.certificate
    assert plan.certificate["kind"] == "time_cut" and len(plan.certificate["names"]) == 2
    assert "5120" in repr(plan)


def test_the_order_of_the_queue_matters():
    assert usm.plan(CHAIN, queue="in-order").to_dict()["queue"] == "in-order"
    assert usm.plan(CHAIN, queue="out-of-order").to_dict()["queue"] == "out-of-order"
    queue = usm.Queue("host", in_order=False)
    assert usm.plan(CHAIN, queue=queue).to_dict()["queue"] == ("in-order" if queue.is_in_order else "out-of-order")
    with pytest.raises(usm.RequestError, match="queue.*sideways"):
        usm.plan(CHAIN, queue="sideways")
    with pytest.raises(TypeError, match="queue"):
        usm.plan(CHAIN, queue=3)
    with pytest.raises(usm.RequestError, match="^queue: buffers have lifetimes"):
        usm.plan([(0, 1, 1)], queue="out-of-order")


def test_files_are_read_as_by_the_command(tmp_path):
    graph, rows = tmp_path / "net.graph.json", tmp_path / "rows.csv"
    graph.write_text(json.dumps(CHAIN))
    rows.write_text("id,lower,upper,size\n3,0,2,8\n4,1,3,8\n")
    assert usm.plan(graph).peak == usm.plan(str(graph)).peak == 5120
    assert usm.plan(rows).ids == [3, 4]
    with pytest.raises(FileNotFoundError, match="nothing.graph.json"):
        usm.plan(tmp_path / "nothing.graph.json")


def test_a_capacity_makes_a_plan_feasible_or_not():
    rows = [(0, 2, 10), (1, 3, 10)]
    assert usm.plan(rows, capacity=20).feasible
    plan = usm.plan(rows, capacity=19)
    assert not plan.feasible and plan.lower_bound == 20


def test_a_plan_that_does_not_fit_places_nothing_by_every_question(tmp_path):
    # The second one fits by its bound, but its strategy finds no such plan.
    gap = [(4, 7, 12), (5, 6, 20), (1, 2, 8), (0, 3, 20), (1, 5, 4), (4, 6, 4), (5, 7, 20), (2, 4, 20)]
    cases = [
        ([(0, 2, 4), (1, 3, 4)], {"capacity": 7}, "no plan can fit in 7 bytes, because the lower bound is 8"),
        (gap, {"capacity": 59, "strategy": "greedy-by-size"}, "no plan was found that fits in 59 bytes; the best has 60"),
    ]
    for rows, options, misfit in cases:
        plan = usm.plan(rows, **options)
        document = plan.to_dict()
        assert (plan.feasible, plan.peak, plan.optimal, plan.offsets) == (False, None, False, None)
        assert {key: document[key] for key in ("feasible", "peak", "optimal", "lower_bound")} == {"feasible": False, "peak": None, "optimal": False, "lower_bound": plan.lower_bound}
        assert misfit in repr(plan) and len(plan) == len(rows) and list(plan.sizes) == [row[2] for row in rows]
        for refused in (plan.verify, plan.arena, plan._repr_svg_, lambda: plan.to_html(tmp_path / "x.html")):
            with pytest.raises(usm.RequestError, match=f"nothing was placed: {misfit}"):
                refused()
    fits = usm.plan([(0, 2, 4), (1, 3, 4)], capacity=8)
    assert (fits.feasible, fits.peak, fits.optimal, fits.verify()) == (True, 8, True, None)


@pytest.mark.parametrize(
    ("given", "options", "parts"),
    [
        ([(0, 2)], {}, ["row 0", "2 numbers"]),
        ([(0, 1, 1), (0, "x", 1)], {}, ["row 1"]),
        ([(0, 1, -1)], {}, ["row 0"]),
        ([(0, 1, 1 << 64)], {}, ["row 0"]),
        ([(3, 1, 1)], {}, ["table", "3", "1"]),
        ([(0, 1, 1, 3)], {}, ["table", "3"]),
        ([(0, 2, (1 << 64) - 1), (0, 2, 2)], {}, ["table"]),
        ({"lower": [0], "upper": [1, 2], "size": [1]}, {}, ["upper", "2", "1"]),
        ({"lower": [0, 1], "upper": [1, 2], "size": [1, "x"]}, {}, ["row 1", "size"]),
        ({"lower": [0, 1], "upper": [1, 2], "size": [1, 1], "id": [4, 4]}, {}, ["4"]),
        ({"tensors": [{"id": 0, "size": -1}], "ops": []}, {}, ["tensors[0].size"]),
        ({"tensors": [], "ops": [{"inputs": [7]}]}, {}, ["7"]),
        ([], {"strategy": "best"}, ["strategy", "best"]),
        ([], {"alignment": 3}, ["alignment", "3"]),
        ([], {"time_limit": -1}, ["time_limit"]),
        ([], {"threads": 0}, ["threads", "0", "1024"]),
        ([], {"time_limit": float("nan")}, ["time_limit"]),
        ([], {"dims": {"N": 1}}, ["dims"]),
        (b"no model", {}, ["ONNX"]),
        (b"", {}, ["ONNX"]),
    ],
)
def test_errors_name_the_fault(given, options, parts):
    with pytest.raises(usm.RequestError) as raised:
        usm.plan(given, **options)
    for part in parts:
        assert part in str(raised.value), raised.value


def test_a_wrong_input_is_a_type_error():
    for given in (3, None, object()):
        with pytest.raises(TypeError, match="table"):
            usm.plan(given)
    for given, name in (({"lower": [0], "size": [1]}, "upper"), ({"lower": [0]}, "upper"), ({}, "lower")):
        with pytest.raises(usm.RequestError, match=f'^table: no column "{name}"'):
            usm.plan(given)


def test_columns_and_rows_may_be_arrays_of_ours():
    rows = [[0, 2, 10], [1, 3, 20], [2, 4, 30]]
    columns = dict(zip(("lower", "upper", "size"), map(list, zip(*rows))))
    want = usm.plan(rows).offsets.tolist()
    for kind in ("host", "device"):
        ours = {name: usm.asarray(column, kind=kind, device="host") for name, column in columns.items()}
        assert usm.plan(ours).offsets.tolist() == usm.plan(usm.asarray(rows, kind=kind, device="host")).offsets.tolist() == want
    with pytest.raises(usm.RequestError, match='row 0: column "size"'):
        usm.plan({**columns, "size": usm.asarray([1.5, 1.0, 1.0], device="host")})


def test_an_empty_table_has_a_plan():
    plan = usm.plan([])
    assert (plan.peak, len(plan), bytes(plan.offsets), plan.optimal) == (0, 0, b"", True)


def test_unknown_keys_are_refused_by_their_name():
    with pytest.raises(usm.RequestError, match="odd: an unknown key"):
        usm.plan({**CHAIN, "odd": 1})
    tensors = [{**CHAIN["tensors"][0], "aligment": 64}, *CHAIN["tensors"][1:]]
    with pytest.raises(usm.RequestError, match=r"tensors\[0\]\.aligment: an unknown key"):
        usm.plan({**CHAIN, "tensors": tensors})


def hard():
    """A table whose search takes longer than any test."""
    source = random.Random(3)
    return [(lower, lower + source.randrange(2, 90), source.randrange(1, 1 << 20)) for lower in range(400) for _ in range(3)]


def test_other_threads_run_during_a_search():
    seen, done = [], threading.Event()

    def count():
        while not done.wait(0.01):
            seen.append(time.monotonic())

    thread = threading.Thread(target=count)
    thread.start()
    usm.plan(hard(), strategy="search", time_limit=0.5)
    done.set()
    thread.join()
    assert len(seen) > 3


def test_the_number_of_threads_changes_no_plan():
    table = [(i % 7, i % 7 + 1 + i * 5 % 6, 1 + i * 37 % 50) for i in range(40)]
    one, four = (usm.plan(table, strategy="search", threads=threads) for threads in (1, 4))
    assert list(one.offsets) == list(four.offsets) and one.lower_bound == four.lower_bound


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
@pytest.mark.skipif(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="started with SIGINT ignored")
def test_an_interrupt_ends_a_search():
    program = (
        "import os, signal, threading, usm, test_plan\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    usm.plan(test_plan.hard(), strategy='search', time_limit=60)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=os.path.dirname(__file__), capture_output=True, text=True, timeout=50)
    assert ran.stdout.strip() == "interrupted", ran.stderr


def test_a_table_imports_no_other_package():
    program = "import sys, usm\nusm.plan([(0, 2, 10), (1, 3, 20)]).verify()\nassert not {'onnx', 'numpy'} & set(sys.modules)\n"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number, content):
    """A field of protobuf: bytes, text, or a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def model(stated):
    """The ONNX model x[N, 64] -> Relu -> h -> Relu -> y, with or without the shape of h."""

    def value(name):
        extents = field(1, field(2, "N")) + field(1, field(1, 64))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, extents)))

    nodes = [field(1, field(1, a) + field(2, b) + field(4, "Relu")) for a, b in (("x", "h"), ("h", "y"))]
    graph = b"".join(nodes) + field(2, "g") + field(11, value("x")) + field(12, value("y"))
    graph += field(13, value("h")) if stated else b""
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def test_the_bytes_of_a_model_are_planned():
    plan = usm.plan(model(stated=True), dims={"N": 4})
    assert (plan.names, plan.peak) == (["h", "y"], 1024)
    # No order was better, and that is known.
    assert (plan.order_optimal, plan.order_optimality) == (True, "proven")
    kept = usm.plan(model(stated=True), dims={"N": 4}, keep_order=True)
    assert (kept.order_optimal, kept.order_optimality) == (False, None)
    assert usm.plan(bytearray(model(stated=True)), dims={"N": 4}, views=False).peak == 2048
    with pytest.raises(usm.RequestError, match="`N`"):
        usm.plan(model(stated=True))


def test_shapes_need_no_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert usm.plan(model(stated=False), dims={"N": 4}).peak == 1024


RANGED = {
    "dims": [{"name": "n", "low": 1, "high": 4}, {"name": "width", "of": "images.width", "low": 32, "high": 512, "step": 32}],
    "tensors": [{"id": i, "size": f"{i % 7 + 1}*n*width+{i}" if i % 3 else 4096 - i} for i in range(30)],
    "ops": [{"inputs": [i // 2] if i else [], "outputs": [i]} for i in range(30)],
    "outputs": [29],
}


def by_c(text, values):
    """The offsets that the C library gives, or None where it was not built."""
    if "USM_PLAN_LIBRARY" not in os.environ:
        return None
    library = ctypes.CDLL(os.environ["USM_PLAN_LIBRARY"])
    library.usm_plan_count.restype = ctypes.c_size_t
    plan, text = ctypes.c_void_p(), text.encode()
    assert library.usm_plan_graph(text, ctypes.c_size_t(len(text)), None, ctypes.byref(plan)) == 0
    count = library.usm_plan_count(plan)
    offsets, values = (ctypes.c_uint64 * count)(), (ctypes.c_uint64 * len(values))(*values)
    size = ctypes.c_size_t
    assert library.usm_plan_at(plan, values, size(len(values)), offsets, size(count), None) == 0
    library.usm_plan_free(plan)
    return list(offsets)


def test_a_plan_for_every_value_is_that_of_the_command_and_of_c(tmp_path):
    plan = usm.plan(RANGED, dims={"n": "1..4", "images.width": range(32, 513, 32)})
    assert [(dim["name"], dim["of"], dim["low"], dim["high"], dim["step"]) for dim in plan.dims] == [
        ("n", "n", 1, 4, 1),
        ("width", "images.width", 32, 512, 32),
    ]
    path = tmp_path / "planned.json"
    path.write_text(plan.range_plan)
    again = usm.plan(path)
    assert list(plan.offsets) == list(plan.at(n=4, width=512).offsets)
    for values in ((1, 32), (3, 320), (4, 512)):
        at = plan.at(n=values[0], width=values[1])
        at.verify()
        assert list(again.at(n=values[0], width=values[1]).offsets) == list(at.offsets)
        out = tmp_path / "plan.csv"
        options = [f"n={values[0]}", "--dim", f"images.width={values[1]}", "--output", str(out)]
        subprocess.run([sys.executable, "-m", "usm", "plan", str(path), "--dim", *options], check=True, timeout=60)
        header, *rows = (line.split(",") for line in out.read_text().splitlines())
        assert [int(row[header.index("offset")]) for row in rows] == list(at.offsets)
        assert by_c(plan.range_plan, values) in (None, list(at.offsets))


def test_a_value_outside_of_the_plan_is_refused():
    plan = usm.plan(RANGED, dims={"n": 2, "width": "32..512:64"})
    for dims, words in (
        ({"n": 2}, ["width"]),
        ({"n": 2, "width": 33}, ["width=33", "32..480:64"]),
        ({"n": 3, "width": 32}, ["n=3"]),
        ({"n": 2, "width": 32, "depth": 1}, ["depth"]),
    ):
        with pytest.raises(usm.Error) as refused:
            plan.at(**dims)
        assert all(word in str(refused.value) for word in words), refused.value
        # In the words of Python, not in those of the command.
        assert str(refused.value).startswith("dims: "), refused.value
    for dims in ({"n": 9, "width": 32}, {"n": 1, "width": "1..2"}, {"stranger": 1}):
        with pytest.raises(usm.Error, match="^input: dims: "):
            usm.plan(RANGED, dims=dims)
    for wanted in ("64..32", "1..4:0", "2..x", "1..18446744073709551616"):
        with pytest.raises(usm.Error, match="width"):
            usm.plan(RANGED, dims={"n": 1, "width": wanted})
    with pytest.raises(usm.Error, match="width"):
        usm.plan(RANGED, dims={"n": 1, "width": range(5, 5)})
    for ends in [(2**70,), (1, 2**70), (1, 9, 2**70), (-(2**70), 9)]:
        with pytest.raises(usm.RequestError, match="dims: width: "):
            usm.plan(RANGED, dims={"n": 1, "width": range(*ends)})
    with pytest.raises(usm.Error, match="one value"):
        usm.plan(CHAIN).at(width=3)


def test_all_values_of_a_dimension_are_those_one_by_one():
    plan = usm.plan(RANGED, dims={"n": "1..4", "images.width": range(32, 513, 32)})
    for name, step, high in (("width", 32, 320), ("images.width", 32, 512), ("n", 1, 4)):
        for other in (1, 3) if name != "n" else (64, 512):
            fixed = {"n": other} if name != "n" else {"width": other}
            own = "n" if name == "n" else "width"
            offsets, peaks = plan.at_every(name, **fixed, **{own: high})
            values = range(step, high + 1, step)
            assert offsets.shape == (len(values), len(plan)) and offsets.readonly and peaks.readonly
            for row, peak, value in zip(offsets.tolist(), peaks.tolist(), values, strict=True):
                one = plan.at(**fixed, **{own: value})
                assert (row, peak) == (list(one.offsets), one.peak), (name, value)
    with pytest.raises(usm.RequestError, match="^dimension: depth is none of n, width"):
        plan.at_every("depth", n=1, width=32)
    with pytest.raises(usm.RequestError, match="^dims: width=33"):
        plan.at_every("n", n=1, width=33)
    with pytest.raises(usm.RequestError, match="width"):
        plan.at_every("n", n=1)
    with pytest.raises(TypeError, match="^dimension: "):
        plan.at_every(0, n=1, width=32)
    with pytest.raises(usm.RequestError, match="one value"):
        usm.plan(CHAIN).at_every("n", n=1)
    # A dimension may have the name of the parameter.
    named = {"dims": [{"name": "dimension", "low": 1, "high": 9}], "tensors": [{"id": 0, "size": "64*dimension"}], "ops": [{"outputs": [0]}], "outputs": [0]}
    offsets, peaks = usm.plan(named, dims={"dimension": "1..9"}).at_every("dimension", dimension=2)
    assert (offsets.tolist(), peaks.tolist()) == ([[0], [0]], [64, 128])


def test_a_model_is_planned_for_every_value():
    plan = usm.plan(model(stated=False), dims={"N": "1..64"})
    for n in (1, 5, 64):
        one = usm.plan(model(stated=False), dims={"N": n})
        assert plan.at(N=n).peak == one.peak and plan.at(N=n).names == one.names


@pytest.mark.parametrize("values", ["1..8:3", range(1, 9, 3)], ids=["text", "range"])
def test_the_last_value_of_a_range_is_one_of_its_values(values):
    for given, name in ((model(stated=True), "N"), ({**RANGED, "dims": [{"name": "n", "low": 1, "high": 10, "step": 1}], "tensors": [{**one, "size": "n"} for one in RANGED["tensors"]]}, "n")):
        plan = usm.plan(given, dims={name: values})
        assert [(dim["low"], dim["high"], dim["step"]) for dim in plan.dims] == [(1, 7, 3)]
        assert plan.at(**{name: plan.dims[0]["high"]}).peak == plan.peak
        with pytest.raises(usm.RequestError, match=f"^dims: {name}=8 is none of 1.."):
            plan.at(**{name: 8})


RECOMPUTED = {
    "tensors": [{"id": id, "size": size} for id, size in enumerate([4096, 64, 4096, 64, 64])],
    "ops": [
        {"name": "make", "outputs": [0], "cost": 50},
        {"name": "sum", "inputs": [0], "outputs": [1], "cost": 10},
        {"name": "grow", "inputs": [1], "outputs": [2], "cost": 10},
        {"name": "shrink", "inputs": [2], "outputs": [3], "cost": 10},
        {"name": "join", "inputs": [0, 3], "outputs": [4], "cost": 10},
    ],
    "outputs": [4],
}


def test_a_curve_of_recompute_has_graphs(tmp_path):
    plan = usm.plan(RECOMPUTED)
    curve = plan.recompute_curve()
    assert (len(curve), curve.bound) == (2, 4224)
    assert curve.points == [
        {"peak": 8256, "time": 0, "repeated": [], "copies": []},
        {"peak": 4224, "time": 50, "repeated": ["make.again"], "copies": []},
    ]
    point = usm.plan(curve.graph(1))
    assert (point.peak, point.order[-2:]) == (4224, ["make.again", "join"])
    # Each tensor has a name of its own, and lies in an arena by it.
    graph = {**RECOMPUTED, "tensors": [{**one, "name": f"n{one['id']}"} for one in RECOMPUTED["tensors"]]}
    again = usm.plan(usm.plan(graph).recompute_curve().graph(1))
    assert sorted(again.names) == ["n0", "n0.again", "n1", "n2", "n3", "n4"]
    assert set(again.arena("host").keys()) == set(again.names)
    copied = plan.recompute_curve(bytes_per_cost=1024)
    assert copied.points[1]["time"] == 8 and len(copied.points[1]["copies"]) == 2
    assert [it["peak"] for it in plan.recompute_curve(budget=5000, time_limit=5).points] == [4224]
    curve.to_svg(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text() == curve._repr_svg_()
    assert repr(curve) == "<usm.RecomputeCurve: 2 points, peaks from 8256 down to 4224 bytes>"


def test_a_name_of_two_tensors_is_refused_with_their_numbers():
    tensors = [{"id": 3, "size": 8, "name": "x"}, {"id": 5, "size": 8, "name": "x"}, {"id": 7, "size": 8, "name": "y"}]
    ops = [{"outputs": [3]}, {"inputs": [3], "outputs": [5]}, {"inputs": [5], "outputs": [7]}]
    arena = usm.plan({"tensors": tensors, "ops": ops, "outputs": [7]}).arena("host")
    assert set(arena.keys()) == {3, 5, "y"} and "x" not in arena and arena["y"].nbytes == arena[3].nbytes == 8
    with pytest.raises(KeyError, match="2 tensors are named x: 3, 5"):
        arena.array("x", 8, "u1")
    for unknown in ("z", 4, None):
        with pytest.raises(KeyError) as refused:
            arena[unknown]
        assert refused.value.args == (unknown,)


def test_the_text_of_a_graph_is_no_path():
    for text in (json.dumps(RECOMPUTED), "  [" + "1," * 5000):
        with pytest.raises(usm.RequestError, match="a str is a path; for a graph pass json.loads"):
            usm.plan(text)
    with pytest.raises(FileNotFoundError):
        usm.plan("missing.json")


def test_views_in_a_circle_and_memories_without_room_are_refused():
    circle = [{"id": 1, "size": 8, "alias_of": 2}, {"id": 2, "size": 8, "alias_of": 1}]
    with pytest.raises(usm.RequestError, match="tensor 1: alias_of leads back to itself"):
        usm.plan({"tensors": circle, "ops": []})
    graph = {"tensors": [{"id": 0, "size": 64}], "ops": [{"outputs": [0]}], "outputs": [0]}
    for memory, words in (({"capacity": 0}, r"memories\[0\]"), ({"capacity": -1}, r"memories\[0\]"), ({"capacity": 63}, "64 bytes exceed the 63")):
        with pytest.raises(usm.Error, match=words):
            usm.plan({**graph, "memories": [{"name": "sram", **memory}]})


def test_a_curve_of_recompute_refuses_bad_input():
    plan = usm.plan(RECOMPUTED)
    for options, words in (
        ({"budget": 4000}, ["budget", "least found is 4224"]),
        ({"bytes_per_cost": 0}, ["bytes_per_cost", "above 0"]),
        ({"bytes_per_cost": float("nan")}, ["bytes_per_cost", "above 0"]),
        ({"time_limit": -1}, ["time_limit"]),
    ):
        with pytest.raises(usm.RequestError) as refused:
            plan.recompute_curve(**options)
        assert all(word in str(refused.value) for word in words), refused.value
    with pytest.raises(IndexError, match="2 of 2 points"):
        plan.recompute_curve().graph(2)
    with pytest.raises(usm.RequestError, match="input: buffers have no operators"):
        usm.plan([(0, 1, 8)]).recompute_curve()
    with pytest.raises(usm.RequestError, match="queue: "):
        usm.plan(RECOMPUTED, queue="out-of-order").recompute_curve()
    for cost, words in ((-1, "cost"), (float("nan"), "ops.0..cost"), (None, "ops.0..cost is absent")):
        ops = [dict(op) for op in RECOMPUTED["ops"]]
        ops[0]["cost"] = cost
        if cost is None:
            del ops[0]["cost"]
        with pytest.raises(usm.RequestError, match=words):
            usm.plan({**RECOMPUTED, "ops": ops}).recompute_curve()


def test_a_memory_that_alignment_makes_too_small_is_refused_at_once():
    tensors = [{"id": 0, "size": 1}, {"id": 1, "size": 1}]
    ops = [{"name": "p", "outputs": [0]}, {"name": "q", "inputs": [0], "outputs": [1]}]
    graph = {"tensors": tensors, "ops": ops, "outputs": [1], "memories": [{"name": "m", "capacity": 1 << 30}]}
    with pytest.raises(usm.RequestError, match="no plan within their 1073741824 bytes was found; every plan needs 2"):
        usm.plan(graph, alignment=1 << 30)
