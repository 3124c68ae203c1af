"""Prints the parts of a wheel, with their bytes in the archive. Called by `cargo xtask wheel`."""

import sys
import zipfile

PARTS = {
    "the module": lambda name: "/_usm." in name,
    "the C library of usm-nrt and its header": lambda name: name.startswith(("usm/lib/", "usm/include/")),
    "Python sources and stubs": lambda name: name.endswith((".py", ".pyi", "py.typed")),
    "metadata, licences, list of software inside": lambda name: ".dist-info/" in name,
}

sizes = dict.fromkeys([*PARTS, "other files"], 0)
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for file in wheel.infolist():
        part = next((part for part, holds in PARTS.items() if holds(file.filename)), "other files")
        sizes[part] += file.compress_size
for part, size in sizes.items():
    if size:
        print(f"| {part} | {size:,} |")
