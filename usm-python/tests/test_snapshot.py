"""Snapshots and history, in the files of two viewers: keys, rules, and hostile names as text."""

import json
import os
import pathlib
import pickle
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import usm

SEGMENT = set("device address total_size allocated_size active_size requested_size stream segment_type segment_pool_id is_expandable frames blocks".split())
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom"}


@pytest.fixture
def taken(queue, kind):
    """A snapshot of a new context, and its two live arrays; one block was freed, one refused."""
    usm.history(1000)
    context = usm.Device(queue.device.selector).context
    context.keep_history(0)
    context.keep_history(1000)
    held = [usm.zeros(1000, "u1", kind=kind, queue=context), usm.zeros(70_000, "u1", kind=kind, queue=context)]
    gone = usm.zeros(500, "u1", kind=kind, queue=context)
    address = gone.pointer
    del gone
    with pytest.raises(usm.AllocationError):
        usm.empty(1 << 60, "u1", kind=kind, queue=context)
    yield usm.snapshot(), held, address
    usm.history(0)


def test_the_pickle_has_the_keys_of_memory_viz(taken, queue, tmp_path):
    snapshot, held, freed = taken
    path = tmp_path / "memory.pickle"
    assert snapshot.dump(path) is None
    document = pickle.loads(path.read_bytes())
    assert {"segments", "device_traces", "allocator_settings"} <= set(document)
    place = document["device_names"].index(queue.device.selector)
    ours = [it for it in document["segments"] if it["device"] == place]
    for segment in document["segments"]:
        assert SEGMENT <= set(segment) and segment["segment_type"] in ("large", "small") and segment["segment_pool_id"] == (0, 0)
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and block["state"] in ("active_allocated", "inactive") and block["frames"] == []
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
    blocks = {block["address"]: block["size"] for segment in ours for block in segment["blocks"]}
    assert [blocks.get(it.pointer) for it in held] == [1000, 70_000]
    assert sum(blocks.values()) == queue.device.context.stats()["sum"]["current"]
    trace = document["device_traces"][place]
    assert {it["action"] for it in trace} <= ACTIONS and all({"addr", "size", "stream", "time_us", "frames"} <= set(it) for it in trace)
    events = [(it["action"], it["addr"], it["size"]) for it in trace]
    for array in held:
        assert ("alloc", array.pointer, array.nbytes) in events
    assert events.index(("alloc", freed, 500)) < events.index(("free_requested", freed, 500)) < events.index(("free_completed", freed, 500))
    refused = next(it for it in trace if it["action"] == "oom")
    assert refused["size"] == 1 << 60 and refused["device_free"] >= 0
    times = [it["time_us"] for it in trace]
    assert times == sorted(times) and times[0] > 1_600_000_000_000_000


def test_the_trace_is_one_of_perfetto(taken, queue, kind, tmp_path):
    snapshot, held, freed = taken
    path = str(tmp_path / "memory.json")
    snapshot.trace(path)
    events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
    process = next(it["pid"] for it in events if it["ph"] == "M" and it["args"]["name"] == queue.device.selector)
    ours = [it for it in events if it["pid"] == process]
    counters = [it for it in ours if it["ph"] == "C" and it["name"] == kind]
    assert counters and all(it["args"]["bytes"] >= 0 and it["ts"] > 0 for it in counters)
    begun, ended = ({it["id"] for it in ours if it["ph"] == phase} for phase in "be")
    assert ended <= begun
    lives = {it["args"]["address"]: it for it in ours if it["ph"] == "b"}
    assert all(lives[hex(it.pointer)]["args"]["bytes"] == it.nbytes and lives[hex(it.pointer)]["id"] not in ended for it in held)
    assert lives[hex(freed)]["id"] in ended
    assert [it["name"] for it in ours if it["ph"] == "i"] == [f"refused {1 << 60} bytes of {kind}"]


def test_the_picture_has_a_panel_for_each_context(taken, queue):
    picture = taken[0]._repr_svg_()
    texts = [it.text for it in xml.etree.ElementTree.fromstring(picture).iter() if it.text]
    assert queue.device.selector in texts and any(text.startswith("refused: ") for text in texts)
    assert f"{queue.device.selector}: " in repr(taken[0])


def test_files_that_cannot_be_written(tmp_path):
    snapshot = usm.snapshot()
    for write in (snapshot.dump, snapshot.trace):
        with pytest.raises(FileNotFoundError) as caught:
            write(tmp_path / "no" / "folder")
        assert os.fspath(caught.value.filename) == str(tmp_path / "no" / "folder")
        with pytest.raises(TypeError):
            write(5)


