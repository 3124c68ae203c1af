"""Arrays in a Dask cluster of two processes: they travel as themselves. Needs
`dask[distributed]`."""

import sys

try:
    from dask.distributed import Client, LocalCluster
except ImportError as error:
    sys.exit(f"{error}: pip install 'dask[distributed]'")

import usm
import usm.dask  # once in each process: elements are sent as they lie, without a pickle


def add_one(array):
    array = array.copy()  # the worker keeps what it was given
    view = memoryview(array)
    for index in range(len(view)):
        view[index] += 1
    return array


def main():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "usm.dask")
        sent = usm.asarray([1, 2, 3], dtype="i4", device="host")
        there = client.scatter(sent)
        futures = [client.submit(add_one, there, pure=False, workers=[worker]) for worker in client.nthreads()]
        for back in client.gather(futures):
            assert isinstance(back, usm.Array) and back.kind == sent.kind and back.dtype == sent.dtype
            assert back.tolist() == [2, 3, 4], back
        print("two workers gave back", futures[0].result())


if __name__ == "__main__":  # the processes import this file
    main()
