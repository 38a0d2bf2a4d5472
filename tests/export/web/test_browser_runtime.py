"""The program that runs networks in a browser is got once, checked, and one script."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from pathlib import Path

import pytest

from fedvote import ConfigError
from fedvote.export.web.browser_runtime import PACKAGE, runtime_script


def install_npm(folder: Path, does: str) -> None:
    """A program npm that `does` something with the folder for packages, "$destination"."""
    folder.mkdir()
    (folder / "npm").write_text(f'#!/bin/sh\nfor destination; do :; done\necho ran >> "{folder}/log"\n{does}\n')
    (folder / "npm").chmod(0o755)


def content_of(script: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(script.partition("self.RUNTIME = ")[2].rstrip(";\n"))
    return found


def test_the_runtime_is_one_script_that_a_page_can_open_as_a_file(package: Path) -> None:
    content = content_of(runtime_script(package))
    assert content["module"] == "export {};\n"  # the map of its source is not there to be asked for
    assert gzip.decompress(b64decode(content["wasm"])) == b"\0asm"


def test_npm_gets_the_runtime_once(package: Path, tmp_path: Path) -> None:
    install_npm(tmp_path / "programs", f'/bin/cp "{package}" "$destination"')
    assert runtime_script() == runtime_script() == runtime_script(package)
    assert (tmp_path / "programs" / "log").read_text() == "ran\n"
    kept = tmp_path / "cache" / "fedvote" / "runtime" / PACKAGE
    kept.write_bytes(b"damaged")
    assert runtime_script() == runtime_script(package) and kept.read_bytes() == package.read_bytes()
    assert [file.name for file in kept.parent.iterdir()] == [PACKAGE]


def test_a_runtime_of_another_digest_is_refused_and_not_kept(package: Path, tmp_path: Path) -> None:
    install_npm(tmp_path / "programs", f'echo other > "$destination/{PACKAGE}"')
    with pytest.raises(
        ConfigError, match=r"has sha512:\w+\.\.\., expected sha512:\w+\.\.\.: it is not onnxruntime-web@"
    ):
        runtime_script()
    assert not list((tmp_path / "cache" / "fedvote" / "runtime").iterdir())
    (tmp_path / "other.tgz").write_bytes(package.read_bytes() + b"\0")
    with pytest.raises(ConfigError, match=r"other\.tgz has sha512:"):
        runtime_script(tmp_path / "other.tgz")


def test_a_runtime_that_cannot_be_had_is_one_sentence(package: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no npm to get it: install npm, or give it as a file, --runtime"):
        runtime_script()
    install_npm(tmp_path / "programs", "echo 'npm error code E404' >&2; exit 1")
    with pytest.raises(ConfigError, match=r"npm cannot get onnxruntime-web@\S+ \(npm error code E404\): try again"):
        runtime_script()
    with pytest.raises(ConfigError, match=r"there is no nowhere\.tgz, expected the package onnxruntime-web@"):
        runtime_script(Path("nowhere.tgz"))
