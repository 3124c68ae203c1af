"""``usm.load`` and ``usm.save``: safetensors, npy, npz and raw bytes.

A file's header is checked before anything else of it is read: sizes, ranges and names. On the host
an array is the file's own pages, mapped and read-only. To a device the bytes go through a few
blocks of pinned memory, each with the event of its last copy, filled by several threads.
"""

import ast
import errno
import io
import json
import math
import mmap
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator as _Iterator
from collections.abc import Mapping as _Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any as _Any

from ._usm import Array, DType, Queue, _array_of_bytes, _read_file, as_usm_memory, asarray, empty
from .errors import AllocationError, InterfaceError, RequestError

# Types of safetensors, and ours.
_TYPES = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "BF16": "bfloat16",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
    "C64": "<c8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
}
_NAMES = {DType(ours).name: theirs for theirs, ours in _TYPES.items()}
# The limit of the format's own reader.
_MOST_HEADER = 100_000_000
# NumPy's own limit, and room for a structure of many members.
_MOST_NPY_HEADER = 1 << 20
_BLOCK = 8 << 20
_CACHED_BLOCK = 1 << 20
#: Fewer bytes than these a thread are not worth its start.
_WORK = 4 << 20
_PIECE = 256 << 20
_MAGIC = b"\x93NUMPY"


class _File:
    """A regular file, and its size when it was opened."""

    def __init__(self, path: _Any) -> None:
        self.path: _Any = os.fspath(path)
        # A pipe would wait for a writer.
        flags = ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY")
        self.number: _Any = os.open(self.path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
        try:
            found = os.fstat(self.number)
            if not stat.S_ISREG(found.st_mode):
                raise RequestError(f"{self.path}: only a regular file is loaded")
        except BaseException:
            number, self.number = self.number, None
            os.close(number)
            raise
        self.size: int = found.st_size
        self._map: _Any = None

    def __del__(self) -> None:
        number = getattr(self, "number", None)
        if number is not None:
            self.number = None
            os.close(number)

    def wrong(self, reason: str) -> InterfaceError:
        return InterfaceError(f"{self.path}: {reason}")

    def cut(self, end: int) -> InterfaceError:
        return self.wrong(f"it ends at byte {end}, but had {self.size} when it was opened")

    def read(self, offset: int, count: int) -> bytes:
        """Exactly these bytes."""
        read = bytearray(count)
        self.read_into(memoryview(read), offset)
        return bytes(read)

    def read_into(self, room: memoryview, offset: int) -> None:
        done = 0
        while done < len(room):
            count = os.preadv(self.number, [room[done:]], offset + done)
            if not count:
                raise self.cut(offset + done)
            done += count

    def map(self) -> _Any:
        if self._map is None:
            if os.fstat(self.number).st_size < self.size:
                raise self.wrong(f"it has {os.fstat(self.number).st_size} bytes, but had {self.size} when it was opened")
            try:
                self._map = mmap.mmap(self.number, self.size, access=mmap.ACCESS_READ)
            except OSError as error:
                if error.errno != errno.ENOMEM:
                    raise
                raise AllocationError(f"{self.path}: no memory to map its {self.size} bytes") from None
        return self._map


class _Reader(io.RawIOBase):
    """A file with a position of its own: copies of a descriptor share one between threads."""

    def __init__(self, file: _File) -> None:
        self._file: _File = file
        self._at: int = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        position = offset + (0, self._at, self._file.size)[whence]
        if position < 0:
            raise OSError(f"{self._file.path}: {position} is before its begin")
        self._at = position
        return position

    def readinto(self, room: _Any) -> int:
        count = os.preadv(self._file.number, [room], self._at)
        self._at += count
        return count


def _reader(file: _File) -> _Any:
    return io.BufferedReader(_Reader(file))


class _Part:
    """Where an array lies in a file."""

    def __init__(self, dtype: DType, shape: tuple[int, ...], offset: int, fortran: bool = False) -> None:
        self.dtype, self.shape, self.offset, self.fortran = dtype, shape, offset, fortran

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self, file: _File, to: "_Device | None") -> Array:
        shape = self.shape[::-1] if self.fortran else self.shape
        if to is not None:
            array = to.load(file, self.dtype, shape, self.offset, self.nbytes)
        elif self.nbytes:
            array = _array_of_bytes(file.map(), self.dtype, shape, self.offset)
        else:
            array = _array_of_bytes(b"", self.dtype, shape, 0)
        return array.T if self.fortran else array


