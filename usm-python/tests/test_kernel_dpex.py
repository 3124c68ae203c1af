"""What numba-dpex 0.23 tests of its kernels, with its values, by our names.

Its files: `test_local_accessors`, `test_atomic_ref`, `test_index_space_ids`, `test_barriers`,
`test_atomic_fetch_phi`, `test_atomic_load_store_cmp_exchg` and `test_atomic_fence`.
"""

import numpy as np
import pytest

import usm
from usm import kernel_api as kapi

SIZE, GROUP = 100, 20
DTYPES = ["int32", "int64", "float32", "float64"]


def through_a_function(body):
    function = usm.device_func(body)

    @usm.kernel
    def kernel(item, a, slm):
        function(item, a, slm)

    return kernel


def decorated(function, index, *arguments):
    usm.call_kernel(usm.kernel(function), index, *arguments)


def in_a_function(function, index, *arguments):
    usm.call_kernel(through_a_function(function), index, *arguments)


@pytest.fixture(params=[decorated, kapi.call_kernel])
def call(request):
    return request.param


def array(queue, values, dtype="float32"):
    return usm.asarray(np.asarray(values, dtype), queue=queue, kind="shared", copy=True)


def values(found):
    return usm.to_numpy(found).tolist()


# Local accessors.


def sums(nd: kapi.NdItem, a, slm):
    i = nd.get_global_linear_id()
    j = (nd.get_local_id(0),)
    slm[j] = 0
    for m in range(SIZE):
        slm[j] += a.dtype.type(i) * a.dtype.type(m)
    a[i] = slm[j]


def sums_2d(nd: kapi.NdItem, a, slm):
    i = nd.get_global_linear_id()
    j = (nd.get_local_id(0), nd.get_local_id(1))
    slm[j] = 0
    for m in range(SIZE):
        slm[j] += a.dtype.type(i) * a.dtype.type(m)
    a[i] = slm[j]


def sums_3d(nd: kapi.NdItem, a, slm):
    i = nd.get_global_linear_id()
    j = (nd.get_local_id(0), nd.get_local_id(1), nd.get_local_id(2))
    slm[j] = 0
    for m in range(SIZE):
        slm[j] += a.dtype.type(i) * a.dtype.type(m)
    a[i] = slm[j]


WAYS = [decorated, in_a_function, kapi.call_kernel]


@pytest.mark.parametrize("sizes, kernel", [((32,), sums), ((32, 1), sums_2d), ((1, 32, 1), sums_3d)], ids=["1d", "2d", "3d"])
@pytest.mark.parametrize("how, dtype", [(how, dtype) for how in WAYS for dtype in DTYPES if how is decorated or dtype == "float32"])
def test_local_accessors(queue, how, sizes, kernel, dtype):
    a = array(queue, np.full(32, 77), dtype)
    how(kernel, kapi.NdRange(sizes, sizes), a, kapi.LocalAccessor(sizes, dtype))
    assert values(a) == [4950 * i for i in range(32)]


@pytest.mark.parametrize("how", WAYS)
def test_a_range_without_groups_has_no_local_memory(queue, how):
    a = array(queue, np.zeros(32))
    with pytest.raises(usm.KernelError, match=r"argument 1, `slm` is local memory, and usm.Range\[32\] has no groups"):
        how(sums, kapi.Range(32), a, kapi.LocalAccessor(32 * 64, a.dtype))
    assert values(a) == [0] * 32


def hundreds(nd: kapi.NdItem, a, slm):
    slm[nd.get_local_linear_id()] = 100
    a[nd.get_global_linear_id()] = slm[nd.get_local_linear_id()]


def test_local_memory_is_only_in_kernels():
    slm = kapi.LocalAccessor(32, "float64")
    for access in (lambda: slm[0], lambda: slm.__setitem__(0, 10)):
        with pytest.raises((TypeError, AttributeError)):
            access()
    a = np.empty(32)
    kapi.call_kernel(hundreds, kapi.NdRange((32,), (32,)), a, slm)
    assert (a == 100).all()


