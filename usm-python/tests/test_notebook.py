"""Output in notebooks: devices and arrays as tables, and the progress of a search."""

import html.parser
import re
import sys
import types
from random import Random

import pytest

import usm


class Tags(html.parser.HTMLParser):
    """Tags and texts of a page; every tag that is opened is closed in its order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert attrs == []
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_device_is_a_table(queue):
    page = queue.device._repr_html_()
    assert set(Tags(page).tags) == {"table", "tr", "th", "td"}
    rows = dict(re.findall("<th>(.*?)</th><td>(.*?)</td>", page))
    assert rows["selector"] == queue.device.selector and rows["name"] == queue.device.name
    assert rows["largest work-group"] == str(queue.device.max_work_group_size) and ("free memory" in rows) == (queue.device.free_memory is not None)


def test_the_list_of_devices_is_a_table_and_a_list():
    found = usm.devices()
    assert isinstance(found, list) and found == list(found) and found[-1].backend == "host"
    seen = Tags(found._repr_html_())
    assert seen.tags.count("tr") == len(found) + 1 and set(seen.tags) == {"table", "tr", "th", "td"}
    assert all(it.selector in seen.texts and it.name in seen.texts for it in found)
    assert Tags(type(found)()._repr_html_()).tags.count("tr") == 1


def test_an_array_is_a_table_and_its_values(queue, kind):
    array = usm.empty((2, 3), "<i4", kind=kind, queue=queue)
    array.fill(7)
    seen = Tags(array._repr_html_())
    assert seen.texts == [
        "shape", "(2, 3)", "dtype", "<i4", "kind", kind, "device", queue.device.selector, "size", "24 bytes",
        "[[7, 7, 7],\n [7, 7, 7]]",
    ]


def test_each_object_has_all_its_forms_in_one():
    plan, array = usm.plan([(0, 3, 4096), (1, 2, 256)]), usm.zeros(3, device="host")
    graph = {"tensors": [{"id": 0, "size": 64}], "ops": [{"inputs": [], "outputs": [0]}], "outputs": [0]}
    curve = usm.plan(graph).recompute_curve()
    tables, pictures = (array.queue.device, usm.devices(), array), (plan, curve, usm.snapshot())
    for its, form, media in [(tables, "_repr_html_", "text/html"), (pictures, "_repr_svg_", "image/svg+xml")]:
        for it in its:
            # As IPython calls it.
            forms = it._repr_mimebundle_(include=None, exclude=None)
            assert forms == {"text/plain": repr(it), media: getattr(it, form)()}, it


def test_values_are_text_in_a_page():
    text = b"<script>alert(1)</script>"
    array = usm.asarray(memoryview(text).cast("c"), device="host")
    seen = Tags(array._repr_html_())
    assert "script" not in seen.tags and set(seen.tags) == {"table", "tr", "th", "td", "pre"}


def test_free_memory_shrinks_by_what_is_allocated_and_is_part_of_all(queue):
    device = queue.device
    free = device.free_memory
    assert free is None or 0 < free <= device.global_mem_size * 1.01
    if device.backend == "host":
        assert isinstance(free, int)
        line = next(it for it in open("/proc/meminfo") if it.startswith("MemAvailable:"))
        assert abs(int(line.split()[1]) * 1024 - device.free_memory) < 1 << 30


@pytest.fixture
def notebook(monkeypatch):
    """A notebook whose outputs are a list: for each place, a list of the shown values."""
    outputs = []

    class Handle:
        def __init__(self, page):
            self.pages = [page]
            outputs.append(self.pages)

        def update(self, page):
            self.pages.append(page)

    display = types.ModuleType("IPython.display")
    display.HTML = lambda text: text
    display.display = lambda page, display_id: Handle(page)
    ipython = types.ModuleType("IPython")
    ipython.get_ipython, ipython.display = (lambda: types.SimpleNamespace(kernel=None)), display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return outputs


def hard(count):
    """So many buffers of odd sizes that a search does not end at once."""
    random, rows = Random(1), []
    for _ in range(count):
        lower = random.randrange(255)
        rows.append((lower, lower + 1 + random.randrange(63), random.randrange(1, 10**6)))
    return rows


def test_a_search_shows_its_progress_and_removes_it(notebook):
    plan = usm.plan(hard(1000), strategy="search", time_limit=2)
    assert plan.feasible
    [pages] = notebook
    assert pages[-1] == "" and len(pages) > 1 and all("searching for " in page for page in pages[:-1])


def test_a_short_plan_shows_nothing(notebook):
    assert usm.plan([(0, 3, 4096), (1, 2, 256)]).peak == 4352 and notebook == []


def test_a_notebook_without_progress_still_gets_the_plan(notebook, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("no output here")

    monkeypatch.setattr(sys.modules["IPython.display"], "display", refuse)
    assert usm.plan(hard(1000), strategy="search", time_limit=1).feasible
