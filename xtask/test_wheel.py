"""Packs the Python package for tests: its sources, and a module that cargo has built.

Called by `cargo xtask` with the folder of pyproject.toml, the library, and the folder of the wheel.
"""

import base64
import hashlib
import os
import pathlib
import sys
import sysconfig
import zipfile

import maturin


def main(project, module, folder):
    os.chdir(project)
    # Where the package called here looks for its program.
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    # The metadata are maturin's, so that both kinds of wheel state the same.
    information = folder / maturin.prepare_metadata_for_build_wheel(str(folder))
    name, version = information.name.removesuffix(".dist-info").split("-")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    package = project / "python" / name
    files = {f"{name}/_usm.{'pyd' if os.name == 'nt' else 'abi3.so'}": module}
    for file in sorted(package.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            files[file.relative_to(package.parent).as_posix()] = file
    for file in sorted(information.rglob("*")):
        if file.is_file() and file.name != "RECORD":
            files[file.relative_to(folder).as_posix()] = file
    record = f"{information.name}/RECORD"
    lines = [f"{record},,"]
    with zipfile.ZipFile(folder / f"{name}-{version}-cp311-abi3-{platform}.whl", "w") as wheel:
        for path, file in files.items():
            content = file.read_bytes()
            wheel.writestr(path, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(content)}")
        wheel.writestr(record, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*(pathlib.Path(word).absolute() for word in sys.argv[1:]))
