"""The whole surface of the package as a user writes it. Checked by mypy in strict mode, and run."""

import os
import sys
import tempfile
from typing import Any, Literal, assert_type

import usm
from usm import memory, nrt

Kind = Literal["host", "device", "shared"]


def devices() -> None:
    found: list[usm.Device] = usm.devices()
    assert_type(usm.devices()._repr_html_(), str)
    assert_type(found[0], usm.Device)
    device = usm.Device("host")
    assert_type(usm.Device(), usm.Device)
    assert_type((device.platform, device.driver_version), tuple[str, str])
    assert_type((device.selector, device.name, device.vendor, device.backend, device.type), tuple[str, str, str, str, str])
    assert_type(device.max_alloc_size + device.global_mem_size + device.local_mem_size, int)
    assert_type(device.max_work_group_size, int)
    assert_type(device.integrated, bool)
    assert_type(device.free_memory, int | None)
    assert_type(device._repr_html_(), str)
    bundles = (usm.devices(), device, usm.zeros(3, device="host"), usm.snapshot())
    assert_type([it._repr_mimebundle_(include=None, exclude=None) for it in bundles], list[dict[str, str]])
    assert_type(device.capabilities, dict[str, int])
    context: usm.Context = device.context
    assert_type(context.device, usm.Device | None)
    assert_type(context.query(0), tuple[str, int, int])
    assert_type(context.stats(), dict[str, Any])
    context.keep_history(2)
    for record in context.history():
        assert_type(record["operation"], Literal["allocate", "free", "refuse"])
        assert_type((record["address"], record["bytes"], record["current"], record["peak"]), tuple[int, int, int, int])
        assert_type((record["text"], record["time"]), tuple[str, float])
        assert_type((record["queue"], record["lines"]), tuple[int | None, list[tuple[str, int, str]]])
        assert_type(record["type"], Literal["cl_mem", "usm_host", "usm_shared", "usm_device"])
    context.synchronize(timeout=1.0)
    assert_type(context.can_access_peer(context), bool)
    for allow in (context.enable_peer_access, context.disable_peer_access):
        try:
            allow(context)
        except usm.DeviceError:
            pass
    assert usm.Context(device) != context and hash(context) == hash(device.context)
    seen: usm.Snapshot = usm.snapshot()
    assert_type(seen.blocks, list[dict[str, Any]])
    seen.dump(os.devnull)
    seen.trace(os.devnull)
    assert_type(seen._repr_svg_(), str)
    with usm.track() as tracked:
        usm.reset_peak()
    assert_type((tracked.live, tracked.peak, tracked.allocations), tuple[int, int, int])
    assert_type(usm.backends(), list[dict[str, Any]])
    assert_type(usm.__version__, str)
    assert_type(usm.stats(), dict[str, dict[str, Any]])
    assert_type(usm.trim(), int)
    assert {name: len(records) for name, records in usm.history(keep=0, lines=False).items()} is not None


def queues() -> None:
    queue = usm.Queue("host", in_order=False)
    assert_type(queue.device, usm.Device | None)
    assert_type(queue.context.queue, usm.Queue)
    assert_type(queue.is_in_order, bool)
    assert_type(queue.number, int)
    one, two = usm.zeros(3, queue=queue), usm.zeros(3, queue=queue)
    event: usm.Event = queue.copy(one, two)
    event.wait(timeout=1.0)
    assert_type(event.done, bool)
    # Only a timed queue has them, and only some runtimes have such queues.
    _times = lambda: assert_type(event.times(), tuple[int, int])
    queue.barrier().wait()
    queue.wait()
    queue.wait(timeout=1.0)
    with usm.Pool("host", kind="shared", limit=1 << 20) as pool:
        assert_type((pool, pool.context), tuple[usm.Pool, usm.Context])
        assert_type((pool.stats(), pool.trim()), tuple[dict[str, int], int])
    with usm.Device("host") as device, queue as inner, usm.device_context("host") as innermost:
        assert_type((device, inner, innermost), tuple[usm.Device, usm.Queue, usm.Queue])


