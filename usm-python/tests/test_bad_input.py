"""One case for each kind of bad input: an exception that names the fault, never a crash."""

import ctypes
import html.parser
import pickle
import sys

import pytest

import usm
import usm.memory


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("queue", lambda: usm.empty(3, queue=1.5)),
        ("device", lambda: usm.empty(3, device=[])),
        ("shape", lambda: usm.empty({}, device="host")),
        ("dtype", lambda: usm.empty(3, object(), device="host")),
        ("kind", lambda: usm.empty(3, kind=1, device="host")),
    ],
)
def test_a_wrong_type_is_an_error_that_names_argument_and_right_types(argument, call):
    with pytest.raises(TypeError, match=f"^{argument}: .* does not fit; .* does"):
        call()


def test_an_odd_alignment_is_a_request_error_not_a_memory_error():
    for make in (lambda: usm.empty(3, device="host", alignment=3), lambda: usm.memory.MemoryUSMHost(8, alignment=3, queue="host")):
        with pytest.raises(usm.RequestError, match="alignment 3") as caught:
            make()
        assert not isinstance(caught.value, MemoryError)


def test_a_cut_or_altered_pickle_is_refused():
    array = usm.full((3, 4), 7, "<i4", device="host")
    for protocol in (2, 4, 5):
        data = pickle.dumps(array, protocol)
        for end in range(len(data)):
            with pytest.raises(Exception):  # noqa: B017 -- pickle's own, or one of ours
                pickle.loads(data[:end])
        for place in range(len(data)):
            altered = bytearray(data)
            altered[place] ^= 0x15
            try:
                found = pickle.loads(bytes(altered))
            except Exception:
                continue
            if isinstance(found, usm.Array):
                assert found.nbytes <= 48 and len(found.tobytes()) == found.nbytes


def test_malformed_handles_are_refused():
    for handle in (b"", b"usm", bytes(64), bytes(10_000), bytes(range(256))):
        with pytest.raises((usm.InterfaceError, usm.DeviceError)):
            usm.open_ipc(handle)
    with pytest.raises(TypeError):
        usm.open_ipc("text")


GOOD = {"shape": (4,), "typestr": "<i4", "version": 3, "strides": None}


class Memory:
    def __init__(self):
        self.bytes = (ctypes.c_int32 * 4)(1, 2, 3, 4)
        self.address = ctypes.addressof(self.bytes)


def test_a_dictionary_is_read_once_even_if_it_changes():
    memory = Memory()
    reads = []

    class Changing:
        @property
        def __array_interface__(self):
            reads.append(1)
            return {**GOOD, "data": (memory.address, False), "shape": (4,) if len(reads) == 1 else (1 << 40,)}

    assert usm.asarray(Changing()).tolist() == [1, 2, 3, 4] and len(reads) == 1


def test_an_index_that_raises_or_reenters_is_harmless():
    memory = Memory()

    class Raises:
        def __index__(self):
            raise ZeroDivisionError("no number")

    class Enters:
        def __index__(self):
            usm.asarray([1, 2]).tolist()
            fields["shape"] = (1 << 50,)
            return 4

    fields = {}
    holder = type("Holder", (), {"__array_interface__": fields})()
    fields.update(GOOD, data=(memory.address, False), shape=(Raises(),))
    with pytest.raises((usm.InterfaceError, ZeroDivisionError, TypeError)):
        usm.asarray(holder)
    fields.update(shape=(Enters(),))
    try:
        assert usm.asarray(holder).shape == (4,)
    except (usm.InterfaceError, TypeError):
        pass
    array = usm.zeros(4, device="host")
    with pytest.raises((ZeroDivisionError, TypeError)):
        array[Raises()]
    with pytest.raises((ZeroDivisionError, TypeError)):
        usm.zeros((2, Raises()), device="host")


def test_a_used_capsule_is_refused():
    class Once:
        def __init__(self):
            self.capsule = usm.zeros(4, device="host").__dlpack__()

        def __dlpack__(self, **_):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    once = Once()
    assert usm.from_dlpack(once).tolist() == [0.0] * 4
    with pytest.raises(usm.InterfaceError, match="neither a fresh dltensor"):
        usm.from_dlpack(once)


def test_members_nested_ten_thousand_deep_are_refused():
    memory = Memory()
    descr = "<i4"
    for _ in range(10_000):
        descr = [("a", descr)]
    fields = {**GOOD, "data": (memory.address, False), "typestr": "|V4", "descr": descr}
    with pytest.raises((usm.InterfaceError, RecursionError)):
        usm.asarray(type("Deep", (), {"__array_interface__": fields})())
    # Released piece by piece, so that the test does not exercise Python's own release of such a
    # list.
    while isinstance(descr, list):
        descr = descr.pop()[1]


