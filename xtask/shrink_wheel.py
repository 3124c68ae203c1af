"""Compresses the files of a wheel as small as deflate allows. Called by `cargo xtask wheel`.

pip reads no other compression. Zopfli finds shorter codes for the same format than zlib's highest
level, 5 % of a library, and needs a minute for ten megabytes.
"""

import os
import pathlib
import struct
import sys
import zipfile
import zlib

import zopfli.zlib

# Zip's records of a file before its bytes and in the list at the end, and the end of that list.
LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
# The version of the format in which deflate came, and Unix as the system of the file modes.
VERSION, UNIX = 20, 3 << 8
UTF8 = 1 << 11


def deflated(content):
    """The shortest bytes for this content, without zlib's header of 2 and checksum of 4 bytes."""
    shortest = zopfli.zlib.compress(content, numiterations=5, blocksplittingmax=0)[2:-4]
    if zlib.decompress(shortest, -zlib.MAX_WBITS) != content:
        sys.exit("zopfli's bytes are not those of the file")
    return shortest


def archive(files):
    """The bytes of an archive with these files, each as its `ZipInfo` and its content."""
    body, listed = bytearray(), bytearray()
    for info, content in files:
        year, month, day, hour, minute, second = info.date_time
        time = hour << 11 | minute << 5 | second // 2
        date = year - 1980 << 9 | month << 5 | day
        name, data = info.filename.encode(), deflated(content)
        common = (UTF8, zipfile.ZIP_DEFLATED, time, date, zlib.crc32(content), len(data), len(content), len(name), 0)
        listed += CENTRAL.pack(
            b"PK\1\2", UNIX | VERSION, VERSION, *common, 0, 0, 0, info.external_attr, len(body)
        )
        listed += name
        body += LOCAL.pack(b"PK\3\4", VERSION, *common) + name + data
    count = len(files)
    return body + listed + END.pack(b"PK\5\6", 0, 0, count, count, len(listed), len(body), 0)


def main(path):
    with zipfile.ZipFile(path) as wheel:
        files = [(info, wheel.read(info)) for info in wheel.infolist()]
    whole = path.with_suffix(".tmp")
    whole.write_bytes(archive(files))
    with zipfile.ZipFile(whole) as again:
        for info, content in files:
            if again.read(info.filename) != content:
                sys.exit(f"{info.filename} is not what it was")
    before, after = path.stat().st_size, whole.stat().st_size
    os.replace(whole, path)
    print(f"{before:,} bytes of the wheel became {after:,}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
