"""Pairs of measurements of our work and a peer's, taken in turns, as rows of JSON."""

import json
import statistics
import time


def row(case, peer, ours, theirs):
    """Prints the row of pairs of microseconds: medians, and the median of the ratios."""
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    one, two = statistics.median(ours), statistics.median(theirs)
    print(json.dumps({"case": case, "peer": peer, "unit": "us", "ours": one, "theirs": two, "ratio": ratio}), flush=True)


def compare(case, peer, ours, theirs, count, rounds=101):
    """The row of two functions, by the caller's CPU time of batches of `count` calls."""

    def batch(work):
        start = time.thread_time_ns()
        for _ in range(count):
            work()
        return (time.thread_time_ns() - start) / count / 1000

    for work in (ours, theirs):
        batch(work)
    row(case, peer, *zip(*[(batch(ours), batch(theirs)) for _ in range(rounds)]))
