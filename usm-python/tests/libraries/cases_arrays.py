"""Exchanges with libraries of arrays, of programs over arrays, and of devices."""

import tempfile
from pathlib import Path

import numpy as np

import usm
from exchange import array, exchange, shares


def matrix():
    return array(range(12), "f8", (4, 3))


@exchange("jax", "jax.numpy.asarray(a)")
def _():
    import jax

    assert jax.numpy.asarray(array()).tolist() == [0, 1, 2, 3]


@exchange("jax", "jax.numpy.from_dlpack(a)")
def _():
    import jax

    assert (jax.numpy.from_dlpack(array()) + 1).tolist() == [1, 2, 3, 4]


@exchange("jax", "usm.from_dlpack(x), float8, bfloat16")
def _():
    import jax

    for dtype in (jax.numpy.float32, jax.numpy.bfloat16, jax.numpy.float8_e4m3fn):
        theirs = jax.numpy.asarray([0, 1, 2], dtype)
        assert usm.from_dlpack(theirs).tolist() == [0, 1, 2]


@exchange("ml_dtypes", "usm.asarray(bfloat16 array), np.asarray(a)")
def _():
    import ml_dtypes

    theirs = np.array([0, 1, 2], ml_dtypes.bfloat16)
    ours = usm.asarray(theirs)
    assert ours.tolist() == [0, 1, 2] and np.asarray(ours).dtype == ml_dtypes.bfloat16


@exchange("ml_dtypes", "usm.zeros(3, ml_dtypes.float8_e4m3fn)")
def _():
    import ml_dtypes

    assert usm.zeros(3, ml_dtypes.float8_e4m3fn, device="host").itemsize == 1


@exchange("SciPy", "scipy.linalg.inv(a), scipy.signal, scipy.ndimage")
def _():
    import scipy.linalg
    import scipy.ndimage
    import scipy.signal

    assert scipy.linalg.inv(array((2, 0, 0, 2), "f8", (2, 2))).tolist() == [[0.5, 0], [0, 0.5]]
    assert scipy.signal.convolve(array(), array()).shape == (7,)
    assert scipy.ndimage.gaussian_filter(matrix(), 1).shape == (4, 3)


@exchange("SciPy", "scipy.sparse.csr_array(a), its parts into usm")
def _():
    import scipy.sparse

    sparse = scipy.sparse.csr_array(matrix())
    parts = [usm.asarray(part) for part in (sparse.data, sparse.indices, sparse.indptr)]
    assert [len(part) for part in parts] == [11, 11, 5]


@exchange("SciPy", "usm.asarray(csr_array)", "0104", "csr_array")
def _():
    import scipy.sparse

    usm.asarray(scipy.sparse.csr_array(np.eye(3)))


@exchange("scikit-learn", "KMeans().fit(a)")
def _():
    from sklearn.cluster import KMeans

    assert KMeans(2, n_init=1).fit(matrix()).labels_.shape == (4,)


@exchange("scikit-learn", "StandardScaler().fit_transform(a)")
def _():
    from sklearn.preprocessing import StandardScaler

    assert abs(StandardScaler().fit_transform(matrix()).mean()) < 1e-9


@exchange("Pillow", "Image.fromarray(a), usm.asarray(image)")
def _():
    from PIL import Image

    image = Image.fromarray(array(range(12), "u1", (3, 4)))
    assert image.size == (4, 3) and usm.asarray(image).tolist()[1] == [4, 5, 6, 7]


@exchange("mpi4py", "Bcast(a), Allreduce(a, b)")
def _():
    from mpi4py import MPI

    one, two = array(), array()
    MPI.COMM_WORLD.Bcast(one)
    MPI.COMM_WORLD.Allreduce(one, two)
    assert two.tolist() == [0, 1, 2, 3]


@exchange("mpi4py", "Send and Recv of parts")
def _():
    from mpi4py import MPI

    one, two = array(), array()
    MPI.COMM_SELF.Sendrecv(one[1:3], 0, recvbuf=two[:2])
    assert two.tolist() == [1, 2, 2, 3]


@exchange("joblib", "joblib.dump, joblib.load, Parallel")
def _():
    import joblib

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        joblib.dump({"a": array()}, path)
        assert joblib.load(path)["a"].tolist() == [0, 1, 2, 3]
    done = joblib.Parallel(2, prefer="threads")(joblib.delayed(np.sum)(array()) for _ in range(3))
    assert done == [6, 6, 6]


@exchange("dask", "dask.array.from_array(a)")
def _():
    import dask.array

    assert dask.array.from_array(matrix(), 2).sum().compute() == 66


@exchange("numba", "@njit over a")
def _():
    import numba

    @numba.njit
    def double(values):
        values *= 2
        return values

    ours = array()
    assert double(ours) is ours and ours.tolist() == [0, 2, 4, 6]


