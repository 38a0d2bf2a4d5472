"""Translate an ONNX graph to calls of `runtime.c`, at most one call per node."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedvote.errors import ModelError
from fedvote.export.c.buffers import Step
from fedvote.export.c.constants import Constants, c_float
from fedvote.export.onnx import INPUT, OUTPUT

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

FLOAT = 1  # ONNX's number of float32
FLT_MAX = float(np.finfo(np.float32).max)
EACH = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
SAME = ("Reshape", "Flatten", "Identity", "Squeeze", "Unsqueeze")  # these keep the numbers and their order


class Calls:
    """The calls of a network, their constants, and the sizes of values."""

    def __init__(self, model: ModelProto, bytes_in: bool):
        """`bytes_in`: the network takes bytes instead of floats."""
        self.constants = Constants()
        self.patch = self.sums = 1  # most inputs of a convolution's window, most outputs of a group
        self._bytes = bytes_in
        self._values = _constants(model)
        self._shapes = _shapes(model)  # without the batch axis
        self._named: dict[tuple[str, ...], str] = {}  # names of constants, by the names of weight and bias
        self._alias: dict[str, str] = {}  # second name of a value -> its first name
        self.steps = [step for node in model.graph.node if (step := self._read(node))]

    @property
    def sizes(self) -> dict[str, int]:
        return {value: prod(shape) for value, shape in self._shapes.items()}

    @property
    def result(self) -> str:
        """The value that holds the output."""
        return self._alias.get(OUTPUT, OUTPUT)

    def _read(self, node: NodeProto) -> Step | None:
        try:
            return self._step(node)
        except (KeyError, IndexError, ValueError) as error:  # for example, a weight that is no constant
            raise _no_c(f"a {node.op_type} of {', '.join(node.input)}") from error

    def _step(self, node: NodeProto) -> Step | None:
        """The call for a node; None if the node changes nothing."""
        kind, (x, *others), (y, *_) = node.op_type, node.input, node.output
        if y not in self._shapes:
            raise _no_c(f"a {kind} that changes the batch axis")
        count = prod(self._shapes[y])
        attributes = {each.name: _value(each) for each in node.attribute}
        if not count or attributes.get("to", FLOAT) != FLOAT:
            raise _no_c(f"a {kind} whose result is not float32 of a known shape")
        bytes_in = self._alias.get(x, x) == INPUT and self._bytes
        if kind in SAME or (kind == "Cast" and not bytes_in):
            self._alias[y] = self._alias.get(x, x)
            return None
        if kind == "Cast":
            return self._call(f"fv_bytes({{0}}, {{y}}, {count});", y, x)
        if kind in ("Relu", "LeakyRelu"):
            slope = c_float(attributes.get("alpha", 0.01) if kind == "LeakyRelu" else 0)
            return self._call(f"fv_relu({{0}}, {{y}}, {count}, {slope});", y, x)
        if kind == "Clip":
            least, most = map(c_float, self._bounds(others))
            return self._call(f"fv_clip({{0}}, {{y}}, {count}, {least}, {most});", y, x)
        if kind == "BatchNormalization":
            return self._norm(x, others, y, attributes["epsilon"])
        if kind == "Pad":
            return self._pad(x, others, y, attributes)
        if kind in EACH:
            return self._each(EACH[kind], x, others[0], y)
        if kind == "Conv" and len(self._shapes[x]) in (2, 3):
            return self._conv(x, others, y, attributes)
        if kind in ("MaxPool", "AveragePool") and len(self._shapes[x]) in (2, 3):
            return self._pool(x, y, attributes, mean=kind == "AveragePool")
        if kind == "GlobalAveragePool" or (kind == "ReduceMean" and self._over_pixels(x, others)):
            channels, *pixels = self._shapes[x]
            return self._call(f"fv_mean({{0}}, {{y}}, {channels}, {prod(pixels)});", y, x)
        if kind == "ReduceMax" and self._over_pixels(x, others) and len(self._shapes[x]) in (2, 3):
            return self._pool(x, y, {"kernel_shape": self._shapes[x][1:]}, mean=False)
        if kind in ("Gemm", "MatMul") and others[0] in self._values and x not in self._values:
            return self._dense(x, others, y, attributes, transposed=kind == "Gemm" and attributes.get("transB", 0) == 1)
        raise _no_c(f"a {kind} of inputs of shape {self._shapes[x]}")

    def _call(self, call: str, value: str, *sources: str) -> Step:
        return Step(call, tuple(self._alias.get(source, source) for source in sources), value)

    def _each(self, sign: str, x: str, other: str, y: str) -> Step | None:
        if x in self._values and sign in "+*":
            x, other = other, x
        if x in self._values:
            raise _no_c(f"a constant {sign} a value")
        shape = self._shapes[x]
        count = prod(shape)
        if other not in self._values:
            if self._shapes[other] != shape:
                raise _no_c(f"a {sign} of shapes {shape} and {self._shapes[other]}")
            return self._call(f"fv_each('{sign}', {{0}}, {{1}}, {{y}}, {count}, {count}, 1);", y, x, other)
        values, run = _repeated(self._values[other], shape)
        name = self.constants.array("float", values)
        return self._call(f"fv_each('{sign}', {{0}}, {name}, {{y}}, {count}, {values.size}, {run});", y, x)

    def _norm(self, x: str, others: Sequence[str], y: str, epsilon: float) -> Step:
        """A batch norm that was not folded into a layer: y = gamma (x - mean) / sqrt(var + eps) + beta"""
        gamma, beta, mean, var = (self._values[name] for name in others)
        scale = gamma / np.sqrt(var + epsilon)
        count, channels = prod(self._shapes[x]), self._shapes[x][0]
        rest = f"{{y}}, {count}, {channels}, {count // channels});"
        factor, shift = self.constants.array("float", scale), self.constants.array("float", beta - mean * scale)
        return self._call(f"fv_each('*', {{0}}, {factor}, {rest} fv_each('+', {{y}}, {shift}, {rest}", y, x)

    def _pad(self, x: str, others: Sequence[str], y: str, attributes: dict[str, Any]) -> Step:
        """Channels of zeros before and behind the others, as in a shortcut that widens."""
        pads = self._values[others[0]].tolist()
        value = float(self._values[others[1]]) if len(others) > 1 and others[1] else 0.0
        before, after = pads[1], pads[len(pads) // 2 + 1]
        if attributes.get("mode", "constant") != "constant" or value or sum(map(abs, pads)) != before + after:
            raise _no_c(f"padding by {pads}")
        channel, count = prod(self._shapes[x][1:]), prod(self._shapes[x])
        return self._call(f"fv_pad({{0}}, {{y}}, {before * channel}, {count}, {after * channel});", y, x)

    def _pool(self, x: str, y: str, attributes: dict[str, Any], mean: bool) -> Step:
        if mean and attributes.get("ceil_mode", 0):
            raise _no_c("average pooling with ceil_mode")  # its zeros count in some windows only
        window = self._window(x, y, attributes["kernel_shape"], attributes)
        zeros_count = attributes.get("count_include_pad", 0)
        return self._call(f"fv_pool(&{window}, {mean:d}, {zeros_count}, {{0}}, {{y}});", y, x)

    def _conv(self, x: str, others: Sequence[str], y: str, attributes: dict[str, Any]) -> Step:
        weight, groups = self._values[others[0]], int(attributes.get("group", 1))
        name = self._weights(others, weight, groups)
        self.patch, self.sums = max(self.patch, prod(weight.shape[1:])), max(self.sums, weight.shape[0] // groups)
        window = self._window(x, y, weight.shape[2:], attributes)
        return self._call(f"fv_conv(&{name}, {groups}, &{window}, {{0}}, {{y}}, patch, sums);", y, x)

    def _dense(self, x: str, others: Sequence[str], y: str, attributes: dict[str, Any], transposed: bool) -> Step:
        usual = all(attributes.get(name, 1.0) == 1 for name in ("alpha", "beta")) and not attributes.get("transA", 0)
        if not usual or len(self._shapes[x]) != 1:
            raise _no_c(f"a product of inputs of shape {self._shapes[x]} with {attributes or 'no attributes'}")
        weight = self._values[others[0]]
        name = self._weights(others, weight if transposed else weight.T, groups=1)
        return self._call(f"fv_product(&{name}, {{0}}, {{y}});", y, x)

    def _weights(self, names: Sequence[str], weight: NDArray[Any], groups: int) -> str:
        """The name of a layer's constants. Layers with the same weights share them."""
        key = (*names, str(groups), str(weight.shape))
        if key not in self._named:
            bias = self._values[names[1]] if len(names) > 1 else None
            self._named[key] = self.constants.weights(weight, bias, groups)
        return self._named[key]

    def _window(self, x: str, y: str, kernel: Sequence[int], attributes: dict[str, Any]) -> str:
        """The name of a window's constants. A sequence counts as an image of one row."""
        rank = len(kernel)
        parts = [kernel, attributes.get("strides") or [1] * rank, (attributes.get("pads") or [0] * rank)[:rank],
                 attributes.get("dilations") or [1] * rank]  # fmt: skip
        if attributes.get("auto_pad", "NOTSET") != "NOTSET":
            raise _no_c("a layer that pads automatically")
        if rank == 1:
            parts = [[alone, *part] for alone, part in zip((1, 1, 0, 1), parts, strict=True)]
        channels, *sides = self._shapes[x]
        out_sides = list(self._shapes[y][1:]) or [1] * rank  # a pool over a whole image leaves one number a channel
        images = [[1] * (2 - rank) + each for each in (sides, out_sides)]
        numbers = [channels, *images[0], *images[1], *(side for part in parts for side in part)]
        return self.constants.window(numbers)

    def _bounds(self, names: Sequence[str]) -> tuple[float, float]:
        """The smallest and the largest output of a Clip. Each bound is optional."""
        given = zip((*names, "", ""), (-FLT_MAX, FLT_MAX), strict=False)
        least, most = (float(self._values[name]) if name else end for name, end in given)
        return max(least, -FLT_MAX), min(most, FLT_MAX)

    def _over_pixels(self, x: str, others: Sequence[str]) -> bool:
        axes = self._values[others[0]].tolist() if others and others[0] in self._values else []
        rank = len(self._shapes[x]) + 1
        return rank > 2 and sorted(axis % rank for axis in axes) == list(range(2, rank))


