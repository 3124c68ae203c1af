"""Code that kernels refuse: the place in the error, and the remedy."""

import math
import re

import numpy as np
import pytest
from conftest import device_of

import usm

SCALE = [1, 2, 3]
FILE = re.escape(__file__)


@usm.device_func
def endless(n):
    return endless(n - 1)


@usm.device_func
def waits():
    usm.barrier()


def helper(x):
    return x


def refused(pattern):
    """The kernel is refused, with this text, at the line that ends with `# here`."""

    def check(function):
        kernel = usm.kernel(function)
        source = open(__file__).read().splitlines()
        first = function.__code__.co_firstlineno
        line = next(number for number in range(first, len(source) + 1) if source[number - 1].endswith("# here"))
        CASES.append((function.__name__, kernel, line, pattern))
        return kernel

    return check


CASES = []


@refused("a comprehension is not for kernels: write a loop")
def comprehension(a):
    a[0] = [x for x in range(3)][0]  # here


@refused("a slice is set element by element: index it in a loop")
def part(a):
    a[0:2] = 1  # here


@refused("`a` is an array, and only tuples are taken apart: write an index for each element")
def taken_apart(a):
    x, y = a  # here
    a[0] = x + y


@refused("the negative index -1 .* write `a.shape\\[0\\] - 1`")
def from_the_end(a):
    a[-1] = 1  # here


@refused("unknown name `nowhere`")
def unknown(a):
    a[0] = nowhere  # noqa: F821  # here


@refused("a call of `np.random.rand` is not for kernels: call `usm.random.uniform")
def randoms(a):
    a[0] = np.random.rand()  # here


@refused("a call of `np.sum` is not for kernels: add in a loop")
def sums(a):
    a[0] = np.sum(a)  # here


@refused("a call of `np.mean` is not for kernels: add in a loop over `range\\(..\\)`, and divide")
def means(a):
    a[0] = np.mean(a)  # here


@refused("not all work-items of a group reach this barrier: they part at .*: ?.*; move it out")
def waits_apart(a):
    first = usm.get_local_id(0) == 0
    a[0] = 1
    if first:
        usm.barrier()  # here


@refused("a call of `helper`, a function of plain Python: decorate it with `@usm.device_func`")
def calls(a):
    a[0] = helper(1)  # here


@refused("a kernel returns nothing: write the result to an array")
def returns(a):
    return a[0]  # here


@refused("a generator is no kernel")
def generator(a):
    yield a[0]  # here


@refused("an async function is no kernel: write `def`")
async def waiting(a):  # here
    a[0] = 1


@refused("`try` is not for kernels")
def tries(a):
    try:  # here
        a[0] = 1
    finally:
        pass


@refused("`with` is not for kernels")
def within(a):
    with a:  # here
        a[0] = 1


@refused("an index of type float64: write `int\\(..\\)` or use `//`")
def half(a):
    a[a.size / 2] = 1  # here


@refused("`a` has 1 dimensions, 2 indices are given")
def dimensions(a):
    a[0, 0] = 1  # here


@refused("the array `a` cannot be bound anew")
def rebound(a):
    a = 1  # noqa: F841  # here


@refused("the array `a` cannot be bound anew")
def counted(a):
    for a in range(3):  # here
        pass


@refused("the shape of an array in a kernel is literals .* `usm.Local")
def sized(a):
    lm = usm.local.array(a.size, np.float32)  # here
    lm[0] = 1


@refused("`x` is uint64 elsewhere and int64 here: cast one of them")
def two_types(a):
    x = np.uint64(1)
    if a[0] > 0:
        x = usm.get_global_id(0)  # here
    a[0] = x


@refused("uint64 \\+ int64: no integer type holds both")
def wide(a):
    a[0] = np.uint64(a[0]) + usm.get_global_id(0)  # here


@refused("dimension 1 of a range with 1: launch it over more, by `k\\[\\(n, m\\), None\\]` or `k\\[usm.Range\\(n, m\\)\\]`")
def second_dimension(a):
    a[usm.get_global_id(1)] = 1  # here


@refused("a loop in a kernel goes over `range\\(..\\)`, a tuple, an array, or `enumerate` and `zip` of arrays")
def over_number(a):
    for x in a[0]:  # here
        a[0] = x


@refused("the slice|a slice from 3 to 2")
def turned_slice(a):
    x = a[3:2]  # here
    a[0] = x[0]


@refused("a slice with steps: multiply the index")
def stepped_slice(a):
    x = a[0:4:2]  # here
    a[0] = x[0]


