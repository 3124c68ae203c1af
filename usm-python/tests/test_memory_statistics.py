"""Statistics of memory: history from a context's first use, peaks, and tracked blocks."""

import gc
import subprocess
import sys
import threading

import pytest

import usm
import usm.memory


def test_history_is_kept_from_the_first_use_of_a_context_on():
    program = """
import usm
assert usm.history(10) == {} or all(records == [] for records in usm.history().values())
a = usm.zeros(1000, "u1", device="host")
del a
records = usm.history()["host:host:0"]
assert [(it["operation"], it["bytes"]) for it in records] == [("allocate", 1000), ("free", 1000)], records
context = usm.Context("host")
usm.zeros(10, "u1", queue=context)
assert len(context.history()) == 2
usm.history(0)
later = usm.Context("host")
usm.zeros(10, "u1", queue=later)
assert later.history() == [] and usm.history()["host:host:0"] == []
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_reset_peak_restarts_the_peaks(queue, kind):
    def sums():
        return queue.context.stats()["sum"]

    gc.collect()
    large = usm.empty(1 << 20, "u1", kind=kind, queue=queue.context)
    del large
    before = sums()
    assert before["peak"] >= before["current"] + (1 << 20)
    context = usm.Device(queue.device.selector).context
    usm.reset_peak()
    after = context.stats()["sum"]
    assert after["peak"] == after["current"] and after["total"] == before["total"]
    small = usm.empty(1000, "u1", kind=kind, queue=context)
    assert context.stats()["sum"]["peak"] == after["current"] + 1000
    del small


def test_a_block_counts_what_its_thread_allocates(queue, kind):
    kept = []
    with usm.track() as outer:
        kept.append(usm.zeros(1000, "u1", kind=kind, queue=queue))
        with usm.track() as inner:
            usm.zeros(500, "u1", kind=kind, queue=queue)
            kept.append(usm.memory.MemoryUSMHost(200, queue=queue))
            kept.append(kept[0][10:])
            # Another thread's is not this one's.
            other = threading.Thread(target=lambda: kept.append(usm.zeros(10_000, "u1", queue=queue)))
            other.start()
            other.join()
        kept.append(usm.asarray(bytearray(100)))
    gc.collect()
    assert (inner.live, inner.peak, inner.allocations) == (200, 500, 2)
    assert (outer.live, outer.allocations) == (1200, 3) and outer.peak >= 1500
    usm.zeros(50, "u1", queue=queue)
    assert outer.allocations == 3
    kept.clear()
    assert (outer.live, inner.live) == (0, 0) and "live=0" in repr(outer)


def test_a_block_is_entered_once_and_left_after_an_error():
    block = usm.track()
    with pytest.raises(KeyError), block:
        raise KeyError
    usm.zeros(10, device="host")
    assert block.allocations == 0
    with block, pytest.raises(RuntimeError):
        block.__enter__()
    with block:
        usm.zeros(10, device="host")
    assert block.allocations == 1


@pytest.mark.parametrize("keep", [1, 10, 1000])
def test_live_blocks_keep_their_lines_however_many_records_follow(queue, kind, keep):
    def named(size):
        return usm.empty(size, "u1", kind=kind, queue=queue)

    usm.history(keep, lines=True)
    try:
        kept = [named(1000 + number) for number in range(60)]
        for _ in range(50):
            named(10)
        with usm.Pool(queue.context, limit=1 << 20):
            pooled = named(999)
        blocks = {block["address"]: block for block in usm.snapshot().blocks}
        for array in [*kept, pooled]:
            block = blocks[array.pointer]
            assert (block["bytes"], block["kind"]) == (array.nbytes, kind)
            assert block["lines"][0][2] == "named" and block["queue"] is not None
            assert "test_live_blocks_keep_their_lines_however_many_records_follow" in [line[2] for line in block["lines"]]
        assert all(len(records) <= keep for records in usm.history().values())
        # Who is freed leaves nothing behind, and a new owner of the address has its own line.
        addresses = {array.pointer for array in kept}
        del kept, array
        gc.collect()
        assert not addresses & {block["address"] for block in usm.snapshot().blocks if block["bytes"] >= 1000}
        again = [usm.empty(1000 + number, "u1", kind=kind, queue=queue) for number in range(60)]
        blocks = {block["address"]: block for block in usm.snapshot().blocks}
        assert all(blocks[array.pointer]["lines"][0][2] != "named" for array in again)
    finally:
        usm.history(0, lines=False)
    # What was kept is dropped, also where the owner of an old note ends after a new start.
    blocks = {block["address"]: block for block in usm.snapshot().blocks}
    assert blocks[pooled.pointer]["lines"] == [] and blocks[pooled.pointer]["queue"] is None
    usm.history(keep, lines=True)
    try:
        anew = named(500)
        del again, pooled
        blocks = {block["address"]: block for block in usm.snapshot().blocks}
        assert blocks[anew.pointer]["lines"][0][2] == "named"
    finally:
        usm.history(0, lines=False)
