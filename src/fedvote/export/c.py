"""A deployed network as C99 for small devices: no libraries, nothing allocated, votes packed in memory as in the file.

The network is taken as ONNX, one small vocabulary for whatever a module does, and every node becomes a call of
`runtime.c`. Values between layers share one array: a value's place is free again after its last use.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedvote.core import ConfigError, ModelError
from fedvote.deployed import Deployed
from fedvote.draft import write
from fedvote.export.exported import Exported, agreement, examples
from fedvote.export.onnx import INPUT, OUTPUT, translated
from fedvote.export.packing import pack

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

FLOAT = 1  # ONNX's number for it
CHUNK, PIXELS = 8, 16  # bytes of votes, and pixels, at a time, as in runtime.c
STACK = 4 * 2 * CHUNK * 16  # bytes of tables for one pixel
TRIED = 4  # inputs on which the program has to answer as the network does
KINDS = {torch.uint8: "uint8_t", torch.float32: "float"}
EACH = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
IN_PLACE = ("fv_each", "fv_relu", "fv_clip")  # these may write where they read
SAME = ("Reshape", "Flatten", "Identity", "Squeeze", "Unsqueeze")  # of one input: the same numbers in the same order


def export_c(network: Deployed, path: Path | str, int8: Tensor | None = None) -> Exported:
    """Write `path`, a C file, and the header that goes with it, after they were seen to answer as the network does.

    That is seen where there is a C compiler.
    """
    if int8 is not None:
        raise ConfigError("int8 is for ONNX files: C files have float activations")
    path = Path(path)
    program = Program(network, path.stem)
    x = examples(network, TRIED)
    answers = run(program, x)
    same = None if answers is None else agreement(answers, network, x)
    write(path.with_suffix(".h"), program.header)
    write(path, program.source)
    return Exported(path, program.constant_bytes, program.votes, same)


def run(program: Program, x: Tensor, compiler: str = "cc", options: Sequence[str] = ("-O2",)) -> NDArray[Any] | None:
    """The answers of the program, compiled for this machine; None if there is no compiler."""
    if shutil.which(compiler) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = load(program, Path(folder), compiler, options)
        y = np.empty((len(x), program.outputs), np.float32)
        for row, answers in zip(x.contiguous().numpy(), y, strict=True):
            library(row.ctypes.data_as(ctypes.c_void_p), answers.ctypes.data_as(ctypes.c_void_p))
        return y


def load(
    program: Program, folder: Path, compiler: str = "cc", options: Sequence[str] = ("-O2",)
) -> Callable[..., None]:
    """The program's function, compiled in a folder."""
    source, built = folder / f"{program.file}.c", folder / f"{program.file}.so"
    source.write_text(program.source, encoding="utf-8")
    source.with_suffix(".h").write_text(program.header, encoding="utf-8")
    command = [compiler, "-std=c99", *options, "-shared", "-fPIC", "-o", str(built), str(source)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise ModelError(f"{compiler} refuses the exported program: {made.stderr.strip().splitlines()[0]}")
    function: Callable[..., None] = getattr(ctypes.CDLL(str(built)), f"{program.name}_run")
    return function


@dataclass(frozen=True)
class Step:
    """One call, that makes a value of others. In the text, {y} is the value's place and {0}, {1}, ... theirs."""

    call: str
    sources: tuple[str, ...]
    value: str


class Program:
    """The C source of a network, and what it takes."""

    def __init__(self, network: Deployed, file: str):
        """`file`: the name of its files, which names in it begin with."""
        if network.dtype not in KINDS:
            raise ConfigError(f"the network takes {network.dtype}, expected one of {', '.join(map(str, KINDS))}")
        model = translated(network)
        self.file, self.name = file, re.sub(r"\W|^(?=\d)", "_", file, flags=re.ASCII)
        self.classes, self.inputs, self.outputs = network.classes, prod(network.shape), 0
        self.votes = self.constant_bytes = self.patch = self.sums = 0
        self._kind = KINDS[network.dtype]
        self._constants = _constants(model)
        self._shapes = _shapes(model)
        self._alias: dict[str, str] = {}  # values that are others under another name
        self._arrays: list[str] = []
        steps = [step for node in model.graph.node if (step := self._read(node))]
        self.outputs = prod(self._shapes[OUTPUT])
        self.memory, places = self._places(steps)
        self._calls = [
            step.call.format(*(places[source] for source in step.sources), y=places[step.value]) for step in steps
        ]

    @property
    def working_bytes(self) -> int:
        """Of memory that is written to."""
        return self._working_bytes(PIXELS)

    def _working_bytes(self, pixels: int) -> int:
        return 4 * self.memory + pixels * (4 * (self.patch + self.sums) + STACK)

    @property
    def header(self) -> str:
        name, upper = self.name, self.name.upper()
        return f"""\
/* A network, made by fedvote: {self.constant_bytes:,} bytes of constants, {self.working_bytes:,} of working memory and
   stack; {self._working_bytes(1):,} if it is compiled with -DFV_PIXELS=1, which is slower with vector instructions. */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#define {upper}_INPUTS {self.inputs}
#define {upper}_OUTPUTS {self.outputs}

#ifdef __cplusplus
extern "C" {{
#endif

extern const char *const {name}_classes[{upper}_OUTPUTS];

/* `input` as the data have it, channel by channel; the class with the largest of `logits` is the answer. One call at a
   time: the working memory is the same for all. */
void {name}_run(const {self._kind} *input, float *logits);

#ifdef __cplusplus
}}
#endif

#endif
"""

    @property
    def source(self) -> str:
        runtime = resources.files("fedvote.export").joinpath("runtime.c").read_text(encoding="utf-8")
        labels = ", ".join(json.dumps(label) for label in self._labels())
        lines = [
            f'#include "{self.file}.h"', "", runtime, "/* The weights. */", "", *self._arrays, "",
            f"const char *const {self.name}_classes[] = {{{labels}}};", "",
            f"static float memory[{max(1, self.memory)}];",
            f"static float patch[{max(1, self.patch)} * FV_PIXELS], sums[{max(1, self.sums)} * FV_PIXELS];", "",
            f"void {self.name}_run(const {self._kind} *input, float *logits)", "{",
            "    (void)patch, (void)sums, (void)memory;", *(f"    {call}" for call in self._calls), "}", "",
        ]  # fmt: skip
        return "\n".join(lines)

    def _labels(self) -> list[str]:
        """Of as many classes as there are outputs, in characters that every compiler reads."""
        known = [label.encode("ascii", "backslashreplace").decode() for label in self.classes]
        return (known + [""] * self.outputs)[: self.outputs]

    def _read(self, node: NodeProto) -> Step | None:
        try:
            return self._step(node)
        except (KeyError, IndexError, ValueError) as error:  # such as a weight that is no constant
            raise _no_c(f"a {node.op_type} of {', '.join(node.input)}") from error

    def _step(self, node: NodeProto) -> Step | None:
        """The call that a node becomes; None for one that changes nothing."""
        kind, (x, *others), (y, *_) = node.op_type, node.input, node.output
        count = prod(self._shapes[y])
        attributes = {each.name: _value(each) for each in node.attribute}
        if not count or attributes.get("to", FLOAT) != FLOAT:
            raise _no_c(f"a {kind} to something else than floats of a known shape")
        bytes_in = self._alias.get(x, x) == INPUT and self._kind == "uint8_t"
        if kind in SAME or (kind == "Cast" and not bytes_in):
            self._alias[y] = self._alias.get(x, x)
            return None
        if kind == "Cast":
            return self._call(f"fv_bytes({{0}}, {{y}}, {count});", y, x)
        if kind in ("Relu", "LeakyRelu"):
            slope = _float(attributes.get("alpha", 0.01) if kind == "LeakyRelu" else 0)
            return self._call(f"fv_relu({{0}}, {{y}}, {count}, {slope});", y, x)
        if kind == "Clip":
            least, most = (_float(float(self._constants[name])) for name in others)
            return self._call(f"fv_clip({{0}}, {{y}}, {count}, {least}, {most});", y, x)
        if kind == "BatchNormalization":
            return self._norm(x, others, y, attributes["epsilon"])
        if kind in EACH:
            return self._each(EACH[kind], x, others[0], y)
        if kind == "Conv" and len(self._shapes[x]) in (2, 3):
            return self._conv(x, others, y, attributes)
        if kind in ("MaxPool", "AveragePool") and len(self._shapes[x]) in (2, 3):
            return self._pool(x, y, attributes, mean=kind == "AveragePool")
        if kind == "GlobalAveragePool" or (kind == "ReduceMean" and self._over_pixels(x, others)):
            channels, *pixels = self._shapes[x]
            return self._call(f"fv_mean({{0}}, {{y}}, {channels}, {prod(pixels)});", y, x)
        if kind in ("Gemm", "MatMul") and others[0] in self._constants and x not in self._constants:
            return self._dense(x, others, y, attributes, transposed=kind == "Gemm" and attributes.get("transB", 0) == 1)
        raise _no_c(f"a {kind} of inputs of shape {self._shapes[x]}")

    def _call(self, call: str, value: str, *sources: str) -> Step:
        return Step(call, tuple(self._alias.get(source, source) for source in sources), value)

    def _each(self, sign: str, x: str, other: str, y: str) -> Step | None:
        if x in self._constants and sign in "+*":
            x, other = other, x
        if x in self._constants:
            raise _no_c(f"a constant {sign} a value")
        shape = self._shapes[x]
        count = prod(shape)
        if other not in self._constants:
            if self._shapes[other] != shape:
                raise _no_c(f"a {sign} of shapes {shape} and {self._shapes[other]}")
            return self._call(f"fv_each('{sign}', {{0}}, {{1}}, {{y}}, {count}, {count}, 1);", y, x, other)
        values, run = _repeated(self._constants[other], shape)
        name = self._array("float", values)
        return self._call(f"fv_each('{sign}', {{0}}, {name}, {{y}}, {count}, {values.size}, {run});", y, x)

    def _norm(self, x: str, others: Sequence[str], y: str, epsilon: float) -> Step:
        """Batch norm that no layer comes right before: y = gamma (x - mean) / sqrt(var + eps) + beta"""
        gamma, beta, mean, var = (self._constants[name] for name in others)
        scale = gamma / np.sqrt(var + epsilon)
        count, channels = prod(self._shapes[x]), self._shapes[x][0]
        rest = f"{{y}}, {count}, {channels}, {count // channels});"
        by, plus = self._array("float", scale), self._array("float", beta - mean * scale)
        return self._call(f"fv_each('*', {{0}}, {by}, {rest} fv_each('+', {{y}}, {plus}, {rest}", y, x)

    def _pool(self, x: str, y: str, attributes: dict[str, Any], mean: bool) -> Step:
        if mean and attributes.get("ceil_mode", 0):
            raise _no_c("average pooling over the edge")  # whose zeros count in some windows and not in others
        window = self._window(x, y, attributes["kernel_shape"], attributes)
        zeros_count = attributes.get("count_include_pad", 0)
        return self._call(f"fv_pool(&{window}, {mean:d}, {zeros_count}, {{0}}, {{y}});", y, x)

    def _conv(self, x: str, others: Sequence[str], y: str, attributes: dict[str, Any]) -> Step:
        weight, groups = self._constants[others[0]], int(attributes.get("group", 1))
        bias = self._constants[others[1]] if len(others) > 1 else None
        name = self._weights(weight, bias, groups)
        self.patch, self.sums = max(self.patch, prod(weight.shape[1:])), max(self.sums, weight.shape[0] // groups)
        window = self._window(x, y, weight.shape[2:], attributes)
        return self._call(f"fv_conv({name}, {groups}, &{window}, {{0}}, {{y}}, patch, sums);", y, x)

    def _dense(self, x: str, others: Sequence[str], y: str, attributes: dict[str, Any], transposed: bool) -> Step:
        usual = all(attributes.get(name, 1.0) == 1 for name in ("alpha", "beta")) and not attributes.get("transA", 0)
        if not usual or len(self._shapes[x]) != 1:
            raise _no_c(f"a product of inputs of shape {self._shapes[x]} with {attributes or 'no attributes'}")
        weight = self._constants[others[0]]
        bias = self._constants[others[1]] if len(others) > 1 else None
        name = self._weights(weight if transposed else weight.T, bias, groups=1)
        return self._call(f"fv_product({name}, {{0}}, {{y}});", y, x)

    def _window(self, x: str, y: str, kernel: Sequence[int], attributes: dict[str, Any]) -> str:
        """The name of a window's constants. A sequence is an image of one row."""
        rank = len(kernel)
        parts = [kernel, attributes.get("strides") or [1] * rank, (attributes.get("pads") or [0] * rank)[:rank],
                 attributes.get("dilations") or [1] * rank]  # fmt: skip
        if attributes.get("auto_pad", "NOTSET") != "NOTSET":
            raise _no_c("a layer that pads automatically")
        if rank == 1:
            parts = [[alone, *part] for alone, part in zip((1, 1, 0, 1), parts, strict=True)]
        channels, *sides = self._shapes[x]
        _, *out_sides = self._shapes[y]
        images = [[1] * (2 - rank) + each for each in (sides, out_sides)]
        numbers = [channels, *images[0], *images[1], *(side for part in parts for side in part)]
        name = f"c{len(self._arrays)}"
        self._arrays.append(f"static const fv_window {name} = {{{', '.join(map(str, numbers))}}};")
        return name

    def _weights(self, weight: NDArray[Any], bias: NDArray[Any] | None, groups: int) -> str:
        """The name of an array of weights, one for each group of outputs."""
        packed, outputs = pack(weight), len(weight) // groups
        if packed and packed.axis != 0:
            packed = None
        self.votes += weight.size if packed else 0
        rows = []
        for group in range(groups):
            mine = slice(group * outputs, (group + 1) * outputs)
            shift = "0" if bias is None else self._array("float", bias[mine])
            if packed is None:
                parts = ["0", "0", self._array("float", weight[mine]), "0"]
            else:
                votes = packed.votes[mine].reshape(outputs, -1)
                positive = self._array("uint8_t", _by_chunk(votes > 0))
                negative = "0" if packed.votes.all() else self._array("uint8_t", _by_chunk(votes < 0))
                parts = [positive, negative, "0", self._array("float", packed.scale.reshape(-1)[mine])]
            rows.append(f"{{{prod(weight.shape[1:])}, {outputs}, {', '.join(parts)}, {shift}}}")
        name = f"c{len(self._arrays)}"
        self._arrays.append(f"static const fv_weights {name}[] = {{{', '.join(rows)}}};")
        return name

    def _array(self, kind: str, values: NDArray[Any]) -> str:
        """The name of an array of constants."""
        name, flat = f"c{len(self._arrays)}", values.reshape(-1)
        self.constant_bytes += flat.size * (1 if kind == "uint8_t" else 4)
        texts = map(str, flat.tolist()) if kind == "uint8_t" else map(_float, flat.astype(np.float32))
        self._arrays.append(f"static const {kind} {name}[] = {{\n" + "\n".join(_wrapped(texts)) + "};")
        return name

    def _over_pixels(self, x: str, others: Sequence[str]) -> bool:
        axes = self._constants[others[0]].tolist() if others and others[0] in self._constants else []
        rank = len(self._shapes[x]) + 1
        return rank > 2 and sorted(axis % rank for axis in axes) == list(range(2, rank))

    def _places(self, steps: Sequence[Step]) -> tuple[int, dict[str, str]]:
        """How many numbers values take in all, and where each is."""
        result = self._alias.get(OUTPUT, OUTPUT)
        last = {source: index for index, step in enumerate(steps) for source in step.sources}
        held: dict[str, tuple[int, int]] = {}  # from where to where
        size, places = 0, {INPUT: "input"}
        for index, step in enumerate(steps):
            if step.value == result:
                places[result] = "logits"
                continue
            count, source = prod(self._shapes[step.value]), step.sources[0]
            if step.call.startswith(IN_PLACE) and source in held and last[source] == index:
                start = held[source][0]
            else:
                start = _first_fit(sorted(held.values()), count)
            held[step.value] = start, start + count
            size, places[step.value] = max(size, start + count), f"memory + {start}"
            held = {value: place for value, place in held.items() if last.get(value, -1) > index}
        return size, places


def _no_c(what: str) -> ModelError:
    return ModelError(
        f"the network has {what}, for which there is no C yet: there is convolution in one and two dimensions, linear "
        "layers, batch norm, ReLU and its relatives, pooling, means over pixels, and sums, differences, products and "
        "quotients of equal shapes or with constants; export it as onnx"
    )


def _constants(model: ModelProto) -> dict[str, NDArray[Any]]:
    from onnx import numpy_helper

    found = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    for node in [each for each in model.graph.node if each.op_type == "Constant"]:
        found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        model.graph.node.remove(node)
    return found


def _shapes(model: ModelProto) -> dict[str, tuple[int, ...]]:
    """The shapes of values, for one input at a time and without the axis of inputs."""
    from onnx import shape_inference

    one = type(model)()
    one.CopyFrom(model)
    del one.graph.value_info[:]
    for value in (*one.graph.input, *one.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    graph = shape_inference.infer_shapes(one, data_prop=True).graph
    known = (*graph.input, *graph.output, *graph.value_info)
    return {value.name: tuple(side.dim_value for side in value.type.tensor_type.shape.dim)[1:] for value in known}


def _value(attribute: Any) -> Any:
    from onnx import helper

    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _repeated(values: NDArray[Any], shape: tuple[int, ...]) -> tuple[NDArray[Any], int]:
    """Constants that are broadcast to a shape, each of them for how many neighbours."""
    sides = (1,) * (len(shape) + 1 - values.ndim) + values.shape
    if values.size == 1:
        return values, prod(shape)
    if sides[1] == shape[0] and prod(sides) == shape[0]:
        return values, prod(shape[1:])
    return np.broadcast_to(values.reshape(sides), (1, *shape)), 1


def _by_chunk(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """(outputs, inputs) as bytes, by chunk, output and byte: the order in which they are read."""
    chunks = [bits[:, start : start + 8 * CHUNK] for start in range(0, bits.shape[1], 8 * CHUNK)]
    return np.concatenate([np.packbits(chunk, axis=1).reshape(-1) for chunk in chunks])


def _float(value: float | np.float32) -> str:
    if not np.isfinite(value):
        raise ModelError(f"the network has a weight of {value}, expected a finite number: train it again")
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _wrapped(texts: Iterator[str], width: int = 110) -> Iterator[str]:
    line = ""
    for text in texts:
        if len(line) + len(text) > width:
            yield line
            line = ""
        line += f"{text}, "
    yield line


def _first_fit(held: Sequence[tuple[int, int]], count: int) -> int:
    """Where the first gap of so many numbers begins; the held places are in order."""
    start = 0
    for begin, end in held:
        if begin - start >= count:
            return start
        start = max(start, end)
    return start
