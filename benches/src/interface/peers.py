"""Python's peers of `usm`: one JSON row a line. Thread CPU time, medians of samples taken in
turns."""
import json
import operator
import statistics
import sys
import time
from itertools import repeat

import numpy as np
import usm


def sample(call, argument, count):
    start = time.thread_time_ns()
    for _ in repeat(None, count):
        call(argument)
    return (time.thread_time_ns() - start) / count


def compare(case, ours, theirs, count=500, samples=41):
    """Rows of one of ours, (call, argument), beside each of theirs, (peer, call, argument)."""
    candidates = [ours, *(candidate[1:] for candidate in theirs)]
    times = [[] for _ in candidates]
    for _ in range(samples):
        for (call, argument), own in zip(candidates, times):
            own.append(sample(call, argument, count))
    mine, *others = (statistics.median(own) for own in times)
    for (peer, *_), their in zip(theirs, others):
        row = {"case": case, "peer": peer, "unit": "ns", "ours": mine, "theirs": their, "ratio": mine / their}
        print(json.dumps(row), flush=True)


class Exporter:
    """An object with one dictionary."""


array = np.zeros((3, 4))
exporter = Exporter()
exporter.__array_interface__ = dict(array.__array_interface__)
compare("Python: dictionary -> checked layout", (usm._usm.validate, exporter), [("np.asarray", np.asarray, exporter)])
compare("Python: dictionary -> usm.Array", (usm.asarray, exporter), [("np.asarray", np.asarray, exporter)])
compare("Python: NumPy's array -> usm.Array", (usm.asarray, array), [("memoryview", memoryview, array), ("np.frombuffer", np.frombuffer, array), ("its dictionary alone", operator.attrgetter("__array_interface__"), array)])
compare("Python: DLPack -> usm.Array", (usm.from_dlpack, array), [("np.from_dlpack", np.from_dlpack, array)])

members = [(f"f{i}", "<f4") for i in range(10)]
records = np.zeros(3, members)
structured = Exporter()
structured.__array_interface__ = dict(records.__array_interface__)
compare("Python: dictionary of 10 members -> usm.Array", (usm.asarray, structured), [("np.asarray", np.asarray, structured), ("np.dtype of the descr alone", np.dtype, members)])

try:
    import dpctl
    import dpctl.memory

    queue = dpctl.SyclQueue("opencl:cpu")
except Exception as error:
    print(f"skipped: SYCL imports: {type(error).__name__}: {error}", file=sys.stderr)
else:
    memory = dpctl.memory.MemoryUSMShared(96, queue=queue)
    base = {"data": (memory.__sycl_usm_array_interface__["data"][0], False), "shape": (3, 4), "strides": None, "typestr": "<f8", "version": 1}
    for name, syclobj in (("queue", queue), ("context", queue.sycl_context), ("filter string", "opencl:cpu:0")):
        suai = Exporter()
        suai.__sycl_usm_array_interface__ = {**base, "syclobj": syclobj}
        suai.memory = memory
        try:
            dpctl.memory.as_usm_memory(suai)
            usm.asarray(suai)
        except Exception as error:
            print(f"skipped: SYCL {name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        peer = ("dpctl as_usm_memory", dpctl.memory.as_usm_memory, suai)
        compare(f"Python: SYCL dictionary, {name} -> usm.Array", (usm.asarray, suai), [peer], count=50)