# Atomic references.


def add_all(item: kapi.Item, a, b):
    kapi.AtomicRef(b, index=0).fetch_add(a[item.get_id(0)])


def add_all_3d(item: kapi.Item, a, b):
    v = kapi.AtomicRef(b, index=(1, 1, 1))
    v.fetch_add(a[item.get_id(0)])


def add_in_local_space(item: kapi.Item, a, b):
    v = kapi.AtomicRef(b, index=0, address_space=kapi.AddressSpace.LOCAL)
    v.fetch_add(a[item.get_id(0)])


def add_in_global_space(item: kapi.Item, a, b):
    v = kapi.AtomicRef(b, 0, kapi.MemoryOrder.RELAXED, kapi.MemoryScope.DEVICE, kapi.AddressSpace.GLOBAL)
    v.fetch_add(a[item.get_id(0)])


def test_atomic_references(queue, call):
    b = array(queue, np.zeros(10), "float64")
    call(add_all, kapi.Range(10), array(queue, np.ones(10), "float64"), b)
    call(add_in_global_space, kapi.Range(10), array(queue, np.ones(10), "float64"), b)
    assert values(b) == [20] + [0] * 9
    b = array(queue, np.zeros((2, 2, 2)), "float64")
    call(add_all_3d, kapi.Range(8), array(queue, np.ones(8), "float64"), b)
    assert values(b) == [[[0, 0], [0, 0]], [[0, 0], [0, 8]]]


def test_a_reference_of_another_address_space_is_refused(queue, call):
    a, b = (array(queue, np.ones(10)) for _ in range(2))
    with pytest.raises(usm.KernelError, match="test_kernel_dpex.py:\\d+:\\d+: `b` is global memory"):
        call(add_in_local_space, kapi.Range(10), a, b)


def add_fives(nd: kapi.NdItem, a, slm):
    group = nd.get_group()
    # numba-dpex's test leaves this out: local memory has any content when a group starts.
    if nd.get_local_id(0) == 0:
        slm[0] = 0
    kapi.group_barrier(group)
    kapi.AtomicRef(slm, 0).fetch_add(a.dtype.type(5))
    kapi.group_barrier(group)
    a[nd.get_global_id(0)] = slm[0]


def add_fives_to_anything(nd: kapi.NdItem, a, slm):
    kapi.AtomicRef(slm, 0).fetch_add(a.dtype.type(5))
    kapi.group_barrier(nd.get_group())
    a[nd.get_global_id(0)] = slm[0]


def test_references_of_local_memory(queue, call):
    a, sizes, slm = array(queue, np.zeros(32), "float64"), kapi.NdRange((32,), (32,)), kapi.LocalAccessor(1, "float64")
    call(add_fives, sizes, a, slm)
    assert values(a) == [160] * 32
    # Local memory begins as zeros.
    usm.kernel(add_fives_to_anything).check[sizes](a, slm)


def test_references_outside_of_kernels():
    assert kapi.AtomicRef(np.ones(10), 0).load() == 1
    assert values(kapi.AtomicRef(array("host", np.ones(10)), 0).load()) == 1
    with pytest.raises(TypeError, match="an AtomicRef of an object of type int: an array is needed"):
        kapi.AtomicRef(1, 0)


PHI = {
    "fetch_add": np.add, "fetch_sub": np.subtract, "fetch_min": np.minimum, "fetch_max": np.maximum,
    "fetch_and": np.bitwise_and, "fetch_or": np.bitwise_or, "fetch_xor": np.bitwise_xor,
}  # fmt: skip


def operating(name):
    def operate(item: kapi.Item, a, b, place):
        v = kapi.AtomicRef(b, index=place)
        getattr(v, name)(a[item.get_id(0)])

    return operate


def returning(name):
    def operate(item: kapi.Item, a, b, c):
        i = item.get_id(0)
        c[i] = getattr(kapi.AtomicRef(b, index=i), name)(a[i])

    return operate