@refused("`break` in a loop over a tuple")
def breaks(a):
    for x in (1, 2):  # here
        if a[0] > x:
            break


@refused("the array `x` cannot be bound anew")
def parts_of_two_arrays(a):
    other = usm.private.array((3, 3), np.float32)
    x = other[0]
    for k in range(3):
        x = a[k : k + 2]  # here
        a[0] = x[0]


@refused("`t` is a tuple of 2 numbers elsewhere, and of 3 here")
def longer_tuple(a):
    t = (a[0], a[1])
    for k in range(3):
        t = (a[0], a[1], k)  # here
    a[0] = t[0]


@refused("`SCALE`, an object of type list, is no number")
def listed(a):
    a[0] = SCALE  # here


@refused("`x` has no value here")
def early(a):
    a[0] = x  # here
    x = 1


@refused("division by zero")
def by_zero(a):
    a[0] = usm.get_global_id(0) // 0  # here


@refused("`math.sqrt` has 1 argument, 2 are given")
def too_many(a):
    a[0] = math.sqrt(1.0, 2.0)  # here


@refused("a list is not for kernels: use `usm.private.array`")
def of_lists(a):
    b = [1, 2]  # here
    a[0] = b[0]


@pytest.mark.parametrize("name, kernel, line, pattern", CASES, ids=[case[0] for case in CASES])
def test_a_refusal_has_a_place_and_a_remedy(name, kernel, line, pattern):
    with pytest.raises(usm.KernelError, match=f"^{FILE}:{line}:\\d+: .*(?:{pattern})"):
        kernel[8](np.zeros(8, np.float32))


@usm.kernel
def recursive(a):
    a[0] = endless(3)


@usm.kernel
def diverges(a):
    if usm.get_local_id(0) > 1:
        waits()


@usm.kernel
def collects(a):
    for j in range(usm.get_local_id(0)):
        a[j] = usm.group.reduce_add(a[j])


@usm.kernel
def leaves_a_loop(a):
    for j in range(4):
        if usm.get_local_id(0) == j:
            break
        usm.barrier()


def test_a_recursion_is_refused_where_it_calls_itself():
    with pytest.raises(usm.KernelError, match=f"^{FILE}:18:12: a recursion of `endless`"):
        recursive[8](np.zeros(8, np.float32))


@pytest.mark.parametrize("kernel", [diverges, collects, leaves_a_loop], ids=lambda kernel: kernel.__name__)
def test_a_barrier_that_not_all_items_reach_is_refused_with_both_places(kernel):
    with pytest.raises(usm.KernelError, match=f"^{FILE}:\\d+:\\d+: not all work-items .* part at {FILE}:\\d+"):
        kernel[8](np.zeros(8, np.float32))


@usm.kernel
def plain(a, n):
    i = usm.get_global_id(0)
    if i < n:
        a[i] = i


@usm.kernel
def grouped(a):
    a[usm.get_global_id(0)] = usm.get_local_id(0)


LAUNCHES = {
    "2 arguments are needed \\(a, n\\), 1 are given": lambda a: plain[8](a),
    "local size 3 does not divide 8 work-items in dimension 0: launch 9": lambda a: plain[8, 3](a, 8),
    "launch 16 and leave the last ones out by a condition; 8 groups are 128 work-items": lambda a: plain[(8,), (16,)](a, 8),
    "local size 0 in dimension 0": lambda a: plain[8, 0](a, 8),
    "the range \\[8, 8\\] has 2 dimensions, the local size \\[2\\] has 1": lambda a: plain[(8, 8), 2](a, 8),
    "a range has 1, 2 or 3 dimensions, 4 are given": lambda a: plain[(1, 1, 1, 1),](a, 8),
    "float is no integer": lambda a: plain[8.0](a, 8),
    "global size -8": lambda a: plain[-8](a, 8),
    "argument 0, `a`: an object of type list is no argument": lambda a: plain[8]([1, 2], 8),
    "argument 1, `n`: an object of type NoneType": lambda a: plain[8](a, None),
    "elements of type >c8 are not for kernels": lambda a: plain[8](a.astype(">c8"), 8),
    "argument 0, `a`: typestr: Python object pointers": lambda a: plain[8](a.astype(object), 8),
    "argument 1, `n`: typestr: Python object pointers": lambda a: plain[8](a, a.astype(object)),
    "does not fit int64": lambda a: plain[8](a, 1 << 70),
    "a kernel is launched over a range: write plain\\[global, local\\]": lambda a: plain(a, 8),
    "16777216 work-items are too many for one": lambda a: grouped[1 << 24](a),
}


