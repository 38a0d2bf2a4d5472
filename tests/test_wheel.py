"""The wheel by itself, in an environment that has nothing else, and the source archive: `make dist` builds both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from fedvote import __version__

ROOT = Path(__file__).parent.parent
WHEEL = ROOT / "dist" / f"fedvote-{__version__}-py3-none-any.whl"
SOURCE = ROOT / "dist" / f"fedvote-{__version__}.tar.gz"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and what it requires."""
    assert WHEEL.is_file(), f"there is no {WHEEL}: run `make dist`"
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install: list[str | Path] = [folder / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([*install, "torch"], check=True)  # first, as the Makefile does
    subprocess.run([*install, WHEEL], check=True)
    return folder / "bin"


def call(folder: Path, *command: str | Path) -> str:
    """What a program says in a folder outside the clone."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    made = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_it_has_every_file_of_the_package() -> None:
    package = ROOT / "src" / "fedvote"
    files = {str(file.relative_to(ROOT / "src")) for file in package.rglob("*") if file.is_file()}
    packed = {name for name in zipfile.ZipFile(WHEEL).namelist() if ".dist-info/" not in name}
    assert packed == {name for name in files if "__pycache__" not in name}


def test_the_source_archive_makes_the_same_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", str(SOURCE)]
    subprocess.run([*build, "--wheel-dir", str(tmp_path)], cwd=tmp_path, check=True)
    again, first = zipfile.ZipFile(tmp_path / WHEEL.name), zipfile.ZipFile(WHEEL)
    assert sorted(again.namelist()) == sorted(first.namelist())
    assert all(again.read(name) == first.read(name) for name in first.namelist())


def test_the_source_archive_has_what_is_needed_to_work_on_it() -> None:
    with tarfile.open(SOURCE) as archive:
        files = {Path(name).relative_to(f"fedvote-{__version__}") for name in archive.getnames()}
    wanted = ["Makefile", "constraints.txt", "README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "docs/conf.py"]
    assert {Path(name) for name in [*wanted, "tests/test_wheel.py", "examples/first_federation.ipynb"]} <= files


def test_it_runs_a_federation(bin: Path, tmp_path: Path) -> None:
    assert call(tmp_path, bin / "fedvote", "--version") == f"fedvote {__version__}\n"
    assert "quickstart" in call(tmp_path, bin / "fedvote", "list", "presets")
    assert "deployed network" in call(tmp_path, bin / "fedvote", "run", "quickstart", "--set", "rounds=2")
    assert "<html" in (tmp_path / "runs" / "quickstart" / "report.html").read_text()


def test_the_readmes_lines_train_a_network(bin: Path, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shown = "\nprint(fedvote.__file__, sorted(binary.network[0].weight.unique().tolist()))"
    *_, last = call(tmp_path, bin / "python", "-c", code + shown).splitlines()
    file, weights = last.split(" ", 1)
    assert file.startswith(str(bin.parent)) and weights == "[-1.0, 1.0]"
