"""ONNX Runtime Web as one script that a page loads from its own folder.

npm gets the package from the registry it is configured for. Its digest is checked before anything of it is read, and
the user's cache keeps it.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from fedvote.data.download import file_digest
from fedvote.errors import ConfigError
from fedvote.system.cache import cache_folder

NAME, VERSION = "onnxruntime-web", "1.30.0"
DIGEST = (
    "sha512:ab4cbe26baedba45d2cec05610c71c55fa97db92d19a8b171c5f8269126683ca"
    "590a5cdc57bb2f35ce2b298de32f4d956fb42644c0ecd528a0a91e025c07ca61"
)
PACKAGE = f"{NAME}-{VERSION}.tgz"  # as npm calls it
MODULE, PROGRAM = "package/dist/ort.wasm.bundle.min.mjs", "package/dist/ort-wasm-simd-threaded.wasm"
LICENCE = "// ONNX Runtime Web"  # the script begins with it
SECONDS = 600  # for the download


def runtime_script(package: Path | None = None) -> str:
    """The script: the version, the module's source, and its WebAssembly, compressed. A page can open it as a file.

    `package`: the package as a file, if npm need not get it.
    """
    module, program = _files(_checked(package) if package else _cached())
    content = {
        "version": VERSION,
        "module": module.decode().partition("//# sourceMappingURL")[0],  # the map is not in the folder
        "wasm": base64.b64encode(gzip.compress(program, 6, mtime=0)).decode(),
    }
    return f"{LICENCE} {VERSION}, under the MIT License.\nself.RUNTIME = {json.dumps(content)};\n"


def _cached() -> Path:
    """The package in the user's cache. npm gets it if it is not there, or damaged."""
    target = cache_folder("runtime") / PACKAGE
    if not target.is_file() or file_digest(target, DIGEST) != DIGEST:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            _checked(_packed_by_npm(Path(folder))).replace(target)
    return target


def _packed_by_npm(folder: Path) -> Path:
    """The package as npm downloads it: registry, proxy and certificates are as npm is configured."""
    npm, wanted = shutil.which("npm"), f"{NAME}@{VERSION}"
    otherwise = f"give it as a file, --runtime {PACKAGE}, which `npm pack {wanted}` writes on any machine"
    if npm is None:
        raise ConfigError(f"the page needs {wanted}, and there is no npm to get it: install npm, or {otherwise}")
    command = [npm, "pack", wanted, "--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise ConfigError(f"npm cannot get {wanted} ({said[0]}): try again later, or {otherwise}") from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"npm did not get {wanted} in {SECONDS} seconds: try again later, or {otherwise}") from error
    return folder / PACKAGE


def _checked(package: Path) -> Path:
    if not package.is_file():
        raise ConfigError(f"there is no {package}, expected the package {NAME}@{VERSION} as npm pack writes it")
    if (found := file_digest(package, DIGEST)) != DIGEST:
        raise ConfigError(
            f"{package} has {found[:23]}..., expected {DIGEST[:23]}...: it is not {NAME}@{VERSION}, or damaged; "
            f"get it again by `npm pack {NAME}@{VERSION}`"
        )
    return package


def _files(package: Path) -> tuple[bytes, bytes]:
    """The module and the WebAssembly in a checked package."""
    found: dict[str, bytes] = {}
    with tarfile.open(package, "r|gz") as archive:
        for member in archive:
            if member.name in (MODULE, PROGRAM) and (file := archive.extractfile(member)):
                found[member.name] = file.read()
    return found[MODULE], found[PROGRAM]
