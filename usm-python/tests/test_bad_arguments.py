"""Every public function and method, with each of its arguments wrong: the error names it.

The calls are made from the signatures of the module, so a new member is in the test at once.
"""

import inspect
import subprocess
import sys

import pytest

import usm
import usm.memory
import usm.nrt
from test_placement import handle


class Wrong:
    """Fits no argument."""

    def __repr__(self):
        return "Wrong()"


def array():
    return usm.zeros((2, 3), "<f4", device="host")


GRAPH = {"tensors": [{"id": 0, "size": 64, "name": "first"}], "ops": [{"name": "make", "inputs": [], "outputs": [0]}], "outputs": [0]}

# A value that fits, by the argument's name; functions are called.
FITS = {
    "address": lambda: usm.nrt.MemInfo.allocate(8).address,
    "advice": "reset",
    "array": array,
    "code": "__kernel void nothing() {}",
    "device": "host",
    "dst": array,
    "dimension": "n",
    "dtype": "f4",
    "fill_value": 1,
    "handle": handle(),
    "input": lambda: GRAPH,
    "key": "first",
    "obj": array,
    "on": True,
    "other": 8,
    "path": "/nowhere/file",
    "point": 0,
    "peer": lambda: usm.Context("host"),
    "pointer": 4096,
    "records": 0,
    "selector": "host",
    "shape": 3,
    "size": 8,
    "src": array,
    "sycl_usm_ary": array,
    "value": 1,
}
# An instance of each class whose methods are called.
INSTANCES = {
    "Arena": lambda: usm.plan(GRAPH).arena("host"),
    "Array": array,
    "Context": lambda: usm.Context("host"),
    "Event": lambda: usm.Queue("host").barrier(),
    "MemInfo": lambda: usm.nrt.MemInfo.allocate(8),
    "MemoryUSMHost": lambda: usm.memory.MemoryUSMHost(8, queue="host"),
    "Plan": lambda: usm.plan(GRAPH),
    "Queue": lambda: usm.Queue("host"),
    "RecomputeCurve": lambda: usm.plan(GRAPH).recompute_curve(),
    "Snapshot": usm.snapshot,
}
# Kernels have a table of their own (test_kernel_refusals.py).
KERNELS = {"Kernel", "KernelFunction", "KernelLaunch", "Module", "launch"}
# The message may name the class of these instead.
OPERANDS = {"obj", "other", "input", "key", "array", "sycl_usm_ary", "syclobj", "path", "value"}


def parameters(function):
    try:
        return [it for it in inspect.signature(function).parameters.values() if it.name != "self"]
    except ValueError:
        return []


def public():
    """Name, function and parameter of each argument of the package."""
    for module, prefix in ((usm, ""), (usm.memory, "memory."), (usm.nrt, "nrt.")):
        for name in module.__all__:
            found = getattr(module, name)
            if name in KERNELS or inspect.ismodule(found) or (inspect.isclass(found) and issubclass(found, (BaseException, tuple))):
                continue
            if not inspect.isclass(found):
                if callable(found):
                    yield from ((f"{prefix}{name}", lambda found=found: found, it) for it in parameters(found))
                continue
            yield from ((f"{prefix}{name}", lambda found=found: found, it) for it in parameters(found))
            if name not in INSTANCES:
                continue
            for member in dir(found):
                method = inspect.getattr_static(found, member)
                if member.startswith("_") or inspect.isdatadescriptor(method) or not callable(getattr(found, member)):
                    continue
                bound = lambda name=name, member=member: getattr(INSTANCES[name](), member)  # noqa: E731
                yield from ((f"{name}.{member}", bound, it) for it in parameters(getattr(found, member)))


CASES = {f"{name}({parameter.name})": (name, function, parameter) for name, function, parameter in public()}
NUMBERS = {"address", "alignment", "budget", "bytes_per_cost", "capacity", "keep", "point", "pointer", "records", "size", "threads", "time_limit", "timeout"}


