"""Structures in kernels, beside NumPy's.

As a program it tries one backend, whose variables the process has.
"""

import linecache
import sys

import numpy as np
import pytest
from conftest import device_of, run_in

import usm

POINT = np.dtype([("x", np.float32), ("y", np.float32)])


@pytest.fixture(params=["host", "opencl", "sycl"])
def device(request):
    return device_of(request.param)


BODY = np.dtype(
    [
        ("at", POINT),
        ("charge", np.complex64),
        ("id", np.uint16),
        ("half", np.float16),
        ("alive", np.bool_),
        ("small", np.int8),
        ("mass", np.float64),
        ("trail", np.int32, (2, 3)),
    ],
    align=True,
)
PARAMETERS = np.dtype([("dt", np.float32), ("n", np.int64), ("turn", np.complex128), ("shift", POINT)], align=True)
SECOND = "id"


@usm.device_func
def moved(p, by):
    p.at.x += by.shift.x * by.dt
    return p.at.x + p.at.y


@usm.kernel
def computed(bodies, others, by):
    i = usm.get_global_id(0)
    p = bodies[i]
    p.mass = moved(p, by) + others[i]["mass"]
    p.at.y -= by["shift"]["y"]
    bodies["charge"][i] *= by.turn
    bodies[i].charge += p.half
    bodies[i][SECOND] += 3
    p.half = p.half * 2 + p.small
    if p.alive and p.id % 2 == 0:
        p.alive = False
        p.at = others[i].at
    for k in range(3):
        p.trail[1, k] += p.trail[0, 2 - k] + by.n
    row = bodies["trail"][i, 0]
    row[0] = -i


def by_numpy(bodies, others, by):
    i = np.arange(len(bodies))
    bodies["at"]["x"] += by["shift"]["x"] * by["dt"]
    bodies["mass"] = (bodies["at"]["x"] + bodies["at"]["y"]) + others["mass"]
    bodies["at"]["y"] -= by["shift"]["y"]
    bodies["charge"] = (bodies["charge"] * by["turn"]).astype("c8") + bodies["half"].astype("f4")
    bodies["id"] += 3
    bodies["half"] = bodies["half"].astype("f4") * 2 + bodies["small"]
    changes = bodies["alive"] & (bodies["id"] % 2 == 0)
    bodies["alive"][changes] = False
    bodies["at"][changes] = others["at"][changes]
    bodies["trail"][:, 1] += bodies["trail"][:, 0, ::-1] + int(by["n"])
    bodies["trail"][:, 0, 0] = -i


def bodies(count, seed=1, dtype=BODY):
    random = np.random.default_rng(seed)
    found = np.frombuffer(random.bytes(count * dtype.itemsize), np.uint8).copy().view(dtype)
    for name in ("mass", "half"):
        found[name] = random.integers(-8, 8, count)
    for name in ("x", "y"):
        found["at"][name] = random.integers(-99, 99, count)
    found["charge"] = random.integers(-9, 9, count) + 1j * random.integers(-9, 9, count)
    found["alive"] = random.integers(0, 2, count)
    found["small"] = random.integers(-9, 9, count)
    return found


def parameters():
    return np.array((0.5, 7, 2 - 1j, (4, 0.25)), PARAMETERS)[()]


def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one.dtype.names)


def check(device):
    queue = usm.Queue(device)
    for step in (1, 2, -1):
        given, others = bodies(96)[::step], bodies(96, 2)[::step]
        wanted = given.copy()
        by_numpy(wanted, others, parameters())
        ours = [usm.asarray(one, queue=queue, copy=True) for one in (given, others)]
        computed[len(given)](*ours, parameters())
        assert same(usm.to_numpy(ours[0]), wanted)
        assert computed.proof[len(given)](*ours, parameters()) in ("proven", "inspected")
        with usm.device_context(device):
            computed[len(given)](given, others, parameters())
        assert same(given, wanted)
    computed.check[48](bodies(48), bodies(48, 2), parameters())


