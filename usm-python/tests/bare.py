"""Checks in an environment with only NumPy and the wheel: a user's first steps.

Run by `cargo xtask wheel --bare`, not by pytest.
"""

import importlib.metadata
import importlib.util
import inspect
import json
import multiprocessing
import os
import pathlib
import pickle
import pydoc
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

started = time.perf_counter()
import usm  # noqa: E402

IMPORT = time.perf_counter() - started
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="usm-bare-"))
GRAPH = {
    "tensors": [{"id": id, "size": 1024 * (id + 1), "name": name} for id, name in enumerate(["first", "</script><b>", "last"])],
    "ops": [{"name": f"op{id}", "inputs": [id - 1] if id else [], "outputs": [id]} for id in range(3)],
    "outputs": [2],
}


def command(*arguments, module=False, status=0, **more):
    program = [sys.executable, "-m", "usm"] if module else [pathlib.Path(sys.executable).with_name("usm")]
    done = subprocess.run([*map(str, program), *map(str, arguments)], capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def check_that_no_other_package_is_installed():
    for name in ("numba", "dpctl", "onnx", "dask", "IPython", "pytest"):
        assert importlib.util.find_spec(name) is None, f"{name} is here: this is no bare environment"
    assert importlib.util.find_spec("numpy") is not None
    assert importlib.metadata.requires("usm") in (None, [])


def check_import():
    assert "numpy" not in sys.modules or importlib.util.find_spec("numpy") is None
    code = "import sys, time; t = time.process_time(); import usm; print(time.process_time() - t, 'numpy' in sys.modules)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    assert {numpy for _, numpy in runs} == {"False"}
    return f"{min(float(seconds) for seconds, _ in runs) * 1e3:.1f} ms of CPU time, first one {IMPORT * 1e3:.0f} ms"


def check_help():
    assert "Unified Shared Memory" in pydoc.render_doc(usm)
    members = dict(inspect.getmembers(usm))
    assert set(usm.__all__) <= set(members) and not hasattr(usm, "numba") and not hasattr(usm, "dask")
    for name in usm.__all__:
        assert pydoc.render_doc(getattr(usm, name)), name
    for name, package in (("numba", "numba"), ("dask", "dask")):
        try:
            getattr(usm, name)
        except AttributeError as error:
            assert f"pip install {package}" in str(error)
    done = subprocess.run([sys.executable, "-c", "import usm; help(usm); help('usm.memory'); help('usm.nrt')"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert usm.__version__ == importlib.metadata.version("usm")


def check_command():
    assert command("--version").split()[-1] == command("--version", module=True).split()[-1] == usm.__version__
    assert json.loads(command("devices", "--json"))["backends"]
    assert "host" in command("demo", module=True)
    for shell in ("bash", "zsh", "fish"):
        assert command("completions", shell) == command("completions", shell, module=True)
        assert all(word in command("completions", shell) for word in ("_usm" if shell != "fish" else "usm", "plan", "time-limit")), shell
    assert "_usm" in command("completions", "bash")
    text = "{'data': (4096, False), 'shape': (2, 3), 'typestr': '<f4', 'version': 3}\n"
    assert json.loads(command("interface", input=text))["ok"]
    assert json.loads(command("run", "saxpy", "--device", "host", "--json"))["ok"]
    command("plan", FOLDER / "nothing.json", status=2)


def check_a_plan():
    plan = usm.plan(GRAPH)
    plan.verify()
    assert plan.optimal and plan.names == ["first", "</script><b>", "last"]
    xml.etree.ElementTree.fromstring(plan._repr_svg_())
    plan.to_html(FOLDER / "plan.html")
    page = (FOLDER / "plan.html").read_text()
    assert "</script><b>" not in page and "https://" not in page
    arena = plan.arena("host")
    arena["first"].fill(3)
    import numpy

    assert (numpy.asarray(arena["first"]) == 3).all() and len(arena["first"]) == 1024
    (FOLDER / "graph.json").write_text(json.dumps(GRAPH))
    document = json.loads(command("plan", FOLDER / "graph.json", "--json", "--html", FOLDER / "by_command.html", "--svg", FOLDER / "x.svg"))
    assert document["peak"] == plan.peak and (FOLDER / "by_command.html").exists() and (FOLDER / "x.svg").exists()
    assert json.loads(command("plan", "-", "--json", input=json.dumps(GRAPH)))["peak"] == plan.peak


# 17 buffers that need 11 bytes, while at most 10 are live: 40 such groups below one buffer that
# lives at all times. No bound is as high as the best plan, so the search does not end.
GROUP = [(0, 1, 3), (0, 1, 2), (1, 2, 4), (1, 2, 1), (2, 3, 1), (0, 3, 4), (3, 4, 3), (0, 4, 1), (4, 5, 2), (4, 5, 2), (2, 5, 4)]
GROUP += [(3, 6, 2), (5, 6, 2), (5, 7, 5), (5, 7, 1), (6, 7, 1), (6, 7, 3)]
HARD = [(7 * group + lower, 7 * group + upper, size) for group in range(40) for lower, upper, size in GROUP] + [(0, 280, 3)]


def check_a_table_from_a_pipe_and_its_capacity():
    """`plan -` with a capacity that has a unit: decided, in both forms of the command."""
    table = "id,lower,upper,size\n" + "".join(f"{id},{id},{id + 2},{256 << 20}\n" for id in range(8))
    for module in (False, True):
        document = json.loads(command("plan", "-", "--capacity", "1GiB", "--json", module=module, input=table))
        assert (document["feasible"], document["peak"]) == (True, 512 << 20)
        document = json.loads(command("plan", "-", "--capacity", "511MiB", "--json", module=module, status=1, input=table))
        assert (document["feasible"], document["peak"], document["lower_bound"]) == (False, None, 512 << 20)
        done = subprocess.run([sys.executable, "-m", "usm", "plan", "-", "--capacity", "1 bag"], input=table, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "1 bag" in done.stderr and "Traceback" not in done.stderr, done


def check_that_ctrl_c_in_a_search_prints_the_best_plan_so_far():
    (FOLDER / "hard.csv").write_text("id,lower,upper,size\n" + "".join(f"{id},{a},{b},{size}\n" for id, (a, b, size) in enumerate(HARD)))
    for program in ([pathlib.Path(sys.executable).with_name("usm")], [sys.executable, "-m", "usm"]):
        arguments = ["plan", FOLDER / "hard.csv", "--strategy", "search", "--time-limit", "120", "--json", "--output", FOLDER / "hard.plan"]
        # A signal before the search ends the command as usual, so a slow machine needs more time.
        for delay in (1.5, 6, 25):
            search = subprocess.Popen(
                [*program, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                # A shell's background jobs ignore the signal, and pass that on.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            time.sleep(delay)
            search.send_signal(signal.SIGINT)
            text, said = search.communicate(timeout=100)
            if search.returncode == 130 and text:
                break
        assert search.returncode == 130, (search.returncode, text, said)
        document = json.loads(text)
        assert (document["buffers"], document["feasible"], document["stopped"]) == (681, True, "interrupt"), document
        assert len((FOLDER / "hard.plan").read_text().splitlines()) == 682


def field(number, value):
    """A field of a protobuf message: a number, text, or a message as bytes."""
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value):
    more = value >> 7
    return bytes([value & 127 | (128 if more else 0)]) + (varint(more) if more else b"")


def model(layers, stated):
    """An ONNX file of layers of 4,096 float32 each; `stated`: with the shapes between them."""

    def of(name):
        shape = b"".join(field(1, field(1, extent)) for extent in (1, 4096))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))

    nodes = b"".join(field(1, field(1, f"t{at}") + field(2, f"t{at + 1}") + field(3, f"layer{at}") + field(4, "Softmax")) for at in range(layers))
    known = b"".join(field(13, of(f"t{at}")) for at in range(1, layers)) if stated else b""
    graph = nodes + field(2, "layers") + field(11, of("t0")) + field(12, of(f"t{layers}")) + known
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def check_models():
    """One that states its shapes, and one whose shapes are inferred."""
    plan = usm.plan(model(5, stated=True), views=False)
    plan.verify()
    assert plan.peak == 2 * 16384 and plan.names == ["t1", "t2", "t3", "t4", "t5"], (plan.peak, plan.names)
    (FOLDER / "model.onnx").write_bytes(model(5, stated=True))
    assert json.loads(command("plan", FOLDER / "model.onnx", "--json", "--no-views"))["peak"] == plan.peak
    (FOLDER / "bare.onnx").write_bytes(model(5, stated=False))
    assert usm.plan(FOLDER / "bare.onnx", views=False).peak == plan.peak
    assert json.loads(command("plan", FOLDER / "bare.onnx", "--json", "--no-views"))["peak"] == plan.peak


def arrays():
    for kind in ("host", "shared", "device"):
        yield usm.full((2, 3), 7, "<i4", kind=kind, device="host")


def turned(array):
    assert array.tolist() == [[7] * 3] * 2
    return array.T


def check_pickles_in_a_second_process():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for array in arrays():
            back = pool.apply(turned, (array,))
            assert (back.shape, back.kind, back.tolist()) == ((3, 2), array.kind, [[7] * 2] * 3)
    (FOLDER / "arrays").write_bytes(pickle.dumps(list(arrays()), 4))
    code = "import pickle, sys; found = pickle.load(open(sys.argv[1], 'rb')); assert [it.kind for it in found] == ['host', 'shared', 'device'] and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, FOLDER / "arrays"], check=True, timeout=60)


def check_numpy_shares():
    import numpy

    theirs = numpy.arange(6, dtype="f4").reshape(2, 3)
    ours = usm.asarray(theirs)
    theirs[1, 2] = 9
    assert ours.tolist()[1][2] == 9 and numpy.asarray(ours).__array_interface__["data"][0] == ours.pointer
    assert numpy.from_dlpack(ours).base is not None and usm.from_dlpack(theirs).pointer == ours.pointer
    try:
        numpy.asarray(usm.zeros(3, kind="device", device="host"))
    except usm.AccessError as error:
        assert "usm.to_numpy" in str(error)
    else:
        raise AssertionError("device memory became an array of NumPy")


def check_a_leak_hunt():
    usm.history(100, lines=True)
    with usm.track() as block:
        kept = [usm.zeros(1000, "u1", device="host") for _ in range(3)]
    assert (block.live, block.allocations) == (3000, 3)
    [record] = [it for it in usm.history()["host:host:0"] if it["operation"] == "allocate"][-1:]
    assert record["lines"][0][0] == __file__ and record["queue"] is not None
    usm.snapshot().dump(FOLDER / "memory.pickle")
    usm.snapshot().trace(FOLDER / "memory.json")
    code = "import pickle, sys; assert any(b['size'] == 1000 for s in pickle.load(open(sys.argv[1], 'rb'))['segments'] for b in s['blocks'])"
    subprocess.run([sys.executable, "-c", code, FOLDER / "memory.pickle"], check=True, timeout=60)
    assert json.loads((FOLDER / "memory.json").read_text())["traceEvents"]
    xml.etree.ElementTree.fromstring(usm.snapshot()._repr_svg_())
    usm.history(0, lines=False)
    del kept
    usm.nrt.track()
    held = usm.nrt.MemInfo.allocate(1000)
    assert [it.size for it in usm.nrt.leaks()] == [1000]
    usm.nrt.track(False)
    del held


def check_that_cycles_leave_nothing():
    """Allocations, exports, imports and pickles: no block stays, and the process does not grow."""
    import numpy

    def cycle(count):
        for _ in range(count):
            array = usm.zeros(16, device="host")
            memoryview(array).release()
            back = usm.asarray(numpy.asarray(array))
            again = pickle.loads(pickle.dumps(back, 5))
            usm.zeros(16, kind="device", device="host")
            del array, back, again

    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")

    cycle(2000)
    live, before = usm.stats()["host:host:0"]["sum"]["live"], resident()
    cycle(20_000)
    grown = resident() - before
    assert usm.stats()["host:host:0"]["sum"]["live"] == live and grown < 256 << 10, grown
    return f"{grown} bytes after 20,000 cycles"


def check_kernels():
    array = usm.asarray([1.0, 2.0, 3.0], dtype="float32", device="host")
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    from bare_kernel import double

    double[3](array)
    assert array.tolist() == [2.0, 4.0, 6.0]


def check_notebook_texts():
    assert "<table>" in usm.devices()._repr_html_() and "<pre>" in usm.zeros(3, device="host")._repr_html_()


if __name__ == "__main__":
    for name, check in [*globals().items()]:
        if name.startswith("check"):
            begun = time.perf_counter()
            remark = check()
            print(f"{name[6:].replace('_', ' '):40} {time.perf_counter() - begun:6.2f} s  {remark or ''}", flush=True)