def call(function, parameter, value):
    """Calls with one argument as given and the other ones that are needed as they fit."""
    named, positional, bound = {}, [], function()
    for it in parameters(bound):
        if it.kind is it.VAR_KEYWORD:
            named.update({"n": value} if it.name == parameter.name else {})
        elif it.kind is it.VAR_POSITIONAL:
            positional.append(value if it.name == parameter.name else FITS[it.name])
        elif it.name == parameter.name or it.default is it.empty:
            given = value if it.name == parameter.name else FITS[it.name]
            given = given() if callable(given) and given is not value else given
            if it.kind is it.POSITIONAL_ONLY:
                positional.append(given)
            else:
                named[it.name] = given
    return bound(*positional, **named)


def words(error):
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def test_the_whole_surface_is_here():
    assert len(CASES) > 120
    assert {"empty(shape)", "zeros(alignment)", "asarray(copy)", "plan(threads)", "Array.reshape(shape)", "Queue.wait(timeout)"} <= set(CASES)
    assert {"memory.MemoryUSMDevice(queue)", "MemInfo.allocate(size)", "Plan.at(dims)", "Snapshot.dump(path)", "Arena.array(shape)"} <= set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_type_is_refused_by_name(case):
    name, function, parameter = CASES[case]
    # An arena has no array of that name.
    with pytest.raises((TypeError, ValueError, KeyError)) as caught:
        call(function, parameter, Wrong())
    said = words(caught.value)
    operand = parameter.name in OPERANDS and "Wrong" in said
    assert parameter.name in said or operand or (parameter.kind is parameter.VAR_KEYWORD and "n: " in said), said
    if parameter.name in {"queue", "device", "shape", "dtype", "kind"} | NUMBERS:
        assert type(caught.value) is TypeError, said


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][2].name in NUMBERS])
@pytest.mark.parametrize("value", [-1, 1 << 70, 10**5000, -(10**5000)], ids=["-1", "2**70", "10**5000", "-10**5000"])
def test_a_number_outside_of_its_range_is_refused_by_name(case, value):
    name, function, parameter = CASES[case]
    if parameter.name == "address" and value == -1:
        value = -2
    try:
        call(function, parameter, value)
    except (ValueError, usm.AllocationError) as error:
        assert parameter.name in words(error) or isinstance(error, usm.AllocationError), words(error)
        assert len(words(error)) < 500
    else:
        # A wait may be longer than any life; a capacity may be more than is needed.
        assert value > 0, value


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][2].name == "alignment"])
@pytest.mark.parametrize("value", [3, 6, 48, -1, -64, (1 << 40) + 1, -(1 << 40), 1 << 64])
def test_an_alignment_is_a_power_of_two_everywhere(case, value):
    name, function, parameter = CASES[case]
    with pytest.raises(usm.RequestError, match="alignment"):
        call(function, parameter, value)


@pytest.mark.parametrize("case", CASES)
def test_a_lone_surrogate_in_a_text_is_refused_by_name(case):
    name, function, parameter = CASES[case]
    try:
        call(function, parameter, "\ud800")
    except UnicodeError as error:
        pytest.fail(f"{type(error).__name__}: {error}")
    except usm.RequestError as error:
        # The value of a `DType` is called a dtype everywhere.
        names = {parameter.name, "dtype", *(["dims"] if parameter.kind is parameter.VAR_KEYWORD else [])}
        assert "surrogate" not in str(error) or any(name in str(error) for name in names), error
    except Exception:  # noqa: BLE001
        # Refused because it is a text at all.
        return


def test_a_lone_surrogate_is_refused_in_every_text():
    for name, call in {
        "kind": lambda text: usm.zeros(3, kind=text, device="host"),
        "dtype": lambda text: usm.zeros(3, text, device="host"),
        "device": lambda text: usm.zeros(3, device=text),
        "queue": lambda text: usm.plan([(0, 1, 1)], queue=text),
        "strategy": lambda text: usm.plan([(0, 1, 1)], strategy=text),
        "input": usm.plan,
        "dims: a key": lambda text: usm.plan([(0, 1, 1)], dims={text: 1}),
        "dims: n": lambda text: usm.plan([(0, 1, 1)], dims={"n": text}),
        "values: a key": lambda text: usm.plan([(0, 1, 1)], values={text: 1}),
        "values: x": lambda text: usm.plan([(0, 1, 1)], values={"x": text}),
        "path": lambda text: usm.snapshot().dump(text),
        "code": lambda text: usm.Module(text, device="host"),
        "advice": lambda text: usm.zeros(1, device="host").advise(text),
    }.items():
        with pytest.raises(usm.RequestError, match=f"^{name}: a text with a lone surrogate"):
            call("\ud800")