@pytest.mark.parametrize("name", ["builtin", "cc", "opencl", "sycl"])
def test_fields_are_numpys(name, monkeypatch):
    if name in ("builtin", "cc"):
        monkeypatch.setenv("USM_KERNEL_HOST", name)
    check(device_of("host" if name in ("builtin", "cc") else name))


@pytest.mark.parametrize("name", ["cuda_on_host", "level_zero"])
def test_fields_on_other_targets(name, request):
    run_in(name, request, __file__)


@usm.kernel(strict=True)
def stepped(particles, dt):
    i = usm.get_global_id(0)
    p = particles[i]
    p.x += p.y * dt
    particles[i] = p


def test_a_launch_over_structures_is_proven_and_divided(device):
    many = np.zeros(70000, POINT)
    many["x"], many["y"] = np.arange(70000), 2
    array = usm.asarray(many, queue=usm.Queue(device), copy=True)
    stepped[70000](array, 0.5)
    assert np.array_equal(usm.to_numpy(array)["x"], np.arange(70000, dtype="f4") + 1)
    assert stepped.proof[70000](array, 0.5) == "proven"


def test_what_lies_between_fields_stays(device):
    padded = np.dtype({"names": ["x", "y"], "formats": ["f4", "f4"], "offsets": [4, 12], "itemsize": 20})
    words = np.arange(200, dtype=np.uint8)
    given, before = words.view(padded), words.copy().view(np.uint32).reshape(10, 5)
    with usm.device_context(device):
        stepped[10](given, 0)
        stepped[5](given[1::2], 0)
    after = words.view(np.uint32).reshape(10, 5)
    assert np.array_equal(after[:, [0, 2, 3, 4]], before[:, [0, 2, 3, 4]])
    assert np.array_equal(given["x"], before.view(np.float32)[:, 1])


@usm.kernel
def copied(one, two, pairs, flags):
    r, c = usm.get_global_id(0), usm.get_global_id(1)
    two[r, c] = one[c, r]
    pairs[r, c] = (r, two[r, c]["y"] + c)
    if flags[r]:
        two[r, c].x, two[r, c].y = one[c, r].y, one[c, r].x
    row = one[c]
    pairs[r, c].x += row[r].x + one["x"][c, r] + row["y"][r]


@pytest.mark.parametrize("turned", [False, True])
def test_whole_structures_are_set(device, turned):
    one = np.zeros((5, 7), POINT)
    one["x"], one["y"] = np.arange(35).reshape(5, 7), -1.5
    two, pairs = np.zeros((5, 7), POINT).T, np.zeros((2, 7, 10), POINT)[1, :, ::2]
    flags = np.arange(7) % 2 == 0
    if not turned:
        two = two.copy()
    with usm.device_context(device):
        copied[usm.Range(7, 5)](one, two, pairs, flags)
    wanted = one.T.copy()
    assert np.array_equal(pairs["y"], wanted["y"] + np.arange(5))
    assert np.array_equal(pairs["x"], 2 * wanted["x"] + wanted["y"] + np.arange(7)[:, None])
    wanted["x"][flags], wanted["y"][flags] = one.T["y"][flags], one.T["x"][flags]
    assert np.array_equal(two, wanted)


@usm.kernel
def summed(particles, sums, total):
    for k, p in enumerate(particles):
        sums[0] = (sums[0].x + p.x, sums[0].y + k)
    for q in particles[1:3]:
        sums[1].x += q.y
    usm.atomic.add(total["x"], 0, sums[0].x)
    best = particles[0]
    for k in range(1, len(particles)):
        if particles[k].x > best.x:
            best = particles[k]
    sums[2] = best


def test_loops_go_over_structures(device):
    particles = np.zeros(9, POINT)
    particles["x"], particles["y"] = [3, 1, 4, 1, 5, 9, 2, 6, 5], np.arange(9)
    sums, total = np.zeros(3, POINT), np.zeros(1, POINT)
    with usm.device_context(device):
        summed[1](particles, sums, total)
    assert sums.tolist() == [(36, 36), (3, 0), (9, 5)]
    assert total[0]["x"] == 36


@usm.kernel
def neighbours(p):
    i = usm.get_global_id(0)
    p[i].x = p[i + 1].x + p[i].y


