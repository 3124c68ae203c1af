"""Failures that no event reports, on OpenCL.

A layer of OpenCL's loader (`OPENCL_LAYERS`) refuses calls on demand. Each case is a process of its
own, because the layer is chosen when the loader is opened.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from backends.configurations import OPENCL, only
from conftest import device_of

# No headers: the table of functions has one order for all loaders (the extension cl_khr_icd).
LAYER = """
#include <stdint.h>
#include <string.h>

typedef int32_t status;
typedef uint32_t number;

enum { MARKER = 105, ROOM = 512, OUT_OF_RESOURCES = -5, INVALID_VALUE = -30, LAYER_API = 0x4240, VERSION_100 = 100 };

static void *table[ROOM], *next[ROOM];
static int refused;

void layer_refuse(int on) { __atomic_store_n(&refused, on, __ATOMIC_SEQ_CST); }

static status marker(void *queue, number count, void *const *events, void **out)
{
    if (__atomic_load_n(&refused, __ATOMIC_SEQ_CST))
        return OUT_OF_RESOURCES;
    return ((status (*)(void *, number, void *const *, void **))next[MARKER])(queue, count, events, out);
}

status clGetLayerInfo(number name, size_t bytes, void *value, size_t *size)
{
    if (name != LAYER_API || (value && bytes < sizeof(number)))
        return INVALID_VALUE;
    if (value)
        *(number *)value = VERSION_100;
    if (size)
        *size = sizeof(number);
    return 0;
}

status clInitLayer(number count, void *const *target, number *out_count, void **out)
{
    if (count <= MARKER || count > ROOM)
        return INVALID_VALUE;
    memcpy(next, target, count * sizeof *next);
    memcpy(table, target, count * sizeof *table);
    table[MARKER] = marker;
    *out_count = count;
    *out = table;
    return 0;
}

/* Newer loaders ask for these two. */
status clInitLayerWithProperties(number count, void *const *target, number *out_count, void **out, const void *properties)
{
    (void)properties;
    return clInitLayer(count, target, out_count, out);
}

status clDeinitLayer(void)
{
    return 0;
}
"""

PRELUDE = """
import ctypes, gc, os
import usm

refuse = ctypes.CDLL(os.environ["OPENCL_LAYERS"]).layer_refuse
context = usm.Context("opencl")

def end_without_a_marker():
    # The last handle of a queue with work goes while the driver refuses to say when that ends.
    queue = usm.Queue(context, in_order=False)
    source, target = (usm.zeros(100, "<i4", kind="device", queue=context) for _ in range(2))
    queue.copy(target, source).wait()
    refuse(1)
    del queue
    gc.collect()
    refuse(0)

def reported_error():
    try:
        context.synchronize(timeout=20)
    except usm.DeviceError as error:
        return str(error)
"""


@pytest.fixture
def run(compiler, tmp_path):
    device_of("opencl")
    source, layer = tmp_path / "layer.c", tmp_path / "liblayer.so"
    source.write_text(LAYER)
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", layer, source], check=True)

    def run(code):
        variables = {**os.environ, **only(OPENCL), "OPENCL_LAYERS": str(layer)}
        variables.pop("USM_DEVICE", None)
        program = PRELUDE + textwrap.dedent(code)
        done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return run


def test_the_failure_of_a_dropped_queue_is_reported_once(run):
    run("""
        assert reported_error() is None
        for _ in range(2):
            end_without_a_marker()
            message = reported_error()
            assert message and "clEnqueueMarkerWithWaitList" in message, message
            assert reported_error() is None, "a failure is reported once"
    """)


def test_the_report_of_a_dropped_queues_failure_waits_for_other_work(run):
    run("""
        queue = usm.Queue(context)
        source, target = (usm.zeros(1 << 24, "|u1", kind="device", queue=context) for _ in range(2))
        end_without_a_marker()
        for _ in range(16):
            event = queue.copy(target, source)
        assert reported_error() and event.done
    """)


def test_a_live_queue_reports_its_refusal_every_time(run):
    run("""
        end_without_a_marker()
        queue = usm.Queue(context)
        source, target = (usm.zeros(100, "<i4", kind="device", queue=context) for _ in range(2))
        queue.copy(target, source)
        refuse(1)
        assert reported_error() and reported_error() and reported_error()
        refuse(0)
        assert reported_error() is None, "the dropped queue's failure was reported too"
        queue.wait()
    """)