class _Device:
    """The way of bytes to a device."""

    def __init__(self, device: _Any, threads: int) -> None:
        self.queue: Queue = device if isinstance(device, Queue) else Queue(device)
        self.threads: int = threads
        # A processor copies out of its cache. A GPU's copies cost more to start.
        device = self.queue.device
        self.block: int = _CACHED_BLOCK if device is not None and device.type == "cpu" else _BLOCK
        self._free: list[Array] = []

    def load(self, file: _File, dtype: DType, shape: tuple[int, ...], offset: int, nbytes: int) -> Array:
        array = empty(shape, dtype, kind="device", queue=self.queue)
        if not nbytes:
            return array
        target = _bytes_of(array)
        done = self._by_ring(file, target, offset) if self.threads > 1 and file.number is not None else 0
        self._by_blocks(file, target[done:], offset + done)
        return array

    def _by_ring(self, file: _File, target: Array, offset: int) -> int:
        """Reads into the pinned blocks of all copies. Returns the number of bytes; where there are
        no such blocks, those before."""
        for low in range(0, target.nbytes, _PIECE):
            # A signal and a fork wait no longer than for a piece.
            is_whole = _read_file(target[low : low + _PIECE], file.number, offset + low)
            if is_whole is None:
                return low
            if not is_whole:
                raise file.cut(os.fstat(file.number).st_size)
        return target.nbytes

    def _take_block(self, nbytes: int) -> Array:
        """A pinned block for these bytes, at most of the usual size; an earlier one first."""
        try:
            return self._free.pop()
        except IndexError:
            return empty((min(self.block, nbytes),), "|u1", kind="host", queue=self.queue)

    def _by_blocks(self, file: _File, target: Array, offset: int) -> None:
        """Reads by threads of its own, into pinned blocks of its own."""
        nbytes = target.nbytes
        ends = [(low, min(low + self.block, nbytes)) for low in range(0, nbytes, self.block)]
        workers = min(self.threads, len(ends), max(1, nbytes // _WORK))

        def work(which: int) -> None:
            # Two blocks a worker: one is filled while the other is copied.
            blocks: list[Array] = []
            events: list[_Any] = [None, None]
            for turn, (low, high) in enumerate(ends[which::workers]):
                at = turn % 2
                if turn < 2:
                    blocks.append(self._take_block(nbytes))
                elif events[at] is not None:
                    events[at].wait()
                part = blocks[at][: high - low]
                file.read_into(memoryview(part), offset + low)
                events[at] = self.queue.copy(target[low:high], part)
            for event in events:
                if event is not None:
                    event.wait()
            self._free.extend(block for block in blocks if block.nbytes == self.block)

        if workers <= 1:
            for which in range(workers):
                work(which)
        else:
            with ThreadPoolExecutor(workers) as pool:
                for done in [pool.submit(work, which) for which in range(workers)]:
                    done.result()


def _bytes_of(array: Array) -> Array:
    """The bytes of a contiguous array, on its device."""
    return asarray(as_usm_memory(array))


class Tensors(_Mapping[str, Array]):
    """The arrays of a file by name. Each is made when it is first asked for, and then kept."""

    def __init__(self, file: _File, parts: dict[str, _Any], to: "_Device | None", metadata: dict[str, str]) -> None:
        self._file: _File = file
        self._parts: dict[str, _Any] = parts
        self._to: _Device | None = to
        self._arrays: dict[str, Array] = {}
        self.metadata: dict[str, str] = metadata
        """What the file says about itself: texts by name."""

    def __getitem__(self, name: str) -> Array:
        found = self._arrays.get(name)
        if found is None:
            part = self._parts[name]
            found = self._arrays[name] = part.array(self._file, self._to)
        return found

    def __iter__(self) -> _Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"<usm.load({self._file.path!r}): {len(self)} arrays>"


def load(path: _Any, *, device: _Any = None, threads: int | None = None) -> "Array | Tensors":
    """The arrays of a file: by name for safetensors and npz, one array for npy and others.

    A file that begins as an npy or npz is one; one whose name ends in ``.safetensors`` is one; all
    others are bytes. Without ``device`` an array is the file's pages, mapped and read-only: nothing
    is read before it is used, and the file must not become shorter meanwhile. With a device, a
    selector or a queue, an array is memory of that device. Several threads read: for a GPU those
    of all copies (:func:`usm.set_threads`), else ``threads``, 4 by default. One is the caller's.

    Raises ``OSError`` for a file that cannot be opened, :class:`usm.InterfaceError` for a file that
    is malformed, with the place and the numbers, and :class:`usm.RequestError` for a wrong
    argument.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> usm.save(path, {"w": usm.full((2, 3), 1.5, "f4")})
    >>> usm.load(path)["w"].tolist()
    [[1.5, 1.5, 1.5], [1.5, 1.5, 1.5]]
    """
    if threads is None:
        threads = min(4, os.cpu_count() or 1)
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= 256:
        raise RequestError(f"threads: {threads!r} is no number from 1 to 256")
    file = _File(path)
    to = None if device is None else _Device(device, threads)
    start = file.read(0, min(8, file.size))
    name = os.fsdecode(file.path).lower()
    if start.startswith(_MAGIC):
        return _npy(file, 0, file.size).array(file, to)
    if start.startswith(b"PK\x03\x04") or start.startswith(b"PK\x05\x06"):
        return Tensors(file, _npz(file), to, {})
    if name.endswith(".safetensors"):
        parts, metadata = _safetensors(file)
        return Tensors(file, dict(parts), to, metadata)
    for end in (".npy", ".npz"):
        if name.endswith(end):
            raise file.wrong(f"it does not begin as an {end[1:]} file does")
    return _Part(DType("|u1"), (file.size,), 0).array(file, to)


def _once(pairs: list[tuple[str, _Any]]) -> dict[str, _Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _safetensors(file: _File) -> tuple[dict[str, _Part], dict[str, str]]:
    if file.size < 8:
        raise file.wrong(f"{file.size} bytes, but a safetensors file has 8 and more")
    count = int.from_bytes(file.read(0, 8), "little")
    if count > _MOST_HEADER or count > file.size - 8:
        most = min(_MOST_HEADER, file.size - 8)
        raise file.wrong(f"a header of {count} bytes, above {most}: the file is cut, or no safetensors file")
    text = file.read(8, count)
    if text[:1] != b"{":
        raise file.wrong("byte 8: the header does not begin with a brace")

    def refuse(constant: str) -> _Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise file.wrong(f"the header is no JSON of a safetensors file: {error}") from None
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise file.wrong("__metadata__: not texts by name")
    room, parts = file.size - 8 - count, {}
    for name, about in header.items():
        place = f"tensor {name!r}"
        if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
            raise file.wrong(f"{place}: not a dict of dtype, shape and data_offsets")
        shape, ends = about["shape"], about["data_offsets"]
        if not _whole(shape) or len(shape) > 64:
            raise file.wrong(f"{place}: shape: {_short(shape)} is no list of at most 64 extents")
        if not _whole(ends) or len(ends) != 2 or not ends[0] <= ends[1] <= room:
            raise file.wrong(f"{place}: data_offsets: {_short(ends)} is no range of the {room} bytes of data")
        dtype = about["dtype"] if isinstance(about["dtype"], str) else ""
        if dtype not in _TYPES:
            raise file.wrong(f"{place}: dtype: {_short(about['dtype'])} is none of {', '.join(_TYPES)}")
        part = _Part(DType(_TYPES[dtype]), tuple(shape), 8 + count + ends[0])
        if part.nbytes != ends[1] - ends[0]:
            raise file.wrong(f"{place}: {ends[1] - ends[0]} bytes of data, but {_short(shape)} of {dtype} has {part.nbytes}")
        parts[name] = part
    begin = 8 + count
    for name, part in sorted(parts.items(), key=lambda item: (item[1].offset, item[1].nbytes)):
        if part.offset != begin:
            what = "overlaps the tensor before" if part.offset < begin else "leaves a gap before it"
            raise file.wrong(f"tensor {name!r}: it begins at byte {part.offset}, not {begin}: it {what}")
        begin += part.nbytes
    if begin != file.size:
        raise file.wrong(f"{file.size - begin} bytes after the last tensor")
    return parts, metadata


def _whole(numbers: _Any) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and 0 <= number < 1 << 63 for number in numbers)


def _short(value: _Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _npy(file: _File, begin: int, size: int, name: str = "") -> _Part:
    """The array of an npy file that has these bytes of a file."""
    place = f"{name}: " if name else ""
    if size < 10:
        raise file.wrong(f"{place}{size} bytes, but an npy file has 10 and more")
    start = file.read(begin, min(12, size))
    if start[:6] != _MAGIC:
        raise file.wrong(f"{place}it does not begin as an npy file does")
    if start[6] not in (1, 2, 3):
        raise file.wrong(f"{place}version {start[6]} of npy, not 1, 2 or 3")
    wide = 2 if start[6] == 1 else 4
    count, first = int.from_bytes(start[8 : 8 + wide], "little"), 8 + wide
    if count > min(_MOST_NPY_HEADER, size - first):
        raise file.wrong(f"{place}a header of {count} bytes, above {min(_MOST_NPY_HEADER, size - first)}")
    text = file.read(begin + first, count)
    try:
        header = ast.literal_eval(text.decode("utf-8" if start[6] == 3 else "latin-1").strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise file.wrong(f"{place}the header is no dict of an npy file: {error}") from None
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise file.wrong(f"{place}the header has not exactly descr, fortran_order and shape")
    shape = header["shape"]
    if not isinstance(shape, tuple) or not _whole(list(shape)) or len(shape) > 64:
        raise file.wrong(f"{place}shape: {_short(shape)} is no tuple of at most 64 extents")
    if not isinstance(header["fortran_order"], bool):
        raise file.wrong(f"{place}fortran_order: {_short(header['fortran_order'])} is neither True nor False")
    dtype = _type_of(file, place, header["descr"])
    part = _Part(dtype, shape, begin + first + count, header["fortran_order"] and len(shape) > 1)
    if part.nbytes > size - first - count:
        raise file.wrong(f"{place}{size - first - count} bytes of data, but {_short(shape)} of {dtype} has {part.nbytes}")
    return part


def _type_of(file: _File, place: str, descr: _Any) -> DType:
    if "O" in _letters(descr):
        raise file.wrong(f"{place}descr: Python objects are not loaded: they would run code of the file")
    try:
        if isinstance(descr, list):
            from numpy.lib.format import descr_to_dtype

            # A member without a name is padding.
            descr = descr_to_dtype(descr)
        return DType(descr)
    except (TypeError, ValueError, IndexError) as error:
        raise file.wrong(f"{place}descr: {_short(descr)}: {error}") from None


def _letters(descr: _Any) -> set[str]:
    """The letters of all element types in a description."""
    if isinstance(descr, str):
        return set(descr[:2])
    if isinstance(descr, list):
        return set().union(*(_letters(member[1]) for member in descr if isinstance(member, tuple) and len(member) > 1))
    return set()


class _Packed:
    """An array that a zip file has compressed: it is unpacked into memory of its own."""

    def __init__(self, info: zipfile.ZipInfo) -> None:
        self.info = info

    def array(self, file: _File, to: "_Device | None") -> Array:
        # A few bytes can stand for many, which no file has: its size is stated before.
        try:
            with zipfile.ZipFile(_reader(file)) as packed, packed.open(self.info) as stream:
                unpacked = stream.read(self.info.file_size + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise file.wrong(f"{self.info.filename}: {error}") from None
        if len(unpacked) != self.info.file_size:
            raise file.wrong(f"{self.info.filename}: {len(unpacked)} bytes, but {self.info.file_size} were stated")
        memory = _Unpacked(file, unpacked)
        part = _npy(memory, 0, len(unpacked), self.info.filename)
        array = part.array(memory, None)
        return array if to is None else array.copy(kind="device", queue=to.queue)


class _Unpacked(_File):
    """Bytes in place of a file."""

    def __init__(self, file: _File, content: bytes) -> None:
        self.path, self.size, self.number, self._map = file.path, len(content), None, content

    def read_into(self, room: memoryview, offset: int) -> None:
        room[:] = self._map[offset : offset + len(room)]

    def map(self) -> _Any:
        return self._map


def _npz(file: _File) -> dict[str, _Any]:
    try:
        with zipfile.ZipFile(_reader(file)) as packed:
            infos = packed.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise file.wrong(f"no zip file: {error}") from None
    parts: dict[str, _Any] = {}
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name in parts:
            raise file.wrong(f"the name {name!r} is there twice")
        if info.flag_bits & 1:
            raise file.wrong(f"{info.filename}: it is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise file.wrong(f"{info.filename}: compression {info.compress_type} is not read")
        if info.compress_type == zipfile.ZIP_DEFLATED:
            parts[name] = _Packed(info)
            continue
        local = file.read(info.header_offset, 30) if info.header_offset + 30 <= file.size else b""
        begin = info.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        if local[:4] != b"PK\x03\x04" or begin + info.file_size > file.size:
            raise file.wrong(f"{info.filename}: {info.file_size} bytes from byte {begin} on, but the file has {file.size}")
        parts[name] = _npy(file, begin, info.file_size, info.filename)
    return parts


def save(path: _Any, arrays: _Any, *, metadata: _Mapping[str, str] | None = None) -> None:
    """Writes arrays to a file, in the format that the end of its name says.

    A file of that name is replaced when the new one is complete.
    ``.safetensors`` and ``.npz`` take a mapping of names, ``.npy`` one array, and other names the
    bytes of one array. Arrays are what :func:`usm.asarray` takes, on any device. ``metadata`` are
    texts by name for a safetensors file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "row.npy")
    >>> usm.save(path, usm.full(3, 2, "i4"))
    >>> usm.load(path).tolist()
    [2, 2, 2]
    """
    path = os.fspath(path)
    name = os.fsdecode(path).lower()
    many = name.endswith((".safetensors", ".npz"))
    if many != isinstance(arrays, _Mapping):
        raise RequestError(f"{path}: {'a mapping of arrays by name' if many else 'one array'} is wanted")
    if metadata is not None and not name.endswith(".safetensors"):
        raise RequestError("metadata: only a safetensors file has texts")
    given = {key: asarray(value) for key, value in arrays.items()} if many else {"": asarray(arrays)}
    if not all(isinstance(key, str) for key in given):
        raise RequestError("a name of an array is no text")
    # A link stays; what it leads to is replaced, and keeps who may read it.
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        raise RequestError(f"{path}: only a regular file is replaced")
    # A new file of this user beside the old one, which stays whole until it is replaced.
    unfinished = f"{os.fsdecode(path)}.{os.getpid()}.part"
    number = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        with os.fdopen(number, "wb") as out:
            if name.endswith(".safetensors"):
                _write_safetensors(out, given, metadata)
            elif name.endswith(".npz"):
                with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=True) as packed:
                    for key, array in given.items():
                        with packed.open(f"{key}.npy", "w", force_zip64=True) as member:
                            _write_npy(member, array)
            elif name.endswith(".npy"):
                _write_npy(out, given[""])
            else:
                _write_bytes(out, given[""])
        if mode is not None:
            os.chmod(unfinished, stat.S_IMODE(mode))
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def _write_safetensors(out: _Any, arrays: dict[str, Array], metadata: _Mapping[str, str] | None) -> None:
    header: dict[str, _Any] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for item in metadata.items() for text in item):
            raise RequestError("metadata: not texts by name")
        header["__metadata__"] = dict(metadata)
    # By falling size of the elements, so that each begins at a multiple of it.
    order = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    begin = 0
    for name, array in order:
        if name == "__metadata__":
            raise RequestError("an array's name cannot be __metadata__")
        if array.dtype.names or array.dtype.name not in _NAMES or not array.dtype.isnative:
            raise RequestError(f"{name!r}: safetensors has no type for {array.dtype}")
        header[name] = {"dtype": _NAMES[array.dtype.name], "shape": list(array.shape), "data_offsets": [begin, begin + array.nbytes]}
        begin += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    out.write(len(text).to_bytes(8, "little") + text)
    for _, array in order:
        _write_bytes(out, array)


def _write_npy(out: _Any, array: Array) -> None:
    if array.dtype.kind == "V" and not array.dtype.names or array.dtype.name.startswith("float8"):
        raise RequestError(f"npy has no type for {array.dtype}")
    fortran = array.is_f_contiguous and not array.is_c_contiguous
    descr = array.dtype.descr if array.dtype.names else array.dtype.str
    text = repr({"descr": descr, "fortran_order": fortran, "shape": array.shape}).encode()
    version = 1 if len(text) < 65000 else 3
    first = 10 if version == 1 else 12
    text += b" " * (-(first + len(text) + 1) % 64) + b"\n"
    out.write(_MAGIC + bytes((version, 0)) + len(text).to_bytes(first - 8, "little") + text)
    _write_bytes(out, array.T if fortran else array)


def _write_bytes(out: _Any, array: Array) -> None:
    """The elements in C order, some at a time."""
    if not array.nbytes:
        return
    if not array.is_c_contiguous:
        array = array.copy()
    flat = array.reshape(-1)
    some = max(1, _BLOCK // array.itemsize)
    for low in range(0, flat.size, some):
        out.write(flat[low : low + some].tobytes())