def arrays() -> None:
    kind: Kind = "shared"
    made = usm.empty((2, 3), "<f4", kind=kind, queue="host", alignment=64)
    array = usm.asarray([[1, 2, 3], [4, 5, 6]], dtype="<f4", kind="host", queue="host", copy=None)
    assert_type(array.shape, tuple[int, ...])
    assert_type(array.strides, tuple[int, ...])
    assert_type(array.dtype, usm.DType)
    dtype = usm.DType("float32")
    signed = [usm.int8, usm.int16, usm.int32, usm.int64]
    unsigned = [usm.uint8, usm.uint16, usm.uint32, usm.uint64]
    others = [usm.bool_, usm.float16, usm.float32, usm.float64, usm.complex64, usm.complex128, usm.bfloat16]
    assert_type(signed + unsigned + others, list[usm.DType])
    assert_type((dtype.str, dtype.name, dtype.kind, dtype.itemsize), tuple[str, str, str, int])
    assert_type((dtype.byteorder, dtype.isnative, dtype.hasobject, dtype.subdtype), tuple[str, bool, bool, None])
    assert (dtype.base, dtype.shape, dtype.names, dtype.fields) == (dtype, (), None, None)
    assert dtype == array.dtype and hash(dtype) == hash(array.dtype) and dtype.descr == [("", "<f4")] and dtype.dtype == dtype
    assert_type(usm.full((2, 3), 1.5, device="host"), usm.Array)
    for like in (usm.empty_like(array), usm.zeros_like(array, "<i4"), usm.full_like(array, 2, kind="host", device="host")):
        assert_type(like, usm.Array)
    assert_type(array.to_device("host"), usm.Array)
    assert_type((array.ndim, array.size, array.itemsize, array.nbytes, array.pointer), tuple[int, int, int, int, int])
    assert_type(array.kind, Kind)
    assert_type((array.readonly, array.is_c_contiguous, array.is_f_contiguous), tuple[bool, bool, bool])
    assert_type((array.queue, array.context, array.device), tuple[usm.Queue, usm.Context, usm.Device | None])
    assert array.base is None
    usm.copy(made, array)
    assert_type(made.reshape(6).reshape((3, -1)).T.copy(kind="host", queue=None), usm.Array)
    assert_type(made.T.ravel(), usm.Array)
    assert_type(made.transpose(1, 0), usm.Array)
    assert_type(made.transpose((1, 0)), usm.Array)
    assert_type(made.ravel(order="F"), usm.Array)
    if made.device is not None and made.device.backend == "sycl":
        assert_type(made.usm_type, Kind)
        assert hasattr(made, "sycl_queue") is ("dpctl" in sys.modules)
    assert made.ctypes.data == made.pointer
    made.fill(2.5)
    made[0, 1:] = [1, 2]
    assert_type(made[0], usm.Array)
    assert_type([len(row) for row in made], list[int])
    made.wait()
    assert_type((made.prefetch(), made.advise("reset", queue=None)), tuple[usm.Event, usm.Event])
    try:
        assert_type(usm.open_ipc(made.ipc_handle(), device="host"), usm.Array)
    except usm.DeviceError as error:
        assert "between processes" in str(error)
    one = made[1, 2]
    assert one.item() == 2.5 and int(one) == 2 and float(one) == 2.5 and bool(one)
    assert made.tolist()[1] == [2.5, 2.5, 2.5] and len(made.tobytes()) == 24
    assert (made.astype("f8", casting="safe").dtype.char, made.dtype.num, made.dtype.type(1)) == ("d", 11, 1)
    assert_type((made.view("u1"), usm.asarray([1, 2], "f4")), tuple[usm.Array, usm.Array])
    assert memoryview(made).nbytes == 24
    assert_type(made.__array_interface__, dict[str, Any])
    assert_type(made.__dlpack_device__(), tuple[int, int])
    _ = made.__arrow_c_schema__(), made.__arrow_c_array__(), made.__arrow_c_device_array__(None)
    assert made.__dlpack__(stream=None, max_version=(1, 3), dl_device=None, copy=True) is not None
    assert usm.Array.__dlpack_c_exchange_api__ is not None
    assert usm.Array.__c_dlpack_exchange_api__ is not None
    assert_type(usm.from_dlpack(made, dl_device=None, copy=None), usm.Array)
    assert_type(usm.validate(made), int)
    assert usm.to_numpy(made).shape == (2, 3)
    assert_type(usm.zeros(3), usm.Array)