HOSTILE = "</script></title><img src=x onerror=alert(1)><b>&\""


class Tags(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


def test_a_name_with_markup_is_text_in_every_picture(tmp_path):
    graph = {"tensors": [{"id": 0, "size": 64, "name": HOSTILE}], "ops": [{"name": HOSTILE, "inputs": [], "outputs": [0]}], "outputs": [0]}
    plan = usm.plan(graph)
    plan.to_html(tmp_path / "x.html")
    for page in ((tmp_path / "x.html").read_text(), plan._repr_svg_()):
        assert not {"img", "b"} & set(Tags(page).tags)
    # A file's name appears in a traceback, and so in a snapshot.
    usm.history(10, lines=True)
    try:
        names = {"usm": usm}
        exec(compile("held = usm.zeros(3, device='host')", HOSTILE, "exec"), names)
        asked = [it for it in usm.history()["host:host:0"] if it["operation"] == "allocate"]
        assert asked[-1]["lines"][0][0] == HOSTILE
        seen = usm.snapshot()
        seen.trace(tmp_path / "x.json")
        seen.dump(tmp_path / "x.pickle")
        assert not {"img", "b"} & set(Tags(seen._repr_svg_()).tags) and HOSTILE in str(pickle.loads((tmp_path / "x.pickle").read_bytes()))
    finally:
        usm.history(0, lines=False)


def test_every_name_gives_well_formed_xml():
    """A line for all the characters that XML has not, and for some that it has."""
    import xml.etree.ElementTree as tree

    name = "".join(map(chr, [*range(32), 0x7F, 0x85, 0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF])) + HOSTILE
    graph = {"tensors": [{"id": 0, "size": 64, "name": name}], "ops": [{"name": name, "inputs": [], "outputs": [0]}], "outputs": [0]}
    picture = usm.plan(graph)._repr_svg_()
    assert "\ufffd" in "".join(tree.fromstring(picture).itertext())
    assert not {"\ufffe", "\uffff"} & set(picture)


def test_a_size_beyond_any_memory_is_refused():
    for extent in (1 << 70, sys.maxsize, 1 << 60):
        with pytest.raises((usm.RequestError, usm.AllocationError)):
            usm.empty(extent, device="host")


@pytest.mark.parametrize("shape", [-1, (3, -1), [sys.maxsize] * 3, (1,) * 65])
def test_a_shape_that_no_array_has_is_a_request_error_that_names_it(shape):
    with pytest.raises(usm.RequestError, match="^shape") as caught:
        usm.empty(shape, device="host")
    assert not isinstance(caught.value, usm.InterfaceError)


CONTROLS = "a\x1b[2J\x9b31m\u202eb\nINJECTED\r\x7f\u2028\u2066c\0"


def controls(text):
    return [letter for letter in text if (ord(letter) < 32 and letter != "\n") or ord(letter) in (0x7F, 0x9B, 0x202E, 0x2028, 0x2066)]


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda graph: usm.plan({**graph, CONTROLS: 1}),
        lambda graph: usm.plan(CONTROLS),
        lambda graph: usm.plan(graph, dims={CONTROLS: "x"}),
        lambda graph: usm.plan(graph, dims={CONTROLS: range(1, 1)}),
        lambda graph: usm.plan(graph, queue=CONTROLS),
        lambda graph: usm.plan(graph).arena("host").array(CONTROLS, (100,)),
        lambda graph: usm.plan(graph).arena(CONTROLS),
        lambda graph: usm.Queue(CONTROLS),
        lambda graph: usm.zeros(3, CONTROLS, device="host"),
        lambda graph: usm.zeros(3, kind=CONTROLS, device="host"),
        lambda graph: usm.zeros(3, device=CONTROLS),
        lambda graph: usm.open_ipc(CONTROLS.encode(), device="host"),
        lambda graph: usm.Module(CONTROLS, format=CONTROLS, device="host"),
        lambda graph: usm.asarray(type(CONTROLS.replace("\0", ""), (), {"__array_interface__": {CONTROLS: 1, "typestr": CONTROLS}})()),
        lambda graph: usm.asarray(type("One", (), {"__array_interface__": {"shape": (1,), "typestr": "|V4", "version": 3, "data": (64, False), "descr": [(CONTROLS, "<i3")]}})()),
        lambda graph: usm.empty(type(CONTROLS.replace("\0", ""), (), {})(), device="host"),
    ],
)
def test_text_in_errors_and_warnings_cannot_control_a_terminal(call):
    graph = {
        "tensors": [{"id": 0, "size": 64, "name": CONTROLS}],
        "ops": [{"name": CONTROLS, "outputs": [0]}],
        "outputs": [0],
    }
    with pytest.raises(Exception) as caught:
        call(graph)
    said = str(caught.value)
    assert not controls(said) and "\nINJECTED" not in said, ascii(said)
