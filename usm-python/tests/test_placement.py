"""Hints on the place of memory, and handles for other processes."""

import struct

import pytest

import usm


def test_hints_change_no_value(queue, kind):
    array = usm.full((4, 3), 5, "<i4", kind=kind, queue=queue)
    array.prefetch().wait()
    array[1:].prefetch(queue=queue).wait()
    for advice in ("read_mostly", "prefer_device", "prefer_host", "reset"):
        array.advise(advice, queue=queue.context).wait()
    assert array.tolist() == [[5] * 3] * 4
    usm.asarray(b"fixed").prefetch().wait()


def test_unknown_hints_are_refused(queue):
    array = usm.zeros(4, queue=queue)
    with pytest.raises(usm.RequestError, match='"often" is not "read_mostly"'):
        array.advise("often")
    with pytest.raises(TypeError, match="advice: an object of type int"):
        array.advise(5)
    with pytest.raises(TypeError, match="queue: an object of type float"):
        array.prefetch(queue=1.5)
    with pytest.raises(usm.RequestError, match="context"):
        array.prefetch(queue=usm.Context(queue.device))


def test_handles_are_refused_where_the_runtime_has_none(queue, kind):
    with pytest.raises(usm.DeviceError, match="memory shared between processes is not supported"):
        usm.zeros(10, kind=kind, queue=queue).ipc_handle()


def sealed(content):
    """A handle of this content, with the checksum: 64-bit FNV-1a of length and content."""
    length, checksum = struct.pack("<Q", len(content)), 0xCBF29CE484222325
    for byte in length + content:
        checksum = (checksum ^ byte) * 0x100000001B3 % (1 << 64)
    return struct.pack("<Q", checksum) + length + content


def content(text="<f4\n\n0\n4\n4\nfalse", size=16, magic=b"usm2", backend=4, kind=2):
    return magic + struct.pack("<BBxxQQ", backend, kind, 0, size) + bytes(64 + 16) + text.encode()


def handle(*arguments, **keywords):
    return sealed(content(*arguments, **keywords))


def test_a_handle_of_another_runtime_names_it():
    with pytest.raises(usm.DeviceError, match="of another runtime"):
        usm.open_ipc(handle(), device="host")
    # An empty array and one with members are no less well formed.
    for text in ("<f4\n\n0\n0\n4\nfalse", "|V8\n[('a', '<i4'), ('b', '<f4')]\n8\n1\n8\ntrue", "bfloat16\n\n14\n2 2\n-4 -2\nfalse"):
        with pytest.raises(usm.DeviceError):
            usm.open_ipc(handle(text), device="host")


@pytest.mark.parametrize(
    "altered",
    [
        sealed(b""),
        sealed(content()[:103]),
        handle(magic=b"usm1"),
        handle(backend=99),
        handle(kind=77),
        handle(size=0),
        handle(size=1 << 63),
        handle(size=15),
        handle(""),
        handle("<f4\n\n0\n4\n4"),
        handle("<f4\n\n0\n4\n4\nmaybe"),
        handle("<f4\n\n-4\n4\n4\nfalse"),
        handle("<f4\n\n4\n4\n4\nfalse"),
        handle("<f4\n\n0\n4\n-4\nfalse"),
        handle("<f4\n\n0\n4 4\n4\nfalse"),
        handle("<f4\n\n0\n-4\n4\nfalse"),
        handle("<f4\n\n0\n4x\n4\nfalse"),
        handle("<f4\n\n0\n9223372036854775807\n9223372036854775807\nfalse"),
        handle("<f4\n\n0\n" + "1 " * 65 + "\n" + "4 " * 65 + "\nfalse"),
        handle("|O\n\n0\n1\n4\nfalse"),
        handle("<f4\n[('a', 5)]\n0\n4\n4\nfalse"),
        sealed(content()[:104] + b"\xff\xfe"),
    ],
)
def test_a_handle_of_false_content_is_refused(altered):
    with pytest.raises(usm.InterfaceError, match="^handle: "):
        usm.open_ipc(altered, device="host")


def test_a_handle_with_any_byte_altered_or_cut_is_refused():
    whole = handle()
    altered = [whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :] for place in range(len(whole)) for bits in (1, 0x15, 0xFF)]
    cut = [whole[:end] for end in range(len(whole))] + [whole[1:], whole + b"\0"]
    for wrong in altered + cut:
        with pytest.raises(usm.InterfaceError, match="^handle: "):
            usm.open_ipc(wrong, device="host")


def test_bytes_that_are_not_a_handle_are_refused():
    for wrong in ("text", 5, None, bytearray(104)):
        with pytest.raises(TypeError, match="handle: an object of type"):
            usm.open_ipc(wrong)
