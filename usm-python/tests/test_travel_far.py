"""Arrays between processes of Dask, joblib and MPI."""

import importlib.util
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest
from conftest import lacking, require

import usm


@pytest.fixture(scope="module")
def client():
    distributed = require("distributed", "Dask sends arrays between processes")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        yield client


def turned(array):
    return array[::-1]


def described(array):
    return array.tolist(), array.kind, array.dtype.str, array.readonly, array.device.selector


def test_a_cluster_passes_arrays_between_its_processes_without_registration(client, queue, kind, monkeypatch):
    """Dask's own pickles: from here to one worker, from that to the other, and back."""
    from distributed.protocol.serialize import dask_deserialize, dask_serialize

    # Another test of this process may have imported `usm.dask`.
    for table in (dask_serialize, dask_deserialize):
        monkeypatch.delitem(table._lookup, usm.Array, raising=False)
    # A worker that its watcher has restarted is away for a moment.
    client.wait_for_workers(2, timeout=60)
    # `scheduler_info` may return what the client's own timer has just asked for: no workers.
    first, second = client.nthreads()
    source = usm.asarray(list(range(6)), dtype="<i4", queue="host").reshape(2, 3)
    array = usm.empty((2, 3), "<i4", kind=kind, queue=queue)
    usm.copy(array, source)
    there = client.submit(turned, client.scatter(array, workers=[first]), workers=[first], pure=False)
    assert client.submit(described, there, workers=[second], pure=False).result() == ([[3, 4, 5], [0, 1, 2]], kind, "<i4", False, queue.device.selector)
    back = there.result()
    assert described(back) == ([[3, 4, 5], [0, 1, 2]], kind, "<i4", False, queue.device.selector)


def test_the_serialisers_keep_everything(queue, kind):
    require("distributed", "Dask sends arrays between processes")
    import dask.sizeof
    from distributed.protocol import deserialize, serialize

    import usm.dask

    array = usm.empty((4, 3), "<f4", kind=kind, queue=queue)
    array.fill(2.5)
    for view in (array, array[::2], array.T, array[:0], array[1, 2]):
        header, frames = serialize(view)
        assert header["serializer"] == "dask" and sum(memoryview(it).nbytes for it in frames) == view.nbytes
        assert described(deserialize(header, [bytes(it) for it in frames])) == described(view)
    assert dask.sizeof.sizeof(array) == 48
    fixed = deserialize(*serialize(usm.asarray(b"fixed")))
    assert fixed.readonly and fixed.tobytes() == b"fixed"
    header, frames = serialize(array)
    for broken in ([], [bytes(47)], [bytes(49)]):
        with pytest.raises(usm.InterfaceError, match="content has"):
            deserialize(header, broken)


def test_dask_takes_the_serialisers_in_all_processes(client):
    import usm.dask

    client.run(__import__, "usm.dask")
    array = usm.full((1000, 100), 7, "<i2", kind="shared", device="host")
    back = client.submit(turned, client.scatter(array), pure=False).result()
    assert back.shape == (1000, 100) and back.tobytes() == array.tobytes()


def test_joblib_passes_arrays_to_its_processes():
    joblib = require("joblib", "its processes receive arguments as its own pickles")
    array = usm.asarray([1, 2, 3], dtype="<i4", queue="host")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(described)(array[at:]) for at in range(2))
    assert found == [([1, 2, 3], "shared", "<i4", False, "host:host:0"), ([2, 3], "shared", "<i4", False, "host:host:0")]


MPI = """
import sys
from mpi4py import MPI
import usm
ranks = MPI.COMM_WORLD
rank = ranks.Get_rank()
assert ranks.Get_size() == 2
for kind in ("host", "shared"):
    mine, other, total = (usm.full(1000, rank + 1, "<f8", kind=kind, device="host") for _ in range(3))
    if rank == 0:
        ranks.Send(mine, dest=1)
        ranks.Recv(other, source=1)
    else:
        ranks.Recv(other, source=0)
        ranks.Send(mine, dest=0)
    assert set(other.tolist()) == {2.0 - rank}
    ranks.Allreduce(mine, total)
    assert set(total.tolist()) == {3.0}
    # A part of an array, in its place.
    part = usm.zeros(10, "<i4", kind=kind, device="host")
    ranks.Allgather(usm.full(5, rank, "<i4", device="host"), part)
    assert part.tolist() == [0] * 5 + [1] * 5
fixed = usm.asarray(bytes(8))
if rank == 0:
    ranks.Send(fixed, dest=1)
else:
    try:
        ranks.Recv(fixed, source=0)
    except (BufferError, usm.Error):
        ranks.Recv(bytearray(8), source=0)
    else:
        raise AssertionError("read-only memory was written")
for kind in ("host", "shared", "device"):
    sent = usm.full((2, 2), 5, "<i4", kind=kind, device="host") if rank == 0 else None
    back = ranks.bcast(sent, root=0)
    assert (back.tolist(), back.kind) == ([[5, 5], [5, 5]], kind)
try:
    ranks.Allreduce(usm.zeros(2, kind="device", device="host"), total)
except (TypeError, BufferError, ValueError) as error:
    pass
else:
    raise AssertionError("device memory was read by the host")
"""


def test_ranks_exchange_memory_by_its_buffer_and_arrays_by_pickles(tmp_path):
    if importlib.util.find_spec("mpi4py") is None:
        lacking("mpi4py", "not installed")
    mpiexec = shutil.which("mpiexec", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("mpiexec")
    if mpiexec is None:
        lacking("mpi", "no mpiexec")
    (tmp_path / "ranks.py").write_text(MPI)
    done = subprocess.run([mpiexec, "-n", "2", sys.executable, tmp_path / "ranks.py"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_frames_of_protocol_five_are_the_memory_itself():
    array = usm.zeros(1 << 20, "u1", kind="shared", device="host")
    frames = []
    pickle.dumps(array, 5, buffer_callback=frames.append)
    array[5] = 9
    assert frames[0].raw()[5] == 9
