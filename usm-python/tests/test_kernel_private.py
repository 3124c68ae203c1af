"""Private arrays fit, also in threads with small stacks; memory of groups has limits."""

import threading

import numpy as np
import pytest

import usm

HEAD = "import usm\n\n\n@usm.kernel\ndef many(a, n):\n    i = usm.get_global_id(0)\n"
BARRIER = "    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)\n"


def many(folder, arrays, elements, barriers):
    """A kernel with so many private arrays of doubles, all in use."""
    body = "".join(f"    p{k} = usm.private.array({elements}, 'float64')\n" for k in range(arrays))
    body += f"    for j in range({elements}):\n" + "".join(f"        p{k}[j] = i + {k} * j\n" for k in range(arrays))
    body += BARRIER * barriers
    body += "    s = 0.0\n" + "".join(f"    s += p{k}[(n + i) % {elements}]\n" for k in range(arrays))
    body += "    a[i] = s\n"
    file = folder / f"many_{arrays}_{elements}_{barriers}.py"
    file.write_text(HEAD + body)
    space = {"__name__": file.stem, "__file__": str(file)}
    exec(compile(file.read_text(), file, "exec"), space)
    return space["many"]


def assert_right(kernel, arrays, elements, group):
    a = usm.zeros(2 * group, "float64", device="host")
    kernel[2 * group, group](a, 5)
    place = (5 + np.arange(2 * group)) % elements
    expected = arrays * np.arange(2 * group) + place * (arrays * (arrays - 1) // 2)
    assert memoryview(a).tolist() == expected.tolist()


@pytest.mark.parametrize("way", ["cc", "builtin"])
@pytest.mark.parametrize("barriers", [0, 1])
# Around 16 KiB, above a small thread's stack, above a large one's.
@pytest.mark.parametrize(("arrays", "elements"), [(1, 2048), (2, 1025), (16, 4096), (300, 4096)])
def test_all_private_arrays_fit(arrays, elements, barriers, way, request, tmp_path, monkeypatch):
    if way == "cc":
        request.getfixturevalue("compiler")
    monkeypatch.setenv("USM_KERNEL_HOST", way)
    kernel = many(tmp_path, arrays, elements, barriers)
    assert_right(kernel, arrays, elements, 4)


@pytest.mark.parametrize("way", ["cc", "builtin"])
@pytest.mark.parametrize("kib", [64, 128, 256])
def test_also_in_a_small_thread(kib, way, request, tmp_path, monkeypatch):
    if way == "cc":
        request.getfixturevalue("compiler")
    monkeypatch.setenv("USM_KERNEL_HOST", way)
    kernels = [(many(tmp_path, arrays, 2048, 0), arrays) for arrays in (1, 4, 16)]
    for kernel, arrays in kernels:
        # Made here: the threads only run.
        assert_right(kernel, arrays, 2048, 4)
    failed = []

    def run():
        try:
            for kernel, arrays in kernels:
                assert_right(kernel, arrays, 2048, 4)
        except BaseException as error:
            failed.append(error)

    before = threading.stack_size(kib * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not failed, failed


def test_more_private_memory_than_the_limit_is_refused(tmp_path):
    kernel = many(tmp_path, 9, 4096, 1)
    a = usm.zeros(2048, "float64", device="host")
    message = "private arrays of 294912 bytes, for 1024 work-items at a time: 301989888 bytes, and 268435456 are the most"
    with pytest.raises(usm.KernelError, match=message):
        kernel[1024, 1024](a, 5)
    with pytest.raises(usm.KernelError, match=message):
        kernel.check[1024, 1024](a, 5)
    kernel[8, 8](a, 5)


@usm.kernel
def through_local(a, rows):
    l = usm.get_local_id(0)
    rows[l] = a[usm.get_global_id(0)]
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    a[usm.get_global_id(0)] = rows[l] + 1


@pytest.mark.parametrize("check", [False, True])
def test_local_memory_and_groups_keep_the_limits_of_the_host(check):
    a = usm.zeros(2048, "float64", device="host")
    device = a.device
    kernel = through_local.check if check else through_local
    most = device.local_mem_size // 8
    kernel[8, 8](a, usm.Local(most, "float64"))
    assert memoryview(a)[:9].tolist() == [0.0 if check else 1.0] * 8 + [0.0]
    for elements in (most + 1, 2**31, 2**37):
        with pytest.raises(usm.KernelError, match=f"{device.local_mem_size}"):
            kernel[8, 8](a, usm.Local(elements, "float64"))
    items = device.max_work_group_size
    kernel[items, items](a, usm.Local(items, "float64"))
    with pytest.raises(usm.KernelError, match=f"{device.max_work_group_size}"):
        kernel[2 * items, 2 * items](a, usm.Local(items, "float64"))
