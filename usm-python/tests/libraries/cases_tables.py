"""Exchanges with libraries of tables, columns and files."""

import io
import tempfile
from pathlib import Path

import numpy as np

import usm
from exchange import array, exchange, shares


def matrix():
    return array(range(12), "f8", (4, 3))


@exchange("pandas", "pandas.Series(a)")
def _():
    import pandas

    assert pandas.Series(array()).sum() == 6


@exchange("pandas", "pandas.DataFrame(a)")
def _():
    import pandas

    assert pandas.DataFrame(matrix(), columns=list("xyz"))["z"].tolist() == [2, 5, 8, 11]


@exchange("pandas", "usm.asarray(series)")
def _():
    import pandas

    assert usm.asarray(pandas.Series([1.0, 2.0])).tolist() == [1, 2]


@exchange("pandas", "usm.asarray(frame)")
def _():
    import pandas

    assert usm.asarray(pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})).tolist() == [[1, 3], [2, 4]]


@exchange("polars", "polars.Series(a)")
def _():
    import polars

    assert polars.Series("x", array()).sum() == 6


@exchange("polars", "usm.asarray(series)")
def _():
    import polars

    assert usm.asarray(polars.Series([1.5, 2.5])).tolist() == [1.5, 2.5]


@exchange("polars", "usm.asarray(frame)")
def _():
    import polars

    assert usm.asarray(polars.DataFrame({"x": [1.0], "y": [3.0]})).tolist() == [[1, 3]]


@exchange("pyarrow", "pyarrow.array(a)")
def _():
    import pyarrow

    ours = array()
    assert pyarrow.array(ours).buffers()[1].address == ours.pointer


@exchange("pyarrow", "pyarrow.py_buffer(a), Tensor.from_numpy")
def _():
    import pyarrow

    ours = array()
    assert pyarrow.py_buffer(ours).address == ours.pointer
    assert pyarrow.Tensor.from_numpy(np.asarray(ours)).to_numpy().tolist() == [0, 1, 2, 3]


@exchange("pyarrow", "usm.asarray(array), usm.asarray(tensor)")
def _():
    import pyarrow

    assert usm.asarray(pyarrow.array([1.0, 2.0])).tolist() == [1, 2]
    assert usm.asarray(pyarrow.Tensor.from_numpy(np.arange(4.0))).tolist() == [0, 1, 2, 3]


@exchange("pyarrow", "usm.asarray(column of a Parquet file)")
def _():
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"x": [1.0, 2.0]}), file)
    file.seek(0)
    assert usm.asarray(pyarrow.parquet.read_table(file)["x"]).tolist() == [1, 2]


@exchange("pyarrow", "usm.asarray(chunks, copy=False)", "0093", "copy=False")
def _():
    import pyarrow

    usm.asarray(pyarrow.chunked_array([[1, 2], [3]]), copy=False)


@exchange("pyarrow", "usm.asarray(column with nulls)", "0093", "null")
def _():
    import pyarrow

    usm.asarray(pyarrow.array([1, None]))


@exchange("nanoarrow", "nanoarrow.Array(a), usm.asarray(array)")
def _():
    import nanoarrow

    assert nanoarrow.Array(array()).to_pylist() == [0, 1, 2, 3]
    assert usm.asarray(nanoarrow.c_array([1, 2], nanoarrow.int32())).tolist() == [1, 2]


@exchange("xarray", "xarray.DataArray(a)")
def _():
    import xarray

    assert float(xarray.DataArray(matrix(), dims=("x", "y")).sum()) == 66


@exchange("xarray", "usm.asarray(data_array)")
def _():
    import xarray

    assert usm.asarray(xarray.DataArray([1.0, 2.0])).tolist() == [1, 2]


@exchange("h5py", "create_dataset(data=a), usm.asarray(dataset)")
def _():
    import h5py

    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("a", data=array())
        assert usm.asarray(dataset).tolist() == [0, 1, 2, 3]


@exchange("h5py", "dataset.read_direct(np.asarray(a)), dataset[:] = a")
def _():
    import h5py

    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset, target = file.create_dataset("a", (4,), "f4"), array()
        dataset[:] = target
        dataset.read_direct(np.asarray(target))
        assert target.tolist() == [0, 1, 2, 3]


@exchange("h5py", "dataset.read_direct(a)", "0104", "")
def _():
    import h5py

    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        file.create_dataset("a", data=[0.0, 1, 2, 3]).read_direct(array())


@exchange("zarr", "zarr.array(a), usm.asarray(z)")
def _():
    import zarr

    made = zarr.array(array())
    assert usm.asarray(made).tolist() == [0, 1, 2, 3]


@exchange("zarr", "z[:] = a")
def _():
    import zarr

    made = zarr.zeros((4,), dtype="f4")
    made[:] = array()
    assert made[:].tolist() == [0, 1, 2, 3]


@exchange("safetensors", "save_file({..: np.asarray(a)}), usm.load")
def _():
    from safetensors.numpy import save_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.safetensors")
        save_file({"a": np.asarray(array())}, path)
        assert usm.load(path)["a"].tolist() == [0, 1, 2, 3]


@exchange("safetensors", "save_file({..: a})")
def _():
    from safetensors.numpy import load_file, save_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.safetensors")
        save_file({"a": array()}, path)
        assert load_file(path)["a"].tolist() == [0, 1, 2, 3]


@exchange("safetensors", "usm.save, load_file")
def _():
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.safetensors")
        usm.save(path, {"a": array()})
        theirs = load_file(path)["a"]
    assert theirs.tolist() == [0, 1, 2, 3] and shares(usm.asarray(theirs), theirs)