def test_messages_name_fields():
    given = np.zeros(9, POINT)
    with pytest.raises(usm.KernelError, match=r"race on element \d of `p.x`"):
        neighbours.check[8](given)
    assert "`p.x`" in neighbours.proof[8](given)
    for run in (stored, stored.check):
        with pytest.raises(usm.KernelError, match=r"index 9 in dimension 0 of `q` is outside; its shape is \[9\]"):
            run[10](np.zeros(10, POINT), given)
    with pytest.raises(usm.KernelError, match="`q.x` and `p.x` share 52 bytes: a checked launch"):
        stored.check[8](given[:8], given[1:])


@usm.kernel
def gathered(p, q, places):
    i = usm.get_global_id(0)
    p[i].x = q[places[i]].x


def test_a_fault_shows_its_line_and_an_index_of_memory_gets_advice():
    with pytest.raises(usm.KernelError) as error:
        neighbours.check[8](np.zeros(9, POINT))
    assert str(error.value).endswith("p[i].x = p[i + 1].x + p[i].y")
    said = gathered.proof[4](np.zeros(4, POINT), np.zeros(4, POINT), np.zeros(4, int))
    assert said.endswith("it may be below 0, whatever the launch: add a condition that it is not")


@usm.kernel
def moves(p, q):
    i = usm.get_global_id(0)
    p[i].x = q[i].y


def test_other_views_of_the_same_structures_are_proven_apart():
    given = np.zeros(9, POINT)
    assert moves.proof[8](given[:8], given[:8]) == "proven"
    assert "share" in stored.proof[8](given[:8], given[1:])


@usm.kernel
def stored(p, q):
    i = usm.get_global_id(0)
    p[i].x = q[i].x


@usm.kernel
def named(p):
    i = usm.get_global_id(0)
    p[i]["a.b"]["x"] = 1
    p[i]["a"]["b"]["x"] = 2


def test_a_name_with_a_dot_is_a_field_of_its_own():
    inner = [("x", "i4")]
    given = np.zeros(3, np.dtype([("a", [("b", inner)]), ("a.b", inner)]))
    named[3](given)
    assert given["a.b"]["x"].tolist() == [1, 1, 1]
    assert given["a"]["b"]["x"].tolist() == [2, 2, 2]


def test_read_only_structures_stay():
    given = np.zeros(4, POINT)
    given.flags.writeable = False
    with pytest.raises(usm.AccessError, match=r"argument 0, `p.x` is read-only, and the kernel writes it"):
        neighbours[3](given)
    moves[4](np.zeros(4, POINT), given)


def test_structures_that_overlap_themselves_are_not_proven():
    with pytest.raises(usm.KernelError, match=r"strides of \[4\] bytes are no multiples of the 8 bytes of a structure; pass a copy"):
        moves[4](np.ndarray(4, POINT, np.zeros(40, np.uint8), 0, 4), np.zeros(4, POINT))
    broadcast = np.lib.stride_tricks.as_strided(np.zeros(1, POINT), (4,), (0,))
    assert moves.proof[4](broadcast, np.zeros(4, POINT)) != "proven"


def test_no_structures_and_one():
    empty = np.zeros(0, POINT)
    stepped[0](empty, 1)
    one = np.ones(1, POINT)
    stepped[1](one, 2)
    assert one.tolist() == [(3, 1)]


def field_of(*fields, **words):
    return np.zeros(4, np.dtype(list(fields), **words))