def _no_c(operation: str) -> ModelError:
    return ModelError(
        f"the network has {operation}, for which there is no C yet; expected convolutions in one and two dimensions, "
        "linear layers, batch norm, ReLU and its variants, pooling, means and maxima over pixels, channels of zeros, "
        "and + - * / of equal shapes or with constants: export it as onnx"
    )


def _constants(model: ModelProto) -> dict[str, NDArray[Any]]:
    from onnx import numpy_helper

    found = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    for node in [each for each in model.graph.node if each.op_type == "Constant"]:
        found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        model.graph.node.remove(node)
    return found


def _shapes(model: ModelProto) -> dict[str, tuple[int, ...]]:
    """Shapes of all values that have a batch axis, without that axis."""
    from onnx import shape_inference

    single = type(model)()  # for a batch of one input
    single.CopyFrom(model)
    batch = single.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for value in (*single.graph.input, *single.graph.output, *single.graph.value_info):
        for side in value.type.tensor_type.shape.dim:
            if side.dim_param == batch:
                side.dim_value = 1
    # infers only the shapes that torch leaves out: onnx and torch disagree about pools with ceil_mode
    graph = shape_inference.infer_shapes(single, data_prop=True).graph
    values = (*graph.input, *graph.output, *graph.value_info)
    sides = {value.name: tuple(side.dim_value for side in value.type.tensor_type.shape.dim) for value in values}
    return {name: shape[1:] for name, shape in sides.items() if shape[:1] == (1,)}


def _value(attribute: Any) -> Any:
    from onnx import helper

    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _repeated(values: NDArray[Any], shape: tuple[int, ...]) -> tuple[NDArray[Any], int]:
    """Constants to broadcast to a shape, and the number of neighbours that each of them serves."""
    sides = (1,) * (len(shape) + 1 - values.ndim) + values.shape
    if values.size == 1:
        return values, prod(shape)
    if sides[1] == shape[0] and prod(sides) == shape[0]:
        return values, prod(shape[1:])
    return np.broadcast_to(values.reshape(sides), (1, *shape)), 1
