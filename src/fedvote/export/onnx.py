"""A deployed network as an ONNX file for any runtime, its votes packed into bits or trits.

Batch norm is folded into the layers. A table lookup unpacks a weight:

    bytes -> Gather(table) -> Reshape -> Cast -> Mul(scale) -> the layer

A runtime unpacks once, when it loads the file. In memory, weights are floats, or bytes with 8-bit activations.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedvote.errors import ConfigError, FedVoteError, ModelError, reason
from fedvote.export.exported import Exported, agreement, checked, checked_inputs, examples, votes_among
from fedvote.export.int8 import grouped_outputs, with_int8
from fedvote.export.packing import BITS, Packed, pack
from fedvote.export.quiet import quiet
from fedvote.network.deployed import Deployed
from fedvote.system.atomic_file import write

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

OPSET = 18
INPUT, OUTPUT = "input", "logits"
TRIED = 4  # inputs to test a float file on


def export_onnx(
    network: Deployed, path: Path | str, int8: Tensor | None = None, *, inputs: Tensor | None = None
) -> Exported:
    """Write the network, after checking that the file answers like it. The file takes the same inputs.

    `int8`: a few hundred inputs, for 8-bit activations in the ranges of these inputs. `inputs`: a few inputs to check
    the file on; without them and int8, random ones.
    """
    onnx, _ = _library("onnx"), _library("onnxruntime")
    network, path = checked(network, path, ".onnx")
    ranges = None if int8 is None else checked_inputs(network, int8, "int8")
    given = ranges if inputs is None else checked_inputs(network, inputs, "inputs")
    x = examples(network, TRIED, given)
    model = translated(network, x)
    if ranges is not None:
        agreement(_outputs(model.SerializeToString(), x), network, x)  # a wrong float graph stays wrong
        with _explained("its graph cannot take 8-bit activations"):
            model, x = with_int8(model, INPUT, ranges.numpy()), ranges
    packed = _pack_weights(model)
    _describe(model, network)
    with _explained("its graph is not ONNX"):
        onnx.checker.check_model(model)
    content = model.SerializeToString()
    same = agreement(_outputs(content, x), network, x, exact=int8 is None)
    write(path, content)
    return Exported(path, len(content), votes_among(packed, network), same)


def outputs(path: Path | str, x: Tensor, batch: int = 100) -> NDArray[Any]:
    """The outputs of an ONNX file."""
    running = session(Path(path))
    return np.concatenate([_answers(running, part) for part in x.split(batch)])


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"exports need {name}, which is not installed: pip install '.[onnx]' in a clone") from error


def translated(network: Deployed, x: Tensor) -> ModelProto:
    """The network as an ONNX graph, each batch norm folded into the layer before it. `x`: inputs that it accepts."""
    _library("onnxscript")
    batches = {"x": {0: torch.export.Dim("batch")}}
    with _explained("torch cannot translate it"), quiet(), torch.no_grad():
        model = _graph(network, (x[:2],), dynamic_shapes=batches)
    if _takes_any_batch(model):
        return model
    # len(x) is a constant where torch runs the code, and a variable where it reads the code, which fails more often
    with _explained("its forward takes batches of one size; write x.shape[0] for len(x)"), quiet(), torch.no_grad():
        return _graph(torch.export.export(network, (x[:2],), dynamic_shapes=batches, strict=True))


def _graph(network: Any, *given: Any, **options: Any) -> ModelProto:
    program = torch.onnx.export(
        network, *given, dynamo=True, opset_version=OPSET, input_names=[INPUT], output_names=[OUTPUT], verbose=False,
        **options,
    )  # fmt: skip
    assert program is not None
    model: ModelProto = program.model_proto
    return model


def _takes_any_batch(model: ModelProto) -> bool:
    return bool(model.graph.input[0].type.tensor_type.shape.dim[0].dim_param)


@contextmanager
def _explained(problem: str) -> Iterator[None]:
    try:
        yield
    except FedVoteError:
        raise
    except Exception as error:
        raise ModelError(f"the network cannot be made ONNX: {problem} ({reason(error)})") from error


def _pack_weights(model: ModelProto) -> int:
    """Replace weights made of votes by table lookups. Returns the number of packed weights."""
    from onnx import numpy_helper

    graph, groups, votes = model.graph, grouped_outputs(model), 0
    decoders: list[NodeProto] = []
    for weight in [each for each in graph.initializer if len(each.dims) > 1]:
        values = numpy_helper.to_array(weight)
        if values.dtype not in (np.float32, np.int8) or (packed := _packed(values, groups.get(weight.name, 1))) is None:
            continue
        if values.dtype == np.int8 and packed.scale.max() > 1:
            continue  # the layer scales integers, not the lookup
        graph.initializer.remove(weight)
        constants, nodes = _decoder(weight.name, packed, values.shape)
        names = {each.name for each in graph.initializer}
        graph.initializer.extend(each for each in constants if each.name not in names)
        decoders += nodes
        votes += values.size
    layers = list(graph.node)
    del graph.node[:]
    graph.node.extend([*decoders, *layers])
    return votes


def _packed(weight: NDArray[Any], groups: int) -> Packed | None:
    if groups == 1:
        return pack(weight)
    # the shape is (inputs, outputs per group, ...), with the inputs of one group after the other
    return pack(weight.reshape(groups, -1, *weight.shape[1:]), axis=2, grouped=True)


def _decoder(name: str, packed: Packed, shape: tuple[int, ...]) -> tuple[list[TensorProto], list[NodeProto]]:
    """Constants and nodes that unpack the weight of this name and shape."""
    from onnx import TensorProto, helper, numpy_helper

    def constant(suffix: str, values: NDArray[Any]) -> str:
        constants.append(numpy_helper.from_array(values, f"{name}.{suffix}"))
        return constants[-1].name

    def node(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output or f"{name}.{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    constants: list[TensorProto] = []
    nodes: list[NodeProto] = []
    table = numpy_helper.from_array(packed.table, "binary votes" if packed.table is BITS else "ternary votes")
    constants.append(table)  # shared by all weights
    rows = node("Cast", constant("packed", packed.bytes), to=TensorProto.INT32)
    votes = node("Gather", table.name, rows, axis=0)
    if (size := int(np.prod(packed.shape))) < packed.bytes.size * packed.table.shape[1]:
        flat = node("Reshape", votes, constant("flat", np.array([-1])))
        votes = node("Slice", flat, constant("start", np.array([0])), constant("end", np.array([size])))
    if packed.scale.dtype == np.int8:
        node("Reshape", votes, constant("shape", np.array(shape)), output=name)
        return constants, nodes
    shaped = node("Reshape", votes, constant("shape", np.array(packed.shape)))
    floats = node("Cast", shaped, to=TensorProto.FLOAT)
    if packed.shape == shape:
        node("Mul", floats, constant("scale", packed.scale), output=name)
    else:
        grouped = node("Mul", floats, constant("scale", packed.scale))
        node("Reshape", grouped, constant("whole", np.array(shape)), output=name)
    return constants, nodes


def _describe(model: ModelProto, network: Deployed) -> None:
    from onnx import helper

    from fedvote import __version__

    model.producer_name, model.producer_version, model.graph.name = "fedvote", __version__, "fedvote"
    for part in (*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.value_info):
        del part.metadata_props[:]  # torch's source locations
    for node in model.graph.node:
        node.doc_string = ""
    del model.metadata_props[:]
    helper.set_model_props(model, {"classes": json.dumps(network.classes)})


def session(file: Path | bytes) -> Any:
    """An ONNX file, or its content, loaded by ONNX Runtime."""
    return _library("onnxruntime").InferenceSession(file, providers=["CPUExecutionProvider"])


def _outputs(content: bytes, x: Tensor) -> NDArray[np.float32]:
    """The outputs of a file's content, computed in batches of different sizes."""
    with _explained("its graph cannot be run on batches of any size"):
        running = session(content)
        return np.concatenate([_answers(running, batch) for batch in (*x[:-1].split(100), x[-1:])])


def _answers(running: Any, x: Tensor) -> NDArray[np.float32]:
    (logits,) = running.run([OUTPUT], {INPUT: x.numpy()})
    return np.asarray(logits)