@pytest.mark.parametrize("pattern", LAUNCHES)
def test_a_launch_is_refused_with_both_numbers(pattern):
    with usm.device_context("host"), pytest.raises(usm.KernelError, match=pattern):
        LAUNCHES[pattern](np.zeros(8, np.float32))


def test_an_exception_in_a_size_is_raised():
    class Size:
        def __index__(self):
            raise ZeroDivisionError("no size")

    with pytest.raises(ZeroDivisionError, match="no size"):
        plain[Size()](np.zeros(8, np.float32), 8)


def test_read_only_memory_is_not_written():
    a = np.zeros(8, np.float32)
    a.flags.writeable = False
    with pytest.raises(usm.AccessError, match="argument 0, `a` is read-only"):
        plain[8](a, 8)
    assert a.sum() == 0


def test_parameters_are_plain_names():
    def stars(*a):
        a[0][0] = 1

    def words(a, **others):
        a[0] = 1

    def only(a, *, n):
        a[0] = n

    def default(a, n=3):
        a[0] = n

    for function in (stars, words, only, default):
        line = function.__code__.co_firstlineno
        with pytest.raises(usm.KernelError, match=f"^{FILE}:{line}:5: parameters of a kernel are plain names"):
            usm.kernel(function)


def test_functions_without_source_are_refused():
    space = {}
    exec("def made(a): a[0] = 1", space)
    for function, pattern in [(space["made"], "no source"), (eval("lambda a: 1"), "<lambda>"), (len, "no function of Python")]:
        with pytest.raises(usm.KernelError, match=pattern):
            usm.kernel(function)


@usm.kernel
def outside(a, shift):
    y, x = usm.get_global_id(0), usm.get_global_id(1)
    a[y, x + shift] = 1


@usm.kernel
def races(a):
    i = usm.get_global_id(0)
    a[i] = a[(i + 1) % a.size]


@usm.kernel
def unset(a):
    lm = usm.local.array(8, np.float32)
    l = usm.get_local_id(0)
    a[l] = lm[l]


@usm.kernel
def counts_on(a):
    lm = usm.local.array(1, np.int32)
    usm.atomic.add(lm, 0, 1)


@usm.kernel
def compares(a):
    lm = usm.local.array(1, np.int32)
    usm.atomic.cas(lm, 0, 0, 1)


@usm.kernel
def begins(a):
    lm = usm.local.array(1, np.float32)
    usm.atomic.exch(lm, 0, 1)
    usm.barrier()
    usm.atomic.add(lm, 0, 1)
    usm.barrier()
    a[usm.get_local_id(0)] = lm[0]


@pytest.mark.parametrize("backend", ["host", "opencl", "sycl"])
def test_an_index_outside_is_found_in_each_dimension(backend):
    a = usm.zeros((3, 4), "float32", queue=device_of(backend).selector)
    # Inside of the array's memory, outside of its second dimension.
    with pytest.raises(usm.KernelError, match=f"^{FILE}:\\d+:\\d+: index 4 in dimension 1 of `a` is outside; its shape is \\[3, 4\\]"):
        outside[(2, 4),](a, 1)
    with pytest.raises(usm.KernelError, match="index -1 in dimension 1"):
        outside[(2, 4),](a, -1)
    outside[(3, 3),](a, 1)
    assert usm.to_numpy(a).sum() >= 9


def test_the_check_finds_what_is_wrong_and_where():
    a = np.zeros((3, 4), np.float32)
    with pytest.raises(usm.KernelError, match=f"^{FILE}:\\d+:\\d+: index 4 in dimension 1 of `a` is outside; its shape is"):
        outside.check[(2, 4),](a, 1)
    with pytest.raises(usm.KernelError, match=f"^{FILE}:\\d+:\\d+: race on element 1 of `a`: work-item \\[1\\] writes .* work-item \\[0\\] reads"):
        races.check[8](np.zeros(8, np.float32))
    # Local memory begins as zeros, in the check too.
    for kernel in (unset, counts_on, compares, begins):
        kernel.check[8](np.zeros(8, np.float32))


