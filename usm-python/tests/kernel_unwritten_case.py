"""Kernels that read memory which no item wrote, on the host; prints the number of old words."""

import numpy as np

import usm

ITEMS = 4096


@usm.kernel
def leave(a):
    """Leaves secrets in the memory of groups and items."""
    lm = usm.local.array(64, np.int32)
    own = usm.private.array(16, np.int32)
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    for k in range(l, 64, usm.get_local_size(0)):
        lm[k] = 0x5EC4E7
    for k in range(16):
        own[k] = 0x5EC4E7
    usm.barrier()
    a[i] = lm[(i * 7) % 64] & own[i % 16]


@usm.kernel
def find(some, a):
    """Bits of memory that no item wrote."""
    lm = usm.local.array(64, np.int32)
    own = usm.private.array(16, np.int32)
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    if some[0] == 77:
        lm[l] = 1
        own[l % 16] = 1
    usm.barrier()
    a[i] = lm[(i * 7) % 64] | own[i % 16]


@usm.kernel
def find_own(some, a):
    """Bits of private memory, without barriers."""
    own = usm.private.array(16, np.int32)
    i = usm.get_global_id(0)
    if some[0] == 77:
        own[i % 16] = 1
    a[i] = own[i % 16] | own[(i + some[0]) % 16]


@usm.kernel
def find_of_others(some, a):
    """Bits of memory that only the first groups write."""
    lm = usm.local.array(64, np.int32)
    own = usm.private.array(16, np.int32)
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    if usm.get_group_id(0) < some[0]:
        for k in range(l, 64, usm.get_local_size(0)):
            lm[k] = 1
        for k in range(16):
            own[k] = 1
    usm.barrier()
    a[i] = lm[(i * 7) % 64] | own[i % 16]


@usm.kernel
def mirror(some, a):
    """Writes as many elements as the group has items, and reads all of the array."""
    lm = usm.local.array(64, np.int32)
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    lm[l] = some[0]
    usm.barrier()
    a[i] = lm[63 - l]


def old_words(make, back):
    """The number of words that are not zero where nobody wrote."""
    secrets, some, a = make(np.full(ITEMS, 5, np.int32)), make(np.full(1, 5, np.int32)), make(np.zeros(ITEMS, np.int32))
    old = 0
    for group in (16, 64):
        for kernel in (find, find_own):
            leave[ITEMS, group](secrets)
            assert (back(secrets) == 0x5EC4E7).all()
            kernel[ITEMS, group](some, a)
            old += np.count_nonzero(back(a))
        find_of_others[ITEMS, group](some, a)
        old += np.count_nonzero(back(a) != (np.arange(ITEMS) < 5 * group))
        leave[ITEMS, group](secrets)
        mirror[ITEMS, group](some, a)
        old += np.count_nonzero(back(a) != (5 if group == 64 else 0))
    return old


if __name__ == "__main__":
    with usm.device_context("host"):
        print(old_words(lambda array: array, lambda array: array))