@exchange("OpenCV", "cv2.GaussianBlur(np.asarray(a))")
def _():
    import cv2

    ours = array(range(16), "f4", (4, 4))
    cv2.GaussianBlur(np.asarray(ours), (3, 3), 1, dst=np.asarray(ours))
    assert ours[0, 0] != 0


@exchange("OpenCV", "cv2.GaussianBlur(a)", "0104", "not a numpy array")
def _():
    import cv2

    cv2.GaussianBlur(array(range(16), "f4", (4, 4)), (3, 3), 1)


@exchange("onnxruntime", "OrtValue of np.asarray(a), usm.from_dlpack(value)")
def _():
    import onnxruntime

    value = onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(array()))
    # Releases differ in where the method is.
    value = value if hasattr(value, "__dlpack__") else value._ortvalue
    assert usm.from_dlpack(value).tolist() == [0, 1, 2, 3]


@exchange("onnxruntime", "InferenceSession.run(.., {name: np.asarray(a)})")
def _():
    import onnx
    import onnxruntime

    tensor = onnx.helper.make_tensor_value_info
    node, kind = onnx.helper.make_node("Neg", ["x"], ["y"]), onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph([node], "g", [tensor("x", kind, [4])], [tensor("y", kind, [4])])
    opset = onnx.helper.make_opsetid("", 17)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.asarray(array())})[0].tolist() == [0, -1, -2, -3]


@exchange("tvm-ffi", "tvm_ffi.from_dlpack(a), usm.from_dlpack(tensor)")
def _():
    import tvm_ffi

    ours = array()
    tensor = tvm_ffi.from_dlpack(ours)
    assert usm.from_dlpack(tensor).pointer == ours.pointer


@exchange("torch", "torch.from_dlpack(a), torch.asarray(a)")
def _():
    import torch

    ours = array()
    assert torch.from_dlpack(ours).data_ptr() == ours.pointer == torch.asarray(ours).data_ptr()


@exchange("torch", "usm.asarray(tensor)")
def _():
    import torch

    theirs = torch.arange(4.0)
    assert shares(usm.asarray(theirs), theirs)


@exchange("dpctl", "dpctl.memory.as_usm_memory(a)")
def _():
    import dpctl.memory

    ours = usm.zeros(4, "f4", device="sycl")
    assert dpctl.memory.as_usm_memory(ours)._pointer == ours.pointer


@exchange("dpctl", "usm.asarray(MemoryUSMShared)")
def _():
    import dpctl.memory

    theirs = dpctl.memory.MemoryUSMShared(16, queue=dpctl.SyclQueue("cpu"))
    assert usm.asarray(theirs).pointer == theirs._pointer


@exchange("dpctl", "q.memcpy of usm.memory, q.prefetch")
def _():
    import dpctl

    import usm.memory

    queue = dpctl.SyclQueue("cpu")
    ours = usm.memory.MemoryUSMDevice(16, queue=queue)
    queue.memcpy(ours, np.arange(4, dtype="f4"), 16)
    assert np.frombuffer(ours.copy_to_host(), "f4").tolist() == [0, 1, 2, 3]
    queue.prefetch(usm.memory.MemoryUSMShared(16, queue=queue), 16)


@exchange("dpctl", "SyclQueue(usm.Queue), usm.Queue(SyclQueue)")
def _():
    import dpctl

    ours = usm.Queue("sycl:cpu")
    theirs = dpctl.SyclQueue(ours._get_capsule())
    assert usm.zeros(4, queue=theirs).tolist() == [0] * 4


@exchange("dpctl", "no runtime named: zeros(.., device='cpu') for dpctl")
def _():
    import dpctl.memory

    dpctl.memory.as_usm_memory(usm.zeros(4, device="cpu"))


@exchange("dpnp", "dpnp.from_dlpack(a)")
def _():
    import dpnp

    ours = usm.full(4, 2.0, "f4", device="sycl")
    assert dpnp.sum(dpnp.from_dlpack(ours)) == 8


@exchange("dpnp", "dpnp.asarray(a), usm.asarray(x)")
def _():
    import dpnp

    ours = usm.full(4, 2.0, "f4", device="sycl")
    assert usm.asarray(dpnp.asarray(ours)).tolist() == [2] * 4


@exchange("dpnp", "dpnp.add(x, a)", "0104", "usm.Array")
def _():
    import dpnp

    dpnp.add(dpnp.ones(4, dtype="f4"), usm.full(4, 2.0, "f4", device="sycl"))


@exchange("cuda.core", "StridedMemoryView of host memory")
def _():
    from cuda.core.utils import StridedMemoryView

    ours = array()
    view = StridedMemoryView.from_dlpack(ours, stream_ptr=-1)
    assert (view.ptr, view.shape) == (ours.pointer, (4,))