def test_a_proof_names_what_is_unproven_and_strict_kernels_refuse_it():
    a = np.zeros(8, np.float32)
    assert plain.proof[8](a, 8) == "proven"
    assert "that the index of `a` is inside is not proven" in plain.proof[9](a, 9)
    assert re.match(f"{FILE}:\\d+:\\d+: two work-items touch one element, a race: work-item \\[7\\] reads element 0 of `a`", races.proof[8](a))
    strict = usm.kernel(strict=True)(races.__wrapped__)
    with pytest.raises(usm.KernelError, match="two work-items touch one element, a race: "):
        strict[8](a)
    assert "is not proven, so it is checked as it runs; proven if min(global_size(0) - 1, n - 1) <= a.size - 1" in plain.proof[9](a, 9)
    strict = usm.kernel(strict=True)(plain.__wrapped__)
    with pytest.raises(usm.KernelError, match="is not proven, so `strict=True` refuses the launch; proven if "):
        strict[9](a, 9)


@usm.kernel
def smoothed(a):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    a[i, j] = a[i - 1, j] + a[i, j]


def test_a_condition_that_no_launch_meets_is_a_missing_line():
    a = np.zeros((3, 4), np.float32)
    said = smoothed.proof[usm.Range(3, 4)](a)
    assert "; it may be -1, whatever the launch: add a condition such as `if i >= 1:`" in said, said
    assert "proven if" not in said and "9223372036854775807" not in said, said


