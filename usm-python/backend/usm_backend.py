"""The build backend of the package: maturin's, after it has built the C library of usm-nrt.

So `pip install .` and a build of the source distribution ship the same files as `cargo xtask
wheel`, which links both for older C libraries and does not come here.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import maturin
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

NAMES = {"win32": "usm_nrt.dll", "darwin": "libusm_nrt.dylib"}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    ship_library()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    ship_library()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def ship_library():
    """Builds the C library and lays it with its header where maturin collects them."""
    project = pathlib.Path(__file__).resolve().parents[1]
    # Beside the package in a checkout, inside of it in a source distribution.
    crate = next(folder / "usm-nrt" for folder in (project, project.parent) if (folder / "usm-nrt").is_dir())
    name = NAMES.get(sys.platform, "libusm_nrt.so")
    arguments = (crate / "c-library.args").read_text().split()
    if sys.platform == "linux":
        arguments.append(f"-Clink-arg=-Wl,-soname,{name}")
    target = crate.parent / "target" / "c-library"
    manifest = crate.parent / "Cargo.toml"
    build = ["cargo", "rustc", "--manifest-path", manifest, "-p", "usm-nrt", "--target-dir", target]
    build += ["--message-format", "json-render-diagnostics", *arguments]
    said = subprocess.run(build, check=True, stdout=subprocess.PIPE, text=True).stdout
    # Cargo knows the folder, which a target set for cargo changes.
    files = (file for line in said.splitlines() for file in json.loads(line).get("filenames", ()))
    library = next(file for file in files if pathlib.Path(file).name == name)
    for file, folder in ((library, "lib"), (crate / "include" / "usm_nrt.h", "include")):
        place = project / "python" / "usm" / folder
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
