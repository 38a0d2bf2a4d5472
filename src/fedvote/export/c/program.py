"""A deployed network as C99 for small devices: no libraries, no allocation, votes packed in memory as well."""

from __future__ import annotations

import re
import tempfile
from importlib import resources
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.export.c.buffers import allocate
from fedvote.export.c.calls import Calls
from fedvote.export.c.compiled import can_compile, compiled
from fedvote.export.c.constants import CHUNK
from fedvote.export.exported import Exported, agreement, checked, checked_inputs, examples, votes_among
from fedvote.export.onnx import INPUT, OUTPUT, translated
from fedvote.network.deployed import Deployed
from fedvote.system.atomic_file import write

PIXELS = 16  # computed at a time, as in runtime.c
STACK = 4 * 2 * CHUNK * 16  # bytes of lookup tables per pixel
TRIED = 4  # inputs to test the program on
KINDS = {torch.uint8: "uint8_t", torch.float32: "float"}


def export_c(
    network: Deployed, path: Path | str, int8: Tensor | None = None, *, inputs: Tensor | None = None
) -> Exported:
    """Write the C file `path` and its header. With a C compiler, check first that they answer like the network.

    `inputs`: a few inputs for this check; without them, random ones.
    """
    if int8 is not None:
        raise ConfigError("int8 is for ONNX files, C files have float activations: export without int8")
    network, path = checked(network, path, ".c")
    x = examples(network, TRIED, None if inputs is None else checked_inputs(network, inputs, "inputs"))
    program, same = Program(network, path.stem, x), None
    if can_compile():
        with tempfile.TemporaryDirectory() as folder, compiled(program.write(Path(folder) / path.name)) as answers:
            same = agreement(answers(x), network, x)
    return Exported(program.write(path), program.constant_bytes, program.votes, same)


class Program:
    """The C source of a network, and its memory needs."""

    def __init__(self, network: Deployed, file: str, x: Tensor | None = None):
        """`file`: name of the files, without suffix. The C identifiers begin with it. `x`: inputs that it accepts."""
        if network.dtype not in KINDS:
            raise ConfigError(f"the network takes {network.dtype}, expected one of {', '.join(map(str, KINDS))}")
        graph = translated(network, examples(network, TRIED) if x is None else x)
        calls = Calls(graph, bytes_in=network.dtype == torch.uint8)
        self.file, self.name = file, re.sub(r"\W|^(?=\d)", "_", file, flags=re.ASCII)
        self.classes, self.inputs, self.outputs = network.classes, prod(network.shape), calls.sizes[OUTPUT]
        self.votes, self.constant_bytes = votes_among(calls.constants.votes, network), calls.constants.nbytes
        self.patch, self.sums = calls.patch, calls.sums
        self.memory, places = allocate(calls.steps, calls.sizes, {INPUT: "input", calls.result: "logits"})
        self._kind, self._constants = KINDS[network.dtype], calls.constants.lines
        self._calls = [step.text(places) for step in calls.steps]

    def write(self, path: Path) -> Path:
        """Write the source, and the header beside it."""
        write(path.with_suffix(".h"), self.header)
        write(path, self.source)
        return path

    @property
    def working_bytes(self) -> int:
        """Bytes of working memory and stack."""
        return self._working_bytes(PIXELS)

    def _working_bytes(self, pixels: int) -> int:
        return 4 * self.memory + pixels * (4 * (self.patch + self.sums) + STACK)

    @property
    def header(self) -> str:
        name, upper = self.name, self.name.upper()
        return f"""\
/* A network, exported by fedvote: {self.constant_bytes:,} bytes of constants, {self.working_bytes:,} of working memory
   and stack; {self._working_bytes(1):,} with -DFV_PIXELS=1, which is slower on processors with vector instructions. */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#define {upper}_INPUTS {self.inputs}
#define {upper}_OUTPUTS {self.outputs}

#ifdef __cplusplus
extern "C" {{
#endif

extern const char *const {name}_classes[{upper}_OUTPUTS];

/* `input`: unscaled, as in the dataset, channel by channel. The class with the largest logit is the answer. Not
   reentrant: all calls share one working memory. */
void {name}_run(const {self._kind} *input, float *logits);

#ifdef __cplusplus
}}
#endif

#endif
"""

    @property
    def source(self) -> str:
        runtime = resources.files("fedvote.export.c").joinpath("runtime.c").read_text(encoding="utf-8")
        labels = ", ".join(f'"{label}"' for label in self._labels())
        lines = [
            f'#include "{self.file}.h"', "", runtime, "/* The weights. */", "", *self._constants, "",
            f"const char *const {self.name}_classes[] = {{{labels}}};", "",
            f"static float memory[{max(1, self.memory)}];",
            f"static float patch[{self.patch} * FV_PIXELS], sums[{self.sums} * FV_PIXELS];", "",
            f"void {self.name}_run(const {self._kind} *input, float *logits)", "{",
            "    (void)patch, (void)sums, (void)memory;", *(f"    {call}" for call in self._calls), "}", "",
        ]  # fmt: skip
        return "\n".join(lines)

    def _labels(self) -> list[str]:
        """One class name per output, in characters that every compiler reads."""
        labels = ["".join(map(_escaped, label.encode("ascii", "backslashreplace"))) for label in self.classes]
        return (labels + [""] * self.outputs)[: self.outputs]


def _escaped(byte: int) -> str:
    """A byte as it stands in a C string. Question marks are escaped because of trigraphs."""
    return chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