@usm.kernel
def corners(a):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    a[i // 2 + 1, j // 2 + 1] = 1


def test_a_race_names_the_element_by_each_dimension():
    whole = np.zeros((6, 8), np.float32)
    for a in (whole, whole[:, ::2], whole[::2], whole.T, usm.zeros((6, 8), "f4", device="host")[1:, 1:]):
        for said in (corners.proof[usm.Range(2, 2)](a), str(pytest.raises(usm.KernelError, corners.check[usm.Range(2, 2)], a).value)):
            assert "element [1, 1] of `a`" in said, said
    # The number alone does not tell the indices.
    assert "element [" not in corners.proof[usm.Range(2, 2)](whole[::-1])
    assert "element [" not in corners.proof[usm.Range(2, 2)](np.lib.stride_tricks.as_strided(whole, (3, 3), (4, 4)))


@usm.kernel
def shifted(a, b):
    i = usm.get_global_id(0)
    a[i] = b[i] + 1


def test_a_proof_sees_that_arrays_share_memory():
    whole = usm.zeros(9, "float32", device="host")
    assert shifted.proof[8](whole[:8], usm.zeros(8, "float32", device="host")) == "proven"
    # One element apart: an item reads its neighbour's element while the neighbour writes it.
    said = shifted.proof[8](whole[1:], whole[:8])
    assert re.match(f"{FILE}:\\d+:\\d+: `a` and `b` share 28 bytes", said), said
    strict = usm.kernel(strict=True)(shifted.__wrapped__)
    with pytest.raises(usm.KernelError, match="share 28 bytes"):
        strict[8](whole[1:], whole[:8])
    assert shifted.proof[4](whole[:4], whole[4:8]) == "proven"


def test_arrays_of_two_queues_are_refused_with_both():
    host, device = usm.zeros(4, queue="host"), usm.zeros(4, queue=device_of("opencl").selector)

    @usm.kernel
    def add(a, b):
        i = usm.get_global_id(0)
        a[i] += b[i]

    with pytest.raises(usm.KernelError, match="argument 0, `a` is of a queue of host.*argument 1, `b` of a queue of opencl"):
        add[4](host, device)
    add[4](device, np.ones(4))
    assert usm.to_numpy(device).tolist() == [1.0] * 4


@usm.device_func
def level_0(x):
    return x + 1


@usm.device_func
def level_1(x):
    return level_0(level_0(level_0(level_0(x))))


@usm.device_func
def level_2(x):
    return level_1(level_1(level_1(level_1(x))))


@usm.device_func
def level_3(x):
    return level_2(level_2(level_2(level_2(x))))


@usm.device_func
def level_4(x):
    return level_3(level_3(level_3(level_3(x))))


@usm.device_func
def level_5(x):
    return level_4(level_4(level_4(level_4(x))))


@usm.device_func
def level_6(x):
    return level_5(level_5(level_5(level_5(x))))


@usm.kernel
def calls_too_many(a):
    a[0] = level_6(a[0])


def test_functions_that_multiply_their_calls_are_refused_where_they_are_called():
    with pytest.raises(usm.KernelError, match=f"^{FILE}:\\d+:\\d+: more than 4096 calls of functions are put in here"):
        calls_too_many[1](np.zeros(1, np.int64))


def test_the_proof_speaks_of_python():
    @usm.kernel(strict=True)
    def same(a):
        a[0] = 1

    for refuse in (lambda a: same[4](a), lambda a: pytest.fail(same.proof[4](a))):
        with pytest.raises((usm.KernelError, pytest.fail.Exception)) as found:
            refuse(np.zeros(4))
        assert "use `usm.atomic`, for `+=` `usm.atomic.add`, write elements that" in str(found.value)
        assert str(found.value).endswith(", or launch it without `strict=True`") and "unsafe" not in str(found.value)
    # Who did not ask for a strict launch hears nothing of it.
    said = usm.kernel(same.__wrapped__).proof[4](np.zeros(4))
    assert "`usm.atomic.add`" in said and "strict" not in said


def test_a_pair_of_numbers_that_meant_two_dimensions_says_how_to_write_them():
    kernel = usm.kernel(second_dimension.__wrapped__)
    with pytest.raises(usm.KernelError, match=r"does not divide 100 .*`k\[n, m\]` is a range of n items in groups of m: write `k\[\(n, m\), None\]`"):
        kernel[100, 40]
    with pytest.raises(usm.KernelError, match="does not divide") as raised:
        kernel[(100, 4), (40, 4)]
    assert "k[(n, m), None]" not in str(raised.value)


def test_messages_name_arrays_of_the_kernel_by_their_variables():
    with usm.device_context("host"), pytest.raises(usm.KernelError, match="race on element . of `tile`"):
        shifts_early.check[8, 8](np.zeros(8))


def test_a_missing_barrier_is_named():
    missing = "put `usm.barrier(usm.CLK_LOCAL_MEM_FENCE)` between"
    with usm.device_context("host"):
        a = np.zeros(8)
        with pytest.raises(usm.KernelError, match=f"with no barrier between; {re.escape(missing)}\n"):
            shifts_early.check[8, 8](a)
        assert shifts_early.proof[8, 8](a).endswith(missing)


def test_the_check_knows_that_local_memory_starts_as_zeros():
    with usm.device_context("host"):
        a = np.ones(8)
        reads_early.check[8, 8](a)
        reads_early[8, 8](a)
    assert (a == 0).all() and "starts" in usm.local.array.__doc__


def test_the_check_knows_that_private_arrays_start_as_zeros():
    with usm.device_context("host"):
        a = np.full(8, 7.0)
        counts_in_private.check[8](a)
        counts_in_private[8](a)
    assert (a == 2).all()


@usm.kernel
def counts_in_private(a):
    p = usm.private.array((2, 3), np.int64)
    for _ in range(2):
        p[1, 2] += 1
    a[usm.get_global_id(0)] = p[1, 2] + p[0, 0]


@usm.kernel
def shifts_early(a):
    tile = usm.local.array(8, np.float64)
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    tile[l] = a[i]
    a[i] = tile[7 - l]


@usm.kernel
def reads_early(a):
    tile = usm.local.array(8, np.float64)
    a[usm.get_global_id(0)] = tile[usm.get_local_id(0)]


def test_an_atomic_operation_does_not_cut_a_number():
    @usm.kernel
    def adds(counts, x):
        usm.atomic.add(counts, 0, x)

    counts = np.zeros(2, np.int32)
    for x, words in ((1.5, "a float"), (np.float32(1), "a float32")):
        with pytest.raises(usm.KernelError, match=f"^{FILE}:\\d+:\\d+: an atomic operation with {words} on `counts`, which has elements of type int32: cast it"):
            adds[4](counts, x)
    adds[4](counts, 2)
    assert counts.tolist() == [8, 0]
    adds[4](sums := np.zeros(2, np.float32), 1.5)
    assert sums.tolist() == [6, 0]


def test_names_that_are_not_there_say_which_are():
    @usm.kernel
    def exchanges(a):
        usm.atomic.exchange(a, 0, 1)

    with pytest.raises(usm.KernelError, match=r"unknown name `usm.atomic.exchange`: there are .*\bexch\b"):
        exchanges[1](np.zeros(1))
    with pytest.raises(AttributeError, match="'usm.group' has no attribute 'sum': there are .*reduce_add"):
        usm.group.sum
    assert not hasattr(usm.group, "__array_interface__")
    for words in (usm.atomic, usm.group, usm.sub_group, usm.local):
        assert dir(words) and all(f"``{name}(" in words.__doc__ and ": " in getattr(words, name).__doc__ for name in dir(words))
