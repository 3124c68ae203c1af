"""A plan that is seen and used: pictures, the page, and the arrays of its arena."""

import gc
import html.parser
import pathlib
import sys
import types
import webbrowser
import weakref
import xml.etree.ElementTree

import pytest

import usm

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'\n"
GRAPH = {
    "tensors": [{"id": 0, "size": 4096, "name": "first"}, {"id": 7, "size": 512, "name": HOSTILE}, {"id": 9, "size": 4096}],
    "ops": [
        {"name": "make", "inputs": [], "outputs": [0]},
        {"name": "turn " + HOSTILE, "inputs": [0], "outputs": [7]},
        {"name": "end", "inputs": [7], "outputs": [9]},
    ],
    "outputs": [9],
}


@pytest.fixture
def plan():
    return usm.plan(GRAPH)


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def harmless(page):
    tags = Tags(page).seen
    assert all(not name.startswith("on") for _, attributes in tags for name in attributes)
    assert "img" not in {tag for tag, _ in tags} and not any("src" in attributes for tag, attributes in tags if tag == "script")


def test_notebooks_get_a_picture(plan):
    picture = plan._repr_svg_()
    tree = xml.etree.ElementTree.fromstring(picture)
    titles = [it.text for it in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("live [" in title for title in titles) == 3 and any("name first" in title for title in titles)
    assert any("onerror" in title for title in titles) and "<img" not in picture


def test_the_page_is_a_file_without_a_network(plan, tmp_path):
    for path in (tmp_path / "plan.html", str(tmp_path / "other.html")):
        assert plan.to_html(path) is None
        page = pathlib.Path(path).read_text()
        harmless(page)
        assert "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page and '"first"' in page
    with pytest.raises(FileNotFoundError) as caught:
        plan.to_html(tmp_path / "no" / "such" / "folder.html")
    assert caught.value.filename == (tmp_path / "no" / "such" / "folder.html")
    with pytest.raises(TypeError):
        plan.to_html(5)


def test_show_opens_a_browser(plan, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    path = pathlib.Path(plan.show())
    assert opened == [path.as_uri()]
    harmless(path.read_text())
    path.unlink()


def test_show_stays_within_a_notebook(plan, monkeypatch):
    shown = []
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = (lambda text: text), shown.append
    shell = types.SimpleNamespace(kernel=None)
    ipython = types.ModuleType("IPython")
    ipython.get_ipython, ipython.display = (lambda: shell), display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("a browser was opened"))
    assert plan.show() is None
    [(tag, attributes)] = Tags(shown[0]).seen
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    harmless(attributes["srcdoc"])


def test_a_plan_that_places_nothing_has_no_picture(tmp_path):
    plan = usm.plan([(0, 2, 100), (1, 3, 100)], capacity=150)
    assert not plan.feasible
    for use in (plan._repr_svg_, lambda: plan.to_svg(tmp_path / "plan.html"), lambda: plan.to_html(tmp_path / "plan.html"), plan.show, lambda: plan.arena("host")):
        with pytest.raises(usm.RequestError, match="nothing was placed"):
            use()
    assert not (tmp_path / "plan.html").exists()


def test_the_arena_hands_out_arrays_by_name(plan, queue, kind):
    with usm.track() as tracked:
        arena = plan.arena(queue, kind=kind)
    assert (tracked.live, tracked.allocations) == (plan.peak, 1) and arena.nbytes == plan.peak and arena.queue.context == queue.context
    assert list(arena) == arena.keys() == ["first", HOSTILE, 9] and len(arena) == 3
    assert "first" in arena and 0 in arena and 7 in arena and "second" not in arena and 1 not in arena and None not in arena
    base = arena[plan.ids[plan.offsets.tolist().index(0)]].pointer
    for key, id, offset in zip(arena.keys(), plan.ids, plan.offsets):
        array = arena[key]
        assert (array.pointer, array.pointer) == (base + offset, arena[id].pointer)
        assert array.dtype == "u1" and array.kind == kind and array.size == {0: 4096, 7: 512, 9: 4096}[id]
    arena["first"].fill(1)
    arena[HOSTILE].fill(2)
    assert set(arena["first"].tolist()) == {1} and set(arena[7].tolist()) == {2}
    shaped = arena.array("first", (32, 32), "f4")
    shaped.fill(1.5)
    assert arena["first"].tobytes() == shaped.tobytes() and sys.getsizeof(shaped) < 512
    for key in ("second", 1, -1, None, 1 << 70):
        with pytest.raises(KeyError):
            arena[key]
    with pytest.raises(usm.RequestError, match="tensor 0: 4100 bytes exceed its 4096"):
        arena.array(0, 1025, "f4")
    # An array keeps the memory alive.
    gone = weakref.ref(arena)
    del arena
    gc.collect()
    assert gone() is None and set(shaped.tolist()[0]) == {1.5}


def test_tensors_with_duplicate_names_have_number_keys():
    twice = {"tensors": [{"id": id, "size": 64, "name": "same"} for id in (3, 4)], "ops": [{"inputs": [], "outputs": [3, 4]}], "outputs": [3, 4]}
    assert usm.plan(twice).arena("host").keys() == [3, 4]
    table = usm.plan([(0, 1, 10), (0, 2, 0)])
    assert table.arena("host").keys() == [0, 1] and table.arena("host")[1].size == 0


def chain(**more):
    """Four tensors of 1000 bytes, each read for the next one."""
    ops = [{"outputs": [0]}] + [{"inputs": [i], "outputs": [i + 1]} for i in range(3)]
    return {"tensors": [{"id": i, "size": 1000} for i in range(4)], "ops": ops, "outputs": [3], **more}


def test_an_arena_has_a_block_in_each_memory():
    memories = [{"name": "sram", "capacity": 1000, "cost": 1}, {"name": "dram", "capacity": 5000, "cost": 2}]
    plan = usm.plan(chain(memories=memories))
    assert plan.memories == ["sram", "dram", "sram", "dram"]
    other = usm.Queue("host")
    with usm.track() as tracked:
        arena = plan.arena({"sram": "host", "dram": other}, kind={"sram": "device"})
    assert tracked.live == arena.nbytes == plan.peak == 2000 and tracked.allocations == 2
    assert [arena[i].kind for i in range(4)] == ["device", "shared", "device", "shared"]
    assert arena[1].queue == other and arena[0].queue == arena.queue
    assert arena[0].pointer == arena[2].pointer != arena[1].pointer == arena[3].pointer
    assert "device memory on host:host:0, shared memory on host:host:0" in repr(arena)
    assert plan.arena("host")[1].kind == "shared"
    for refused, words in (
        (lambda: plan.arena({"flash": "host"}), "queue: \"flash\" is none of the plan's memories: sram, dram"),
        (lambda: plan.arena("host", kind={"sarm": "host"}), "kind: \"sarm\" is none"),
    ):
        with pytest.raises(usm.RequestError, match=words):
            refused()


def test_an_arena_has_what_was_spilled_in_host_memory():
    plan = usm.plan(chain(), device_memory=1000)
    assert plan.spilled == [1, 3]
    arena = plan.arena("host", kind="device")
    assert [arena[i].kind for i in range(4)] == ["device", "host", "device", "host"]
    assert plan.arena("host", kind={"host": "shared"})[1].kind == "shared"


def test_an_arena_has_no_block_above_the_chunk_of_its_memory():
    plan = usm.plan(chain(memories=[{"name": "small", "capacity": 4096, "chunk": 1024}]))
    with usm.track() as tracked:
        arena = plan.arena("host")
    assert tracked.allocations == 2 and tracked.live <= 2048
    for i in range(4):
        arena[i].fill(i)
    assert set(arena[3].tolist()) == {3} and set(arena[2].tolist()) == {2}


def test_a_picture_is_written_to_a_file(plan, tmp_path):
    plan.to_svg(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text() == plan._repr_svg_()
    with pytest.raises(FileNotFoundError):
        plan.to_svg(tmp_path / "none" / "plan.svg")