def test_without_a_history_there_are_blocks_and_no_events(tmp_path):
    program = """
import pickle, sys, usm
array = usm.zeros(1000, "u1", device="host")
seen = usm.snapshot()
assert repr(seen).endswith("host:host:0: 1 blocks, 1000 bytes, 0 events>"), seen
seen.dump(sys.argv[1])
document = pickle.load(open(sys.argv[1], "rb"))
[block] = [block for segment in document["segments"] for block in segment["blocks"]]
assert block["address"] == array.pointer and not any(document["device_traces"]) and "no history was kept" in seen._repr_svg_()
assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=True, timeout=60)


def line_number():
    return sys._getframe(1).f_lineno


@pytest.fixture
def lines():
    usm.history(1000, lines=True)
    yield
    usm.history(0, lines=False)


def test_the_lines_begin_with_the_callers(lines):
    data = usm.asarray([3.0, 1.0, 2.0], queue="host")
    made = [usm.sort(data), usm.elementwise("2 * x")(data)]
    ours = [block["lines"][0] for block in usm.snapshot().blocks if block["lines"]]
    named = [(file, name) for file, _, name in ours]
    assert named.count((__file__, "test_the_lines_begin_with_the_callers")) >= len(made), ours


def test_the_history_names_queue_and_line(queue, kind, lines):
    context = usm.Context(queue.device)
    first, second = usm.Queue(context), usm.Queue(context)
    assert first.number != second.number
    context.keep_history(100)

    def make(queue):
        return usm.empty(1000, "u1", kind=kind, queue=queue), line_number()

    (one, line), (two, _) = make(first), make(second)
    called = line_number() - 1
    with pytest.raises(usm.AllocationError):
        usm.empty(1 << 60, "u1", kind=kind, queue=second)
    refused = line_number() - 1
    numbers = [first.number, second.number, second.number, first.number]
    address = one.pointer
    del one
    third, _ = make(second)  # often at the address that is free again
    records = context.history()
    assert [it["operation"] for it in records] == ["allocate", "allocate", "refuse", "free", "allocate"]
    assert [it["queue"] for it in records] == [*numbers, second.number]
    assert [it["lines"][0] for it in records[:4]] == [(__file__, at, name) for at, name in ((line, "make"), (line, "make"), (refused, "test_the_history_names_queue_and_line"), (line, "make"))]
    assert records[0]["lines"][1] == records[1]["lines"][1] == (__file__, called, "test_the_history_names_queue_and_line")
    assert records[0]["address"] == records[3]["address"] == address and len(records[0]["lines"]) <= 16
    del two, third


def test_lines_are_kept_on_request_only(queue, lines):
    context = usm.Context(queue.device)
    context.keep_history(10)
    usm.history(lines=False)
    held = usm.empty(10, queue=context)
    usm.history(lines=True)
    more = usm.empty(10, queue=context)
    assert [bool(it["lines"]) for it in context.history()] == [False, True]
    context.keep_history(0)
    del held, more
    assert context.history() == []
    context.keep_history(10)
    last = usm.empty(10, queue=context)
    assert [len(it["lines"]) > 0 for it in context.history()] == [True]
    del last


def test_origins_hold_when_threads_allocate_at_once(lines):
    import threading

    context = usm.Context("host")
    context.keep_history(100_000)
    queues = [usm.Queue(context) for _ in range(4)]

    def work(index):
        for size in range(1, 200):
            usm.empty(size * 4 + index, "u1", queue=queues[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    records = context.history()
    assert len(records) == 2 * 4 * 199
    # The size identifies the thread.
    assert all(it["queue"] == queues[it["bytes"] % 4].number for it in records)


def test_the_files_have_queue_and_lines(queue, kind, lines, tmp_path):
    context = queue.device.context
    context.keep_history(0)
    context.keep_history(100)
    held = usm.empty(1234, "u1", kind=kind, queue=queue)
    line = line_number() - 1
    snapshot = usm.snapshot()
    snapshot.dump(tmp_path / "x.pickle")
    document = pickle.loads((tmp_path / "x.pickle").read_bytes())
    block = next(it for segment in document["segments"] for it in segment["blocks"] if it["address"] == held.pointer)
    place = {"filename": __file__, "line": line, "name": "test_the_files_have_queue_and_lines"}
    assert block["frames"][0] == place
    event = [it for trace in document["device_traces"] for it in trace if it["addr"] == held.pointer and it["action"] == "alloc"][-1]
    assert event["frames"][0] == place and event["stream"] == queue.number
    snapshot.trace(tmp_path / "x.json")
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    life = [it for it in events if it["ph"] == "b" and it["args"]["address"] == hex(held.pointer)][-1]
    assert life["args"]["at"] == f"{__file__}:{line} test_the_files_have_queue_and_lines" and life["args"]["queue"] == queue.number