@pytest.mark.parametrize(
    "given, words",
    [
        (field_of(("x", "i2"), ("y", "f4")), r"field `y` has 4 bytes, and is at byte 2 of the structure, no multiple of that: use `np.dtype\(.., align=True\)`"),
        (field_of(("x", "f4"), ("y", "i2")), r"field `x` has 4 bytes, and is in structures of 6 bytes"),
        (field_of(("x", ">f4"), ("y", "f4")), r"field `x`: elements of type >f4 .*astype\(.=f4.\)"),
        (field_of(("x", "f4"), ("y", "S4")), r"field `y`: elements of type .*S4 are not for kernels"),
        (field_of(("e", "f4", (0, 3)), ("x", "f4"), ("y", "f4")), "field `e` has no elements"),
        (field_of(("x", "f4"), ("y", "O")), "field `y` is a Python object, which no kernel reads; pass the other fields"),
        (field_of(("x", "f4"), ("y", "M8[s]")), r"field `y`: elements of type <M8\[s\] are not for kernels"),
        (field_of(("x", "f4"), ("y", POINT, 2)), r"field `y` is an array of structures: pass its fields, such as `x\[\"y\"\]\[..\]`"),
        (np.zeros(4, {"names": ["x", "y"], "formats": ["f8", "f4"], "offsets": [0, 4]}), "of structures, pass fields"),
        (np.zeros(4, [(f"f{k}", "i1") for k in range(300)]), "more than 256 structure members"),
        (np.zeros(4, []), "descr|V0"),
        (np.zeros(4, "V8"), "of structures, pass fields"),
    ],
)
def test_other_structures_are_refused(given, words):
    with pytest.raises((usm.KernelError, usm.Error), match=words):
        stepped[4](given, 1)


def test_unaligned_memory_is_refused():
    words = np.zeros(41, np.uint8)
    with pytest.raises(usm.KernelError, match="argument 0, `particles.x`: its elements of 4 bytes begin at address"):
        with usm.device_context("host"):
            stepped[5](words[1:].view(POINT), 1)


PROGRAMS = {
    "p = a[i]\n    p.z = 1": r"`a` has no field 'z': it has `x`, `y`",
    "a[i] = 1": r"`a` has structures of `x`, `y`: set it to a structure with these fields in order, or to a tuple",
    "a[i] = (1, 2, 3)": "or to a tuple of their values",
    "a[i] = b[i]": "field `t` of `b` is an array",
    "a[i] += a[i]": "is a structure",
    "a[i].x = a[i]": r"`a\[i\]` is a structure, and a number is needed: take a field, such as `a\[i\].x`",
    "a[i].x = a.x[i]": r"`a.x` of an array of structures: write `a\[i\].x` or `a\[\"x\"\]`",
    "a.x = 1": "only variables, elements of arrays and fields of elements can be set",
    "a[i].x.y = 1": "only variables, elements|no `y`|no array",
    "c.x = 1": r"`c` is passed by value, so it cannot be set",
    "c[\"x\"] = 1": r"`c` is passed by value, so it cannot be set",
    "a[i].x = c.z": r"`c` has no field 'z'",
    "a[i].x = c[0]": r"`c` is one structure: it has the fields x, y",
    "a[i][0] = 1": "dimensions|one structure",
    "a[i].x = a[i][0]": "one structure",
    "a[-1].x = 1": "negative index",
    "a[i, i].x = 1": "1 dimensions, 2 indices",
    "a[1.5].x = 1": "an index of type float",
    "b[i].t = 1": r"`b\[i\].t` is an array: set its elements",
    "b[i] = b[i]": r"field `t` of `b` is an array",
    "b[i].t[5] = 1": "index 5 of `b.t`|whose dimension",
    "usm.atomic.add(a, i, 1)": "atomic operations are for numbers: pass a field",
    "a[i].x = a.dtype": "has no `dtype`",
    "a[i].x = a[i] == a[i]": "is a structure",
    "p = a[i]\n    if p.x > 0:\n        p = 1": "cannot be bound anew",
}


@pytest.mark.parametrize("body", PROGRAMS)
def test_other_programs_are_refused(body):
    text = f"def function(a, b, c):\n    i = usm.get_global_id(0)\n    {body}\n"
    file = f"<structures {body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"usm": usm}
    exec(compile(text, file, "exec"), space)
    with pytest.raises(usm.KernelError, match=PROGRAMS[body]) as error:
        usm.kernel(space["function"])[4](np.zeros(4, POINT), np.zeros(4, [("x", "i4"), ("t", "i4", 3)]), np.zeros((), POINT)[()])
    assert str(error.value).startswith(file)


if __name__ == "__main__":
    check(device_of(sys.argv[1]))