@pytest.mark.parametrize("name", PHI)
def test_operations_that_fetch(queue, name):
    for dtype in DTYPES:
        bitwise = name in ("fetch_and", "fetch_or", "fetch_xor")
        a, b = array(queue, np.arange(10), dtype), array(queue, np.ones(10), dtype)
        for place in (0, 5):
            if bitwise and dtype[0] == "f":
                with pytest.raises(usm.KernelError, match="only integers have it"):
                    decorated(operating(name), kapi.Range(10), a, b, place)
                continue
            decorated(operating(name), kapi.Range(10), a, b, place)
            outside = kapi.AtomicRef(host := usm.to_numpy(b).copy(), place + 1)
            for one in usm.to_numpy(a):
                getattr(outside, name)(one)
            assert host[place] == host[place + 1]
    a, b, c = (array(queue, one, "int32") for one in (np.arange(10), np.ones(10), np.zeros(10)))
    decorated(returning(name), kapi.Range(10), a, b, c)
    assert values(c) == [1] * 10
    assert values(b) == PHI[name](1, np.arange(10)).tolist()


def storing(name):
    def operate(item: kapi.Item, a, b):
        v = kapi.AtomicRef(b, index=0)
        getattr(v, name)(a[item.get_id(0)])

    return operate


@pytest.mark.parametrize("name", [*PHI, "store", "exchange"])
def test_a_float_for_an_integer_element_is_refused(name):
    with pytest.raises(usm.KernelError, match="an atomic operation with a float32 on `.`, which has elements of type int32: cast it"):
        decorated(storing(name), kapi.Range(10), np.ones(10, "float32"), np.zeros(10, "int32"))


def load_and_store(item, a, b):
    i = item.get_id(0)
    a_ref, b_ref = kapi.AtomicRef(a, index=i), kapi.AtomicRef(b, index=i)
    val = b_ref.load()
    a_ref.store(val)


def exchange(item, a, b):
    i = item.get_id(0)
    b[i] = kapi.AtomicRef(a, index=i).exchange(b[i])