def files() -> None:
    path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
    usm.save(path, {"a": usm.zeros(3)}, metadata={"by": "a test"})
    loaded = usm.load(path, device=None, threads=2)
    assert not isinstance(loaded, usm.Array)
    assert_type(loaded["a"], usm.Array)
    assert_type(loaded.metadata, dict[str, str])
    assert list(loaded) == ["a"]


def memories() -> None:
    shared = memory.MemoryUSMShared(16, alignment=64, queue=usm.Queue("host"), copy=False)
    for block in shared, memory.MemoryUSMHost(16, queue="host"), memory.MemoryUSMDevice(16, queue="host"):
        assert_type((block.nbytes, block.size), tuple[int, int])
        assert_type(block.get_usm_type(), str)
        assert_type(block.get_usm_type_enum(), int)
        block.memset(1)
        block.copy_from_host(bytes(16))
        block.copy_from_device(block.__class__(16, queue="host"))
        assert len(block.copy_to_host()) == 16
        assert_type(block.tobytes(), bytes)
        assert len(bytes(block)) == len(block) == 16
        assert_type(block.queue, usm.Queue)
        assert block.reference_obj is None
    try:
        memory.as_usm_memory(object())
    except (usm.InterfaceError, TypeError) as error:
        assert str(error)
    assert issubclass(memory.USMAllocationError, MemoryError)


def of_sycl(array: usm.Array, block: memory.MemoryUSMShared) -> tuple[dict[str, Any], ...]:
    """For devices that a plain host has not."""
    assert_type((block._pointer, block._is_dpctls, array._address), tuple[int, bool, int])
    found = (block.sycl_queue, block._queue, block.sycl_context, block._context, block.sycl_device)
    assert all(found)
    assert array.queue._get_capsule() and array.context._get_capsule()
    return (
        array.__sycl_usm_array_interface__,
        array.__cuda_array_interface__,
        block.__sycl_usm_array_interface__,
    )


def blocks() -> None:
    assert_type(nrt.get_library(), str)
    assert_type(nrt.get_include(), str)
    nrt.track(True, origins=False)
    block: nrt.MemInfo = nrt.MemInfo.allocate(100, alignment=64)
    assert_type((block.address, block.data, block.size, block.refcount), tuple[int, int, int, int])
    assert_type((block.kind, block.readonly), tuple[Kind, bool])
    assert nrt.MemInfo.from_address(block.address).parent is None
    block.acquire()
    block.release()
    assert len(block) == len(memoryview(block)) == 100
    assert [leak.size for leak in nrt.leaks() if leak.address == block.address] == [100]
    nrt.track(False)
    assert_type(nrt.leaks(), list[nrt.LiveBlock])
    stats: nrt.AllocationStats = nrt.get_allocation_stats()
    assert_type(stats.alloc - stats.free + stats.mi_alloc - stats.mi_free, int)
    assert nrt.MemInfo(bytearray(4)).size == 4


def errors() -> None:
    classes: list[type[usm.Error]] = [
        usm.AccessError,
        usm.AllocationError,
        usm.DeviceError,
        usm.InterfaceError,
        usm.KernelError,
        usm.RequestError,
        usm.WaitTimeout,
    ]
    assert all(issubclass(error, usm.Error) for error in classes)


