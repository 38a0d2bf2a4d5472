"""An ONNX graph with 8-bit activations: integer kernels run it several times faster than a float graph.

Votes stay votes: they become the integers -1, 0 and +1 without loss, and their scales become the layer's. No sum of two
products overflows 16 bits, where processors without VNNI saturate. Other weights are rounded to 8 bits.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedvote.export.packing import pack
from fedvote.export.quiet import quiet

if TYPE_CHECKING:
    from onnx import ModelProto

BATCH = 50  # calibration inputs at a time


def with_int8(model: ModelProto, name: str, inputs: NDArray[Any]) -> ModelProto:
    """The graph with 8-bit activations. `name`: of the graph's input.

    `inputs` set the ranges, from the smallest to the largest activation: clipping outliers costs accuracy.
    """
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.batches = iter(np.split(inputs, range(BATCH, len(inputs), BATCH)))

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return {name: batch} if (batch := next(self.batches, None)) is not None else None

    grouped = grouped_outputs(model)  # integers cannot be scaled by output there
    floats = [node.name for node in model.graph.node if {*grouped, *_tied(model)} & {*node.input[:2]}]
    with tempfile.TemporaryDirectory() as folder, quiet():
        file = Path(folder) / "int8.onnx"
        quantize_static(
            model, file, Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            nodes_to_exclude=floats, extra_options={"TensorQuantOverrides": _vote_scales(model)},
        )  # fmt: skip
        return onnx.load(file)


def _tied(model: ModelProto) -> set[str]:
    """Weights that an embedding and a layer share: a table has a scale for all rows, a layer one for each output."""
    kinds: dict[str, set[str]] = {weight.name: set() for weight in model.graph.initializer}
    for node in model.graph.node:
        for name in kinds.keys() & {*node.input[:2]}:
            kinds[name].add(node.op_type)
    return {name for name, found in kinds.items() if "Gather" in found and len(found) > 1}


def grouped_outputs(model: ModelProto) -> dict[str, int]:
    """The number of groups of each transposed convolution in groups. Such a weight has no axis of all outputs."""
    transposed = [node for node in model.graph.node if node.op_type == "ConvTranspose"]
    groups = {node.input[1]: each.i for node in transposed for each in node.attribute if each.name == "group"}
    return {weight: count for weight, count in groups.items() if count > 1}


def _vote_scales(model: ModelProto) -> dict[str, list[dict[str, Any]]]:
    """The scales of each weight made of votes. With them its integers are -1, 0 and 1."""
    from onnx import numpy_helper
    from onnxruntime.quantization import QuantType

    scales, axes = {}, _output_axes(model)
    for weight in model.graph.initializer:
        axis = axes.get(weight.name)
        if axis is not None and (packed := pack(numpy_helper.to_array(weight), axis)):
            scale = np.where(packed.scale > 0, packed.scale, 1).astype(np.float32)  # any scale fits a row of zeros
            fixed = {"zero_point": np.array(0, np.int8), "quant_type": QuantType.QInt8, "axis": packed.axis}
            scales[weight.name] = [{**fixed, "scale": np.array(value)} for value in scale.flat]
    return scales


def _output_axes(model: ModelProto) -> dict[str, int]:
    """The output axis of each layer's weight."""
    from onnx import helper

    ranks, found = {each.name: len(each.dims) for each in model.graph.initializer}, {}
    for node in model.graph.node:
        weight = node.input[1] if len(node.input) > 1 else ""
        flipped = any(each.name == "transB" and helper.get_attribute_value(each) for each in node.attribute)
        axes = {"Conv": 0, "ConvTranspose": 1, "Gemm": 0 if flipped else 1, "MatMul": ranks.get(weight, 0) - 1}
        if ranks.get(weight, 0) > 1 and node.op_type in axes:
            found[weight] = axes[node.op_type]
    return found
