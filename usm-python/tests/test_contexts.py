"""`with` blocks of devices, queues and counters in tasks, threads and generators.

Every block is the default of its own thread or task, and its end removes that block and no other.
"""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import gc
import random
import re
import sys
import threading

import pytest

import effort
import usm

HOST = usm.Device("host")


@pytest.fixture(scope="module")
def queues():
    return [usm.Queue("host") for _ in range(4)]


def default_queue():
    return usm.zeros(1).queue


def blocks(queues):
    """Objects of each sort that make a queue the default, some of them shared by many blocks."""
    return [
        *((queue, queue) for queue in queues),
        *((usm.device_context(queue), queue) for queue in queues),
        (HOST, HOST.context.queue),
        *((lambda queue=queue: usm.device_context(queue), queue) for queue in queues),
    ]


class Model:
    """What the default must be: the open blocks of one context."""

    def __init__(self, before=()):
        self.open = list(before)

    def check(self):
        assert default_queue() == (self.open[-1][1] if self.open else DEFAULT)


DEFAULT = None


@pytest.fixture(autouse=True)
def default():
    global DEFAULT
    DEFAULT = default_queue()
    yield
    assert default_queue() == DEFAULT, "the test left a block"


def begin(choice):
    block, queue = choice
    return (block() if callable(block) else block), queue


class By:
    """The ways of a program to hold a block open between two steps."""

    @staticmethod
    def generator(block):
        def run():
            with block:
                yield

        made = run()
        next(made)
        return made.close

    @staticmethod
    def exhausted(block):
        def run():
            with block:
                yield

        made = run()
        next(made)
        return lambda: next(made, None)

    @staticmethod
    def raising(block):
        def run():
            with contextlib.suppress(KeyError), block:
                yield
            yield

        made = run()
        next(made)
        return lambda: made.throw(KeyError)

    @staticmethod
    def nested(block):
        def run():
            yield from inner()

        def inner():
            with block, block:
                yield

        made = run()
        next(made)
        return made.close

    @staticmethod
    def manager(block):
        @contextlib.contextmanager
        def run():
            with block:
                yield

        made = run()
        made.__enter__()
        return lambda: made.__exit__(None, None, None)

    @staticmethod
    def stack(block):
        def run():
            with contextlib.ExitStack() as stack:
                stack.enter_context(block)
                yield

        made = run()
        next(made)
        return made.close

    @staticmethod
    def collected(block):
        def run():
            with block:
                yield

        kept = [run()]
        next(kept[0])
        return kept.clear

    @staticmethod
    def coroutine(block):
        class Once:
            def __await__(self):
                yield

        async def run():
            with block:
                await Once()

        made = run()
        made.send(None)
        return made.close


WAYS = [value.__func__ for name, value in vars(By).items() if isinstance(value, staticmethod)]


def steps(source, queues, model, count):
    """Random begins and ends of blocks in any order; afterwards all are over."""
    choices, ends = blocks(queues), {}
    for _ in range(count):
        if source.random() < 0.55 or not ends:
            block, queue = begin(source.choice(choices))
            way = source.choice(WAYS)
            key = object()
            ends[key] = way(block)
            model.open.append((key, queue))
        else:
            key = source.choice(list(ends))
            ends.pop(key)()
            model.open = [entry for entry in model.open if entry[0] is not key]
        model.check()
        yield
    for key in source.sample(list(ends), len(ends)):
        ends.pop(key)()
        model.open = [entry for entry in model.open if entry[0] is not key]
        model.check()
        yield


def test_blocks_of_generators_end_in_any_order(queues):
    source = random.Random(36)
    for _ in range(effort.cases("USM_BLOCK_CASES", 60)):
        for _ in steps(source, queues, Model(), 12):
            pass
        assert default_queue() == DEFAULT


def test_the_same_object_twice_is_two_blocks(queues):
    """Only the place of a block tells the two apart."""
    shared, other = queues[0], queues[1]
    for way in WAYS:
        first = way(shared)
        between = way(other)
        second = way(shared)
        first()
        assert default_queue() == shared, "the second block is the innermost one"
        second()
        assert default_queue() == other
        between()
        assert default_queue() == DEFAULT


def test_tasks_have_blocks_of_their_own(queues):
    """Tasks that interleave, each with generators that begin and end blocks in any order."""
    source = random.Random(37)

    async def task(seed, inherited):
        model = Model(inherited)
        for _ in steps(random.Random(seed), queues, model, 10):
            await asyncio.sleep(0)
            model.check()
        assert default_queue() == (inherited[-1][1] if inherited else DEFAULT)

    async def main():
        for _ in range(effort.cases("USM_TASK_CASES", 8)):
            made = [task(source.random(), []) for _ in range(8)]
            with queues[0]:
                # A task begins with its creator's blocks, and keeps them when they end.
                inherited = [("creator", queues[0])]
                made_inside = [asyncio.create_task(task(source.random(), inherited)) for _ in range(8)]
            await asyncio.gather(*made, *made_inside)
            assert default_queue() == DEFAULT

    asyncio.run(main())


def test_threads_have_blocks_of_their_own(queues):
    def thread(seed):
        # A thread of its own context begins without blocks.
        def run():
            model = Model()
            for _ in steps(random.Random(seed), queues, model, 10):
                model.check()
            return default_queue() == DEFAULT

        return contextvars.Context().run(run)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with queues[1], concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert all(pool.map(thread, range(effort.cases("USM_THREAD_CASES", 64))))
            assert default_queue() == queues[1]
    finally:
        sys.setswitchinterval(switch)


