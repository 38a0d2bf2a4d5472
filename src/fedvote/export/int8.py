"""Activations of eight bits: an ONNX graph that integer kernels run, several times faster than one of floats.

Weights that are votes stay votes, and their scales become those of the layer's integers: -1 and +1 lose nothing, and no
sum of two products overflows 16 bits, which processors without VNNI would cut off. Other weights are rounded to 8 bits.
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

BATCH = 50  # inputs at a time


def with_int8(model: ModelProto, name: str, inputs: NDArray[Any]) -> ModelProto:
    """The graph with integers between its layers, of the range that these inputs make there.

    `name`: of the graph's input. The range is from the least to the largest: cutting off the largest costs accuracy.
    """
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.batches = iter(np.split(inputs, range(BATCH, len(inputs), BATCH)))

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return {name: batch} if (batch := next(self.batches, None)) is not None else None

    grouped = grouped_outputs(model)  # which integers cannot be scaled by output
    floats = [node.name for node in model.graph.node if len(node.input) > 1 and node.input[1] in grouped]
    with tempfile.TemporaryDirectory() as folder, quiet():
        file = Path(folder) / "int8.onnx"
        quantize_static(
            model, file, Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            nodes_to_exclude=floats, extra_options={"TensorQuantOverrides": _votes_as_they_are(model)},
        )  # fmt: skip
        return onnx.load(file)


def grouped_outputs(model: ModelProto) -> dict[str, int]:
    """Weights that have no axis of outputs, since those of several groups are in one place of it: how many groups."""
    transposed = [node for node in model.graph.node if node.op_type == "ConvTranspose"]
    groups = {node.input[1]: each.i for node in transposed for each in node.attribute if each.name == "group"}
    return {weight: count for weight, count in groups.items() if count > 1}


def _votes_as_they_are(model: ModelProto) -> dict[str, list[dict[str, Any]]]:
    """For each weight that is votes: its scales, so that its integers are -1, 0 and 1."""
    from onnx import numpy_helper
    from onnxruntime.quantization import QuantType

    scales, outputs = {}, _axes_of_outputs(model)
    for weight in model.graph.initializer:
        axis = outputs.get(weight.name)
        if axis is not None and (packed := pack(numpy_helper.to_array(weight), axis)):
            scale = np.where(packed.scale > 0, packed.scale, 1).astype(np.float32)  # a row of zeros has any scale
            fixed = {"zero_point": np.array(0, np.int8), "quant_type": QuantType.QInt8, "axis": packed.axis}
            scales[weight.name] = [{**fixed, "scale": np.array(value)} for value in scale.flat]
    return scales


def _axes_of_outputs(model: ModelProto) -> dict[str, int]:
    """For each weight of a layer, which of its axes is that of outputs."""
    from onnx import helper

    ranks, found = {each.name: len(each.dims) for each in model.graph.initializer}, {}
    for node in model.graph.node:
        weight = node.input[1] if len(node.input) > 1 else ""
        flipped = any(each.name == "transB" and helper.get_attribute_value(each) for each in node.attribute)
        axes = {"Conv": 0, "ConvTranspose": 1, "Gemm": 0 if flipped else 1, "MatMul": ranks.get(weight, 0) - 1}
        if ranks.get(weight, 0) > 1 and node.op_type in axes:
            found[weight] = axes[node.op_type]
    return found