def plans() -> None:
    plan = usm.plan([(0, 2, 4096), (1, 3, 1024)], queue="in-order", strategy="auto", alignment=64)
    assert_type(plan, usm.Plan)
    # None only of a plan that is not feasible.
    assert_type((plan.offsets, plan.peak), tuple[memoryview | Any, int | Any])
    assert_type(plan.sizes, memoryview)
    assert_type((plan.ids, plan.names, plan.order), tuple[list[int], list[str | None], list[str] | None])
    assert_type((plan.lower_bound, len(plan)), tuple[int, int])
    assert_type((plan.order_optimal, plan.order_bound), tuple[bool, int | None])
    assert_type(plan.order_optimality, str | None)
    assert_type((plan.spilled, plan.ordering_edges), tuple[list[int], list[tuple[str, str]]])
    assert_type(plan.memories, list[str])
    assert_type(plan.proof, str | None)
    assert_type((plan.optimal, plan.feasible), tuple[bool, bool])
    assert_type((plan.certificate, plan.to_dict()), tuple[dict[str, Any], dict[str, Any]])
    assert_type((plan.dims, plan.range_plan), tuple[list[dict[str, Any]], str | None])
    if plan.dims:
        assert_type(plan.at(width=64), usm.Plan)
        assert_type(plan.at_every("width", width=64), tuple[memoryview, memoryview])
    tensors = [{"id": 0, "size": 4096}, {"id": 1, "size": 1024}]
    operators = [{"name": "a", "inputs": [], "outputs": [0]}, {"name": "b", "inputs": [0], "outputs": [1]}]
    graph = usm.plan({"tensors": tensors, "ops": operators, "outputs": [1]})
    curve = graph.recompute_curve(budget=8192, bytes_per_cost=0.5, time_limit=1)
    assert_type((curve, len(curve)), tuple[usm.RecomputeCurve, int])
    assert_type((curve.points, curve.graph(0), curve.bound), tuple[list[dict[str, Any]], dict[str, Any], int])
    curve.to_svg(os.devnull)
    plan.to_svg(os.devnull)
    plan.verify()
    assert_type(plan._repr_svg_(), str)
    plan.to_html(os.devnull)
    arena = plan.arena({"device": "host"}, kind={"device": "host"})
    arena = plan.arena("host", kind="host")
    assert_type((arena[0], arena.array(1, (16, 16), "f4")), tuple[usm.Array, usm.Array])
    assert_type((arena.keys(), list(arena), len(arena)), tuple[list[str | int], list[str | int], int])
    assert_type((arena.nbytes, arena.queue), tuple[int, usm.Queue])
    assert isinstance(arena, usm.Arena) and 0 in arena


def shown(plan: usm.Plan) -> str | None:
    """For machines with a screen."""
    return plan.show()


@usm.kernel
def add_one(a: Any) -> None:
    a[usm.get_global_id(0)] += 1


def kernels() -> None:
    array = usm.zeros(4, "int32", queue="host")
    assert_type(add_one, usm.KernelFunction)
    assert_type(add_one[4], usm.KernelLaunch)
    usm.set_threads(2)
    add_one[4, usm.DEFAULT_LOCAL_SIZE](array)
    usm.call_kernel(add_one, usm.NdRange((4,), (2,)), array)
    add_one[usm.Range(4)](array)
    assert (add_one.proof[4](array), add_one.check[4](array)) == ("proven", None)
    assert_type(add_one[4].submit(array, after=[]), usm.Event)
    usm.call_kernel_async(add_one, 4, array).wait()
    assert memoryview(array).tolist() == [5] * 4
    assert "usm_add_one" in add_one.code("opencl-c", "int32[:]", ndim=1)
    assert_type((add_one.local_mem_size, add_one.max_work_group_size), tuple[int, int | None])
    assert callable(finished)


def finished(module: usm.Module, array: usm.Array) -> None:
    """Not run, because the host refuses modules."""
    kernel = module["fill"]
    assert_type(kernel, usm.Kernel)
    assert_type((kernel.name, kernel.max_work_group_size, kernel.local_mem_size), tuple[str, int, int])
    kernel[4, 2](array, 1)
    assert_type(usm.launch(kernel, usm.NdRange(4, 2), [array, 1], after=()), usm.Event)
    usm.Module("__kernel void fill() {}", format="opencl-c", queue=array.queue, options="")


def refused(array: usm.Array) -> None:
    """Lines that mypy refuses; where it accepts one, the unused comment is an error."""
    usm.zeros(3, kind="unified")  # type: ignore[arg-type]
    usm.zeros("3")  # type: ignore[arg-type]
    usm.asarray([1], place="host")  # type: ignore[call-arg]
    array.shape = (1,)  # type: ignore[misc]
    array.fill("one")  # type: ignore[arg-type]
    usm.Queue("host").wait("1")  # type: ignore[arg-type]
    array.reshape(shape=(1,))  # type: ignore[call-arg]
    array.nothing  # type: ignore[attr-defined]


if __name__ == "__main__":
    for part in devices, queues, arrays, files, memories, blocks, errors, plans, kernels:
        part()
    print("ok")