def test_threads_and_tasks_interleave(queues):
    async def main(seed):
        source = random.Random(seed)

        async def task(number):
            with queues[number % 4]:
                await asyncio.sleep(source.random() / 1000)
                assert default_queue() == queues[number % 4]
                # The thread runs in a copy of this task's context.
                assert await asyncio.to_thread(default_queue) == queues[number % 4]
            assert default_queue() == DEFAULT

        await asyncio.gather(*map(task, range(16)))

    threads, failed = [], []

    def run(seed):
        try:
            asyncio.run(main(seed))
        except BaseException as error:
            failed.append(error)

    for seed in range(4):
        threads.append(threading.Thread(target=run, args=(seed,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_generator_shares_its_callers_context(queues):
    def run():
        with queues[2]:
            yield default_queue()

    made = run()
    assert next(made) == queues[2] and default_queue() == queues[2], "as the documentation says"
    made.close()
    assert default_queue() == DEFAULT


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_block_that_ends_in_another_context_is_over_in_its_own(queues, way):
    """The end runs in a thread, in an empty context, or in a copy of the block's own."""

    def in_thread(end):
        thread = threading.Thread(target=end)
        thread.start()
        thread.join()

    def in_copy(end):
        contextvars.copy_context().run(end)

    def in_empty(end):
        contextvars.Context().run(end)

    for elsewhere in (in_thread, in_copy, in_empty):
        outer = way(queues[0])
        end = way(queues[3])
        inner = way(queues[1])
        elsewhere(end)
        gc.collect()
        assert default_queue() == queues[1]
        inner()
        assert default_queue() == queues[0], "the block is over"
        outer()
        assert default_queue() == DEFAULT


def test_async_generators_keep_to_their_tasks(queues):
    async def stream(queue):
        with queue:
            for _ in range(3):
                yield default_queue()

    async def task(queue):
        async for seen in stream(queue):
            assert seen == queue
            await asyncio.sleep(0)
        assert default_queue() == DEFAULT
        async for _ in stream(queue):
            break  # the loop ends the generator later, in a task of its own

    async def main():
        await asyncio.gather(*map(task, queues))
        gc.collect()
        await asyncio.sleep(0)
        assert default_queue() == DEFAULT

    asyncio.run(main())


def test_methods_may_be_called_by_hand(queues):
    def begin(block):
        block.__enter__()

    def end(block):
        block.__exit__(None, None, None)

    end(queues[0])
    begin(queues[0])
    begin(queues[1])
    assert default_queue() == queues[1]
    end(queues[0])
    assert default_queue() == queues[1]
    end(queues[1])
    with contextlib.ExitStack() as stack:
        stack.enter_context(queues[2])
        moved = stack.pop_all()
    assert default_queue() == queues[2]
    moved.close()
    assert default_queue() == DEFAULT


def test_counters_follow_tasks_and_threads():
    async def task(number, size):
        with usm.track() as counted:
            kept = []
            for _ in range(number):
                kept.append(usm.zeros(size, "u1", device="host"))
                await asyncio.sleep(0)
        return counted.allocations, counted.live

    async def main():
        with usm.track() as all_of_them:
            asked = [(number, 16 + number) for number in range(1, 12)]
            counted = await asyncio.gather(*(task(*one) for one in asked))
            assert [allocations for allocations, _ in counted] == [number for number, _ in asked]
            # Tasks that begin in a block count in it.
            assert all_of_them.allocations == sum(number for number, _ in asked)
        return True

    assert asyncio.run(main())
    with usm.track() as outer:
        thread = threading.Thread(target=lambda: contextvars.Context().run(usm.zeros, 8, device="host"))
        thread.start()
        thread.join()
        assert outer.allocations == 0, "a thread has blocks of its own"

    def generator():
        with usm.track() as counted:
            yield counted

    first, second = generator(), generator()
    one, two = next(first), next(second)
    first.close()
    kept = usm.zeros(8, device="host")
    second.close()
    usm.zeros(8, device="host")
    assert (one.allocations, two.allocations, two.live) == (0, 1, kept.nbytes)


def test_abandoned_blocks_leave_nothing_behind(queues):
    """Contexts with blocks that never end are freed with their blocks."""
    gc.collect()
    before = len([it for it in gc.get_objects() if type(it).__name__ == "_Block"])
    for _ in range(300):
        contextvars.Context().run(queues[0].__enter__)
    gc.collect()
    assert len([it for it in gc.get_objects() if type(it).__name__ == "_Block"]) - before <= 1


def test_a_queue_names_the_places_of_memory_that_is_not_its_own():
    queue, other = usm.Queue("host"), usm.Context("host").queue
    ours, theirs = usm.zeros(4, queue=queue), usm.zeros(4, queue=other)
    places = r"the queue is of host:host:0 \(context (\d+)\), the destination of host:host:0 \(context (\d+)\), the source of host:host:0 \(context (\d+)\)"
    with pytest.raises(usm.RequestError, match=places) as raised:
        queue.copy(theirs, ours)
    here, to, source = re.search(places, str(raised.value)).groups()
    assert here == source != to and "usm.copy" in str(raised.value)
