"""`usm.numba.install` and `uninstall`: permitted times of calls, and their effect."""

import pytest

from numba_case import run

pytestmark = pytest.mark.usefixtures("nrt_library")


def test_uninstall_needs_no_live_block_and_allows_another_source():
    run(f"""
    usm.numba.install("host")
    make = njit(lambda n: np.ones(n))
    array = make(3)
    refused(usm.RequestError, "1 blocks of the source are alive", usm.numba.uninstall)
    assert usm.numba.installed().live == 1 and make(2).sum() == 2
    del array
    usm.numba.uninstall()
    assert usm.numba.installed() is None
    refused(usm.RequestError, "nothing is installed", usm.numba.uninstall)
    heap = make(4)
    assert usm.asarray(heap).tolist() == [1.0] * 4
    usm.numba.install("host", "shared")
    source = make(5)
    assert usm.asarray(source).kind == "shared" and usm.asarray(heap).kind == "host"
    # A list that grew in one place may shrink in the other.
    del heap, source
    gc.collect()
    assert usm.numba.installed().live == 0
    """)


def test_another_queue_of_one_context_is_another_source():
    run("""
    first, second = usm.Queue("host"), usm.Queue("host")
    make = njit(lambda n: np.ones(n))
    for queue in (first, second, first):
        usm.numba.install(queue, "shared")
        assert usm.numba.installed().queue == queue
        array = make(3)
        assert usm.asarray(array).queue == queue and usm.numba.installed().live == 1
        del array
        usm.numba.uninstall()
    """)


def test_an_installation_that_would_crash_is_refused():
    run("""
    import numba
    refused(usm.RequestError, "kind must be", usm.numba.install, "host", "device")
    refused(usm.RequestError, "is not one of", usm.numba.install, "host", "plaid")
    refused(usm.DeviceError, "no device matches", usm.numba.install, "cuda:gpu:77")
    numba.__version__, right = "0.99.0", numba.__version__
    refused(usm.DeviceError, "0.99.0", usm.numba.install, "host")
    numba.__version__ = right
    from numba.core.runtime import _nrt_python
    address = _nrt_python.c_helpers.pop("Allocate")
    refused(usm.DeviceError, "Allocate", usm.numba.install, "host")
    _nrt_python.c_helpers["Allocate"] = address
    assert usm.numba.installed() is None
    usm.numba.install("host")
    refused(usm.RequestError, "installed already", usm.numba.install, "host")
    assert njit(lambda: np.ones(3))().sum() == 3
    """)


def test_install_is_refused_after_a_compilation():
    run("""
    from numba.core.runtime import _nrt_python
    make = njit(lambda: np.ones(3))
    array = make()
    before = dict(_nrt_python.c_helpers)
    refused(usm.RequestError, "Numba has compiled already", usm.numba.install, "host")
    assert dict(_nrt_python.c_helpers) == before and usm.numba.installed() is None
    assert make().sum() == array.sum() == 3
    """)


def test_install_races_with_compilations_without_a_deadlock():
    run("""
    import sys
    import threading
    # Threads take turns as often as they can: locks taken in two orders then meet at once.
    sys.setswitchinterval(1e-6)
    refusals, sums = [], []

    def compile_and_run():
        sums.append(njit(lambda: np.ones(3))().sum())

    def install():
        try:
            usm.numba.install("host")
        except usm.RequestError as error:
            refusals.append(str(error))

    usm.numba
    threads = [threading.Thread(target=compile_and_run) for _ in range(3)]
    threads += [threading.Thread(target=install) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert sums == [3.0] * 3 and len(refusals) >= 2
    """)


def test_numbas_statistics_show_the_counts_of_usm():
    run("""
    from numba.core.runtime import _nrt_python, rtsys
    usm.numba.install("host")
    make = njit(lambda a: (np.ones(3), a[1:]))
    refused(RuntimeError, "NRT stats are disabled", rtsys.get_allocation_stats)
    _nrt_python.memsys_enable_stats()
    shown = rtsys.get_allocation_stats()
    made = make(np.zeros(2))
    now = rtsys.get_allocation_stats()
    # Ones of ours, and the header that Numba makes around the argument.
    assert (now.mi_alloc - shown.mi_alloc, now.mi_free - shown.mi_free) == (2, 0)
    del made
    assert rtsys.get_allocation_stats().mi_free == now.mi_alloc
    _nrt_python.memsys_disable_stats()
    refused(RuntimeError, "NRT stats are disabled", rtsys.get_allocation_stats)
    assert usm.nrt.get_allocation_stats().mi_alloc >= 2
    """)


def test_importing_usm_imports_no_numba():
    run("""
    import subprocess, sys
    code = "import sys, usm, usm.nrt; assert 'numba' not in sys.modules and 'numpy' not in sys.modules; usm.numba; assert 'numba' in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    """)