def compare(b):
    b_ref = kapi.AtomicRef(b, index=1)
    b[0] = b_ref.compare_exchange(expected_ref=b, desired=b[3], expected_idx=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_loads_stores_and_exchanges(queue, call, dtype):
    a, b = array(queue, np.zeros(20), dtype), array(queue, np.arange(10), dtype)
    call(load_and_store, kapi.Range(10), a, b)
    assert values(a) == [*range(10), *[0] * 10]
    a = array(queue, np.zeros(20), dtype)
    call(exchange, kapi.Range(10), a, b)
    assert values(a) == [*range(10), *[0] * 10] and values(b) == [0] * 10
    b = array(queue, np.arange(4), dtype)
    call(compare, kapi.Range(1), b)
    assert values(b) == [0, 1, 1, 3]
    call(compare, kapi.Range(1), b)
    assert values(b) == [1, 3, 1, 3]


def test_compared_exchanges_outside_of_kernels():
    b = np.arange(4)
    for expected in ([0, 1, 1, 3], [1, 3, 1, 3]):
        b[0] = kapi.AtomicRef(b, 1).compare_exchange(b, b[3], expected_idx=2)
        assert b.tolist() == expected


# Barriers.


def doubled(nd: kapi.NdItem, a):
    i = nd.get_global_id(0)
    a[i] += 1
    kapi.group_barrier(nd.get_group(), kapi.MemoryScope.DEVICE)
    if i == 0:
        for place in range(1, a.size):
            a[0] += a[place]


doubled_function = usm.device_func(doubled)


def doubled_by_a_function(nd: kapi.NdItem, a):
    doubled_function(nd, a)


@pytest.mark.parametrize("kernel", [doubled, doubled_by_a_function])
def test_group_barriers(queue, call, kernel):
    a = array(queue, np.ones(16), "int32")
    call(kernel, kapi.NdRange((16,), (16,)), a)
    assert values(a) == [32] + [2] * 15


# Fences.


def message(item: kapi.Item, a, b):
    i = item.get_id(0)
    flag = kapi.AtomicRef(b, index=0)
    if i == 0:
        a[i] += 1
        kapi.atomic_fence(kapi.MemoryOrder.RELEASE, kapi.MemoryScope.DEVICE)
        flag.store(1)
    elif i == 1:
        while not flag.load():
            continue
        kapi.atomic_fence(kapi.MemoryOrder.ACQUIRE, kapi.MemoryScope.DEVICE)
        for idx in range(a.size):
            if idx != i:
                a[i] += a[idx]


def test_fences_order_a_message(queue, call):
    """numba-dpex has item 0 wait for item 1, which hangs where items run one after the other; no
    model of kernels promises progress to both. Here the item that runs later waits."""
    a, b = array(queue, np.ones(2), "int64"), array(queue, np.zeros(1), "int64")
    call(message, kapi.Range(2), a, b)
    assert values(a) == [2, 3] and values(b) == [1]


# Ids of the index space.


def ones_without_item(a):
    a[0] = 1


def ones(item: kapi.Item, a):
    a[item.get_id(0)] = 1


def last(item: kapi.Item, a):
    a[item.get_range(0) - 1] = 1


def last_linear(item: kapi.Item, a):
    a[item.get_linear_range() - 1] = 1


def nd_ones(nd: kapi.NdItem, a):
    a[nd.get_global_id(0)] = 1


def nd_local_ones(nd: kapi.NdItem, a):
    a[nd.get_local_id(0)] = 1


def nd_last(nd: kapi.NdItem, a):
    if nd.get_global_id(0) == 0:
        i = nd.get_global_range(0) - 1
        a[0] = i
        a[i] = 1


def nd_last_linear(nd: kapi.NdItem, a):
    i = nd.get_global_linear_range() - 1
    a[0] = i
    a[i] = 1


def nd_last_of_group(nd: kapi.NdItem, a):
    if nd.get_global_id(0) == 0:
        i = nd.get_local_range(0) - 1
        a[0] = i
        a[i] = 1


def nd_last_of_group_linear(nd: kapi.NdItem, a):
    i = nd.get_local_linear_range() - 1
    a[0] = i
    a[i] = 1


def nd_last_by_group(nd: kapi.NdItem, a):
    i = nd.get_group().get_local_linear_range() - 1
    a[0] = i
    a[i] = 1


def group_id(nd: kapi.NdItem, a):
    i = nd.get_global_id(0)
    g = nd.get_group()
    a[i] = g.get_group_id(0)


def group_linear_id(nd: kapi.NdItem, a):
    i = nd.get_global_linear_id()
    g = nd.get_group()
    a[i] = g.get_group_linear_id()


def group_range(nd: kapi.NdItem, a):
    i = nd.get_global_id(0)
    a[i] = nd.get_group().get_group_range(0)


def group_linear_range(nd: kapi.NdItem, a):
    i = nd.get_global_linear_id()
    a[i] = nd.get_group().get_group_linear_range()


def group_local_range(nd: kapi.NdItem, a):
    i = nd.get_global_id(0)
    a[i] = nd.get_group().get_local_range(0)


def placed(*elements):
    found = np.zeros(SIZE)
    for place, value in elements:
        found[place] = value
    return found.tolist()


FLAT, DEEP = kapi.NdRange((SIZE,), (GROUP,)), kapi.NdRange((1, 1, SIZE), (1, 1, GROUP))
WHOLE, FIRST = placed((0, SIZE - 1), (SIZE - 1, 1)), placed((0, GROUP - 1), (GROUP - 1, 1))
IDS = np.repeat(np.arange(SIZE // GROUP), GROUP).tolist()
SPACES = [
    (ones_without_item, kapi.Range(SIZE), placed((0, 1))),
    (ones, kapi.Range(SIZE), [1] * SIZE),
    (last, kapi.Range(SIZE), placed((-1, 1))),
    (last_linear, kapi.Range(SIZE), placed((-1, 1))),
    (last_linear, kapi.Range(1, GROUP, SIZE // GROUP), placed((-1, 1))),
    (nd_ones, FLAT, [1] * SIZE),
    (nd_local_ones, FLAT, placed((slice(GROUP), 1))),
    (nd_last, FLAT, WHOLE),
    (nd_last_linear, FLAT, WHOLE),
    (nd_last_linear, DEEP, WHOLE),
    (nd_last_of_group, FLAT, FIRST),
    (nd_last_of_group_linear, FLAT, FIRST),
    (nd_last_of_group_linear, DEEP, FIRST),
    (nd_last_by_group, FLAT, FIRST),
    (nd_last_by_group, DEEP, FIRST),
    (group_id, FLAT, IDS),
    (group_linear_id, FLAT, IDS),
    (group_linear_id, DEEP, IDS),
    (group_range, FLAT, [SIZE // GROUP] * SIZE),
    (group_linear_range, FLAT, [SIZE // GROUP] * SIZE),
    (group_linear_range, DEEP, [SIZE // GROUP] * SIZE),
    (group_local_range, FLAT, [GROUP] * SIZE),
]


@pytest.mark.parametrize("kernel, sizes, expected", SPACES, ids=lambda one: getattr(one, "__name__", ""))
def test_ids_and_sizes(queue, call, kernel, sizes, expected):
    a = array(queue, np.zeros(SIZE))
    call(kernel, sizes, a)
    assert values(a) == expected


def item_dimensions(item: kapi.Item, a):
    a[item.get_id(0)] = item.dimensions


def nd_item_dimensions(nd: kapi.NdItem, a):
    a[nd.get_global_id(0)] = nd.dimensions


def nd_item_dimensions_by_use(nd, a):
    a[nd.get_global_id(0)] = nd.dimensions


def group_dimensions(nd: kapi.NdItem, a):
    a[nd.get_global_id(0)] = nd.get_group().dimensions


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_dimensions(queue, call, dimensions):
    whole, group = [1] * dimensions, [1] * dimensions
    whole[0], group[0] = SIZE, GROUP
    cases = [(item_dimensions, kapi.Range(*whole))]
    cases += [(kernel, kapi.NdRange(whole, group)) for kernel in (nd_item_dimensions, nd_item_dimensions_by_use, group_dimensions)]
    for kernel, sizes in cases:
        a = array(queue, np.zeros(SIZE))
        call(kernel, sizes, a)
        assert values(a) == [dimensions] * SIZE


def test_an_item_with_a_group_needs_a_range_with_groups(queue, call):
    with pytest.raises(usm.KernelError, match=r"its item is an NdItem, and usm.Range\[100\] has no groups: launch it over a usm.NdRange"):
        call(nd_ones, kapi.Range(SIZE), array(queue, np.zeros(SIZE)))


SIDES = (2, 3, 4)


def order(item: kapi.Item, a):
    a[item.get_id(0) + SIDES[0] * (item.get_id(1) + SIDES[1] * item.get_id(2))] += 1


def linear_order(item: kapi.Item, a):
    a[item.get_linear_id()] += item.get_linear_id() == (item.get_id(0) * SIDES[1] + item.get_id(1)) * SIDES[2] + item.get_id(2)


def nd_linear_order(nd: kapi.NdItem, a):
    a[nd.get_global_linear_id()] += 1


def nd_local_linear(nd: kapi.NdItem, a):
    a[nd.get_local_linear_id()] = 1


def test_the_last_dimension_is_the_fastest(queue, call):
    nd_range = kapi.NdRange(SIDES, (1, 1, SIDES[2]))
    for kernel, sizes, expected in [
        (order, kapi.Range(*SIDES), [1] * 24),
        (linear_order, kapi.Range(*SIDES), [1] * 24),
        (nd_linear_order, nd_range, [1] * 24),
        (nd_local_linear, nd_range, [1] * 4 + [0] * 20),
    ]:
        a = array(queue, np.zeros(24), "int32")
        call(kernel, sizes, a)
        assert values(a) == expected
