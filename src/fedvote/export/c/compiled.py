"""Compile an exported program for this machine and call it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedvote.errors import ConfigError, ModelError

Answers = Callable[[Tensor], NDArray[Any]]
COMPILER = "cc"


def can_compile() -> bool:
    return shutil.which(COMPILER) is not None


@contextmanager
def compiled(source: Path, options: Sequence[str] = ("-O2",)) -> Iterator[Answers]:
    """A function that runs the compiled C file on inputs, one after the other. Its header lies beside it."""
    header = source.with_suffix(".h").read_text(encoding="utf-8")
    count, name = re.search(r"_OUTPUTS (\d+)\n", header), re.search(r"void (\w+_run)\(", header)
    if not count or not name:
        raise ConfigError(f"{source.with_suffix('.h')} is not the header of an exported network: export it again")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "network.so"
        command = [COMPILER, "-std=c99", *options, "-shared", "-fPIC", "-o", str(library), str(source)]
        compiler = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiler.returncode:
            lines = compiler.stderr.strip().splitlines()
            worst = next((line for line in lines if "error" in line), lines[-1])
            raise ModelError(f"{COMPILER} refuses the exported program: {worst}")
        function, width = getattr(ctypes.CDLL(str(library)), name[1]), int(count[1])

        def answers(x: Tensor) -> NDArray[Any]:
            y = np.empty((len(x), width), np.float32)
            for row, logits in zip(x.contiguous().numpy(), y, strict=True):
                function(*(values.ctypes.data_as(ctypes.c_void_p) for values in (row, logits)))
            return y

        yield answers


def outputs(path: Path | str, x: Tensor) -> NDArray[Any]:
    """The outputs of a program."""
    if not can_compile():
        raise ConfigError(f"testing a C file needs a C compiler, and {COMPILER} was not found: install one")
    with compiled(Path(path), ("-O3",)) as answers:
        return answers(x)
