"""Prints the parts of a wheel, with their bytes in the archive, and refuses libraries of two
processors. Called by `cargo xtask wheel`."""

import sys
import zipfile

PARTS = {
    "the module": lambda name: "/_usm." in name,
    "the C library of usm-nrt and its header": lambda name: name.startswith(("usm/lib/", "usm/include/")),
    "Python sources and stubs": lambda name: name.endswith((".py", ".pyi", "py.typed")),
    "metadata, licences, list of software inside": lambda name: ".dist-info/" in name,
}

sizes = dict.fromkeys([*PARTS, "other files"], 0)
processors = {}
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for file in wheel.infolist():
        part = next((part for part, holds in PARTS.items() if holds(file.filename)), "other files")
        sizes[part] += file.compress_size
        if file.filename.endswith(".so"):
            # The field e_machine of ELF. auditwheel accepts a library of another processor.
            processors[file.filename] = wheel.read(file)[18:20]
for part, size in sizes.items():
    if size:
        print(f"| {part} | {size:,} |")
if len(set(processors.values())) > 1:
    sys.exit(f"libraries of several processors: {processors}")
