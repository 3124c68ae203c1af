"""Arrays and launches of ready algorithms."""

from .. import _usm
from .._usm import Array, DType, Event, _nrt_window, asarray, empty
from ..errors import KernelError, RequestError

#: Items of a group on devices that are no CPU.
GROUP = 256
#: Most groups of a launch whose groups go over the array in turns.
MOST_GROUPS = 1024
#: Elements that one item of a CPU goes over.
CHUNK = 16384


def as_array(value, name="x", takes_complex=False):
    """An array of any library as a `usm.Array`, without a copy where it is one."""
    array = value if isinstance(value, Array) else asarray(value)
    check_elements(array.dtype, name, takes_complex)
    return array


def kind_of(dtype):
    """The kind of a type in NumPy; of bfloat16, which NumPy does not have, that of floats."""
    return "f" if dtype.name == "bfloat16" else dtype.kind


def work_type(dtype):
    """The type that kernels compute in, for results of this type."""
    return _usm.float32 if dtype.itemsize == 2 and kind_of(dtype) == "f" else dtype


def check_elements(dtype, name, takes_complex=False):
    kind, size = kind_of(dtype), dtype.itemsize
    if takes_complex and dtype.isnative and kind == "c" and size in (8, 16):
        return
    if not (dtype.isnative and (kind in "iub" or (kind == "f" and size in (2, 4, 8)))):
        names = "bool, int8 to int64, uint8 to uint64, float16 to float64" + ", complex64, complex128" * takes_complex
        raise KernelError(f"{name}: elements of type {dtype} are not for algorithms; {names} and bfloat16 are")


def result_kind(arrays):
    """The kind of memory of a new result: device memory if one of the arrays lies there, as in
    dpctl, else that of new arrays.
    """
    return "device" if any(array.kind == "device" for array in arrays) else None


def result_array(out, shape, dtype, arrays, queue=None):
    """`out`, checked, or a new array beside those that it is made of."""
    if out is None:
        return empty(shape, dtype, kind=result_kind(arrays), queue=queue or arrays[0].queue)
    if not isinstance(out, Array):
        out = asarray(out, copy=False)
    if out.shape != tuple(shape):
        raise RequestError(f"out has the shape {out.shape}, {tuple(shape)} is needed")
    if not may_cast(dtype, out.dtype):
        raise TypeError(f"out has elements of type {out.dtype.name}, results of type {DType(dtype).name} do not fit them")
    return out


def may_cast(source, target):
    """Whether NumPy's casting by the same kind allows a cast."""
    order = {"b": 0, "u": 1, "i": 2, "f": 3, "c": 4}
    source, target = order.get(kind_of(DType(source)), 9), order.get(kind_of(DType(target)), 9)
    return source <= target < 9


def flat(array):
    """The elements in order, as one dimension: a view where that is possible, else a copy."""
    if array.ndim == 1:
        return array
    if not array.is_c_contiguous:
        array = array.copy(queue=array.queue)
    return array.reshape(array.size)


def bits_of(array):
    """The memory of an array's elements as unsigned integers of their size."""
    return _nrt_window(array, array._address, list(array.shape), list(array.strides), f"<u{array.itemsize}" if array.itemsize > 1 else "|u1", array.readonly)


def is_cpu(queue):
    """Whether items of the queue's device are few and fast, as those of a CPU."""
    device = queue.device
    return device is None or device.type in ("cpu", "host")


def scratch(shape, dtype, queue):
    """A new array for numbers between launches. On a GPU device memory has no pages that the host
    takes away, and costs less.
    """
    return empty(shape, dtype, kind=None if is_cpu(queue) else "device", queue=queue)


def local_bytes(queue):
    """The bytes of local memory that a group of the queue's device may have."""
    device = queue.device
    return 1 << 15 if device is None else device.local_mem_size


def common_queue(arrays):
    """The queue of the first array that is of a device other than the host; else of the first."""
    queues = [array.queue for array in arrays]
    return next((queue for queue in queues if queue.device is not None and queue.device.type != "host"), queues[0])


class Run:
    """Launches on one queue, each after the one before."""

    def __init__(self, queue, after):
        self.queue = queue
        self.after = [after] if isinstance(after, Event) else list(after)
        self.event = None

    def launch(self, kernel, sizes, *arguments):
        """Launches a kernel over `global` or `(global, local)` items."""
        self.submit(kernel[sizes], *arguments)

    def submit(self, launch, *arguments):
        """Submits a kernel with its range."""
        self.event = launch.submit(*arguments, after=self.after)
        self.after = [] if self.queue.is_in_order else [self.event]

    def finish(self, result, wait, work=None):
        """Waits for the last launch, unless `wait` is false; with the elements of `work` the result
        has its own only after a wait.
        """
        is_elsewhere = work is not None and work is not result
        if (wait or is_elsewhere) and self.event is not None:
            self.event.wait()
        if is_elsewhere:
            _usm.copy(result, work)
        return result


def span(array):
    """The first byte of an array's elements, and the one behind the last."""
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides)]
    first = array._address + sum(step for step in reach if step < 0)
    return first, array._address + sum(step for step in reach if step > 0) + array.itemsize


def place_of_work(out, result, sources):
    """Where launches write a result: a new array if `out` overlaps a source that they still read
    when they write, else the result. `Run.finish` copies it. An item may write the element that it
    alone reads.
    """
    if out is None or not result.size:
        return result
    if all(are_apart(result, source) for source in sources):
        return result
    return empty(result.shape, result.dtype, kind=result_kind([result]), queue=result.queue)


def overlap(array, other):
    """Whether the bytes from the first to the last of two arrays meet."""
    (begin, end), (first, last) = span(array), span(other)
    return bool(array.size and other.size) and begin < last and first < end


def are_apart(result, source):
    """Whether items may write a result while others read a source: no bytes meet, or each element
    of the result lies on the source's of the same place.
    """
    is_in_place = result._address == source._address and result.strides == source.strides and result.shape == source.shape
    return is_in_place or not overlap(result, source)
