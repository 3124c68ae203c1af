"""Compiled code on our runtime: lists, typed dictionaries and typed lists."""

import pytest

from numba_case import SOURCES, run, selector

pytestmark = pytest.mark.usefixtures("nrt_library")


@pytest.mark.parametrize(("backend", "kind"), SOURCES)
def test_tables_of_typed_containers_live_in_the_source(backend, kind):
    run(f"""
    import ctypes
    from numba.typed import Dict, List
    from numba.typed.typedset import Set

    usm.numba.install({selector(backend)!r}, {kind!r})

    @njit
    def fill(n):
        numbers, squares = List(), Dict()
        for i in range(n):
            numbers.append(i * 0.5)
            squares[i] = i * i
        return numbers, squares

    numbers, squares = fill(1000)
    words = Set()
    for i in range(1000):
        words.add(i)
    library = ctypes.CDLL(str(usm.nrt.get_library()))
    library.numba_list_base_ptr.restype = ctypes.c_void_p
    context = usm.numba.installed().queue.context

    def check(address, size):
        found, base, length = context.query(address)
        assert found == {kind!r} and base <= address and address + size <= base + length

    # Each: the block of the container, its header and its table.
    assert usm.numba.installed().live == 9
    handles = {{name: ctypes.c_void_p.from_address(made._opaque.data) for name, made in
                {{"list": numbers, "dict": squares, "set": words}}.items()}}
    check(library.numba_list_base_ptr(handles["list"]), 8000)
    for name in "dict", "set":
        iterator, pointers = (ctypes.c_size_t * 4)(), [ctypes.c_void_p(), ctypes.c_void_p()][: 1 + (name == "dict")]
        getattr(library, f"numba_{{name}}_iter")(iterator, handles[name])
        for i in range(1000):
            assert getattr(library, f"numba_{{name}}_iter_next")(iterator, *map(ctypes.byref, pointers)) == 0
            assert ctypes.c_int64.from_address(pointers[0].value).value == i
        check(pointers[0].value, 8)
        check(handles[name].value, 8)

    assert [numbers[3], squares[31], 999 in words, 1000 in words] == [1.5, 961, True, False]
    stats = usm.nrt.get_allocation_stats()
    assert stats.alloc - stats.free == 9
    refused(usm.RequestError, "9 blocks of the source are alive", usm.numba.uninstall)
    del numbers, squares, words
    assert balanced()
    usm.numba.uninstall()
    """)


def test_typed_containers_of_arrays_and_strings():
    run("""
    from numba.typed import Dict, List

    usm.numba.install("host")

    @njit
    def fill(n):
        numbers, names = List(), Dict()
        for i in range(n):
            numbers.append(np.ones(i + 1))
            names[str(i)] = np.zeros(i + 1)
        return numbers, names

    numbers, names = fill(40)
    numbers.append(np.ones(9))
    assert [len(a) for a in numbers] == [*range(1, 41), 9] and list(names) == [str(i) for i in range(40)]
    del numbers[3:39:2], names["7"]
    names["3"] = np.zeros(100)
    names.popitem()
    numbers.reverse()
    assert len(names["3"]) == 100 and "7" not in names and "39" not in names and len(numbers) == 23
    nested = List([List([1, 2]), List([3])])
    nested[0].append(9)
    assert [list(part) for part in nested] == [[1, 2, 9], [3]]
    del numbers, names, nested
    assert balanced()
    """)


def test_a_container_stays_where_it_began():
    """Tables remember their allocator, so that containers of one time live on in the next."""
    run("""
    from numba.typed import Dict, List

    usm.numba.install("host", "shared")
    usm.numba.uninstall()
    heap, items = Dict(), List()
    heap[0] = items.append(0) or 0
    usm.numba.install("host")
    for i in range(2000):
        heap[i] = i
        items.append(i)
    assert usm.numba.installed().live == 0, "containers that grew started in the heap"
    source = Dict()
    source[1] = 1
    assert usm.numba.installed().live == 3
    assert len(heap) == 2000 and heap[1999] == items[2000] == 1999 and source[1] == 1
    del heap, items, source
    assert balanced()
    """)


def test_no_container_is_older_than_the_functions_that_it_needs():
    run("""
    from numba.typed import Dict
    older = Dict()
    older[1] = 2
    refused(usm.RequestError, "Numba has compiled already", usm.numba.install, "host")
    assert dict(older) == {1: 2} and usm.numba.installed() is None
    """)


def test_a_list_may_grow_under_another_source_than_it_began_with():
    run("""
    from numba.core.runtime import rtsys
    usm.numba.install("host")
    extend = njit(lambda items, n: items.extend([float(i) for i in range(n)]))
    usm.numba.uninstall()
    items = [1.0]
    extend(items, 10)
    usm.numba.install("host")
    extend(items, 1000)
    assert len(items) == 1011 and usm.numba.installed().live == 0
    """)
