"""C programs that are compiled strictly and run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray
from torch import Tensor

from fedvote.export.c import Program
from fedvote.export.c.compiled import compiled

STRICT = ("-O1", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-pedantic", "-Werror")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
MAIN = """
#include <stdio.h>
#include "network.h"
int main(void) {
    static TYPE x[NETWORK_INPUTS];
    static float y[NETWORK_OUTPUTS];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        network_run(x, y);
        fwrite(y, sizeof y, 1, stdout);
    }
    return 0;
}
"""


def run(program: Program, x: Tensor, *more: str) -> NDArray[Any]:
    """The outputs of a program, compiled with every warning as an error. `more`: options of the compiler."""
    with tempfile.TemporaryDirectory() as folder:
        path = program.write(Path(folder) / "network.c")
        with compiled(path, (*STRICT, *more)) as answers:
            return answers(x)