def test_a_wrong_type_is_refused_with_what_fits(tmp_path):
    table = [(0, 1, 1)]
    for call, said in [
        (lambda: usm.Queue(usm.Queue), "device: an object of type type does not fit; a usm.Queue"),
        (lambda: usm.plan(table, dims={5: 5}), r"dims: a key: an object of type int does not fit; a name \(str\) does"),
        (lambda: usm.plan(table, dims=[5]), "dims: an object of type list does not fit; a dict"),
        (lambda: usm.plan(table, values={5: 5}), "values: a key: an object of type int"),
        (lambda: usm.plan(table, strategy=5), "strategy: an object of type int does not fit"),
        (lambda: usm.snapshot().dump(5), r"path: an object of type int does not fit; a path \(str or os.PathLike\) does"),
        (lambda: usm.snapshot().trace(5), "path: an object of type int"),
        (lambda: usm.plan(table).to_html(5), "path: an object of type int"),
        (lambda: usm.Module("text", format=5, device="host"), "format: an object of type int"),
    ]:
        with pytest.raises(TypeError, match=f"^{said}"):
            call()
    # What only NumPy reads, without NumPy.
    program = "import sys; sys.modules['numpy'] = None\nimport usm\ntry: usm.DType([('a', '<f4')])\nexcept TypeError as error: print(error)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.startswith("dtype: only NumPy reads a list of members, and it is not installed; a type string"), said


class Claims:
    """A sequence that claims any length."""

    def __init__(self, length, items):
        self.length, self.items = length, items

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.items[index]


class Tuple(tuple):
    def __len__(self):
        return 1 << 40


@pytest.mark.parametrize("sequence", [Tuple, lambda items: Claims(1 << 40, items), lambda items: Claims(1 << 62, items)])
def test_the_length_of_a_sequence_is_only_a_claim(sequence):
    a = usm.zeros(4, device="host")
    assert usm.zeros(sequence((2, 3)), device="host").shape == (2, 3)
    assert a.reshape(sequence((2, 2))).shape == (2, 2)
    plan = usm.plan([(0, 1, 64)])
    assert plan.arena(usm.Queue("host")).array(0, sequence((4, 4)), "f4").shape == (4, 4)

    @usm.kernel
    def one(a):
        a[usm.get_global_id(0)] = 1

    # Helpers of the package itself.
    here = usm.Device("host")
    window = usm._usm._nrt_window(a, a.pointer, sequence((2, 2)), sequence((16, 8)), "<f8", False)
    assert (window.shape, window.pointer) == ((2, 2), a.pointer)
    assert usm._usm._devices_html(sequence((here,))) == usm._usm._devices_html([here])
    assert usm._usm._run_command(sequence(("usm", "--version"))) == 0

    event = a.queue.copy(a, usm.zeros(4, device="host"))
    one[4, None].submit(a, after=sequence((event,))).wait()
    assert a.tolist() == [1, 1, 1, 1]


def test_an_endless_shape_is_refused():
    class Endless:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return 1

    for call in (lambda: usm.zeros(Endless(), device="host"), lambda: usm.zeros(1, device="host").reshape(Endless())):
        with pytest.raises(usm.Error, match="64"):
            call()


def test_a_shape_of_one_integer_of_any_class():
    class Index:
        def __index__(self):
            return 4

    array = usm.zeros((2, 2), device="host")
    assert array.reshape(Index()).shape == (4,)
    assert array.reshape((Index(),)).shape == (4,)


def test_the_shape_in_a_pickle_is_a_sequence():
    rebuild, state = usm.zeros(4, "u1", device="host").__reduce_ex__(2)[:2]
    content, shape, *others = state
    assert rebuild(content, Claims(1 << 62, shape), *others).shape == (4,)
    with pytest.raises(usm.InterfaceError, match="pickle of an array: shape"):
        rebuild(content, 4, *others)
