"""Arrays between ranks: `mpiexec -n 2 python with_mpi.py`. Needs `mpi4py` and an MPI."""

import sys

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    sys.exit(f"{error}: pip install mpi4py mpich")

import usm

ranks = MPI.COMM_WORLD
rank, size = ranks.Get_rank(), ranks.Get_size()

# Host and shared memory goes by its buffer, without a copy on our side.
mine = usm.full(4, rank + 1, "f8", kind="host", device="host")
total = usm.empty(4, "f8", kind="shared", device="host")
ranks.Allreduce(mine, total, op=MPI.SUM)
assert total.tolist() == [size * (size + 1) / 2] * 4

if size > 1:
    other = usm.empty(4, "f8", kind="shared", device="host")
    if rank == 0:
        ranks.Send(mine, dest=1, tag=7)
    elif rank == 1:
        ranks.Recv(other, source=0, tag=7)
        assert other.tolist() == [1.0] * 4

# Lower case: pickles, of every kind of memory.
sent = usm.asarray([1, 2, 3], dtype="i4", kind="device", device="host") if rank == 0 else None
back = ranks.bcast(sent, root=0)
assert back.tolist() == [1, 2, 3] and back.kind == "device"
print(f"rank {rank} of {size}: done")
