"""A deployed network as an ONNX file that any runtime loads, its votes packed into bits or trits.

Batch norm is folded away. A packed weight is looked up in a table of all bytes, and scaled:

    bytes -> Gather(table) -> Reshape -> Cast -> Mul(scale) -> the layer

A runtime does so once, when it loads the file: in memory the weights are floats, or bytes where activations are.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedvote.core import ConfigError, Examples, ModelError
from fedvote.deployed import Deployed
from fedvote.draft import draft
from fedvote.export.int8 import with_int8
from fedvote.export.packing import BITS, Packed, pack

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

OPSET = 18
INPUT, OUTPUT = "input", "logits"
TRIED = 4  # inputs on which a file of floats has to answer as the network does
TOLERANCE = 1e-3  # of the largest output, by which its answers may differ
AGREEMENT = 0.9  # of the inputs that a file with integers has to call the same class as the network does


@dataclass(frozen=True)
class Exported:
    path: Path
    nbytes: int
    votes: int  # weights that are packed
    agreement: float  # share of inputs that file and network call the same class


def export_onnx(network: Deployed, path: Path | str, int8: Tensor | None = None) -> Exported:
    """Write the network, once the file was seen to answer as the network does. It takes inputs as the network does.

    `int8`: some hundred inputs, to run the layers between them on integers of 8 bits, in the ranges that these make.
    """
    onnx, _ = _library("onnx"), _library("onnxruntime")
    tried = _examples(network, TRIED) if int8 is None else _checked(int8, network)
    with torch.no_grad():
        model = _translated(network)
    if int8 is not None:
        model = with_int8(model, INPUT, tried.numpy())
    votes = _pack_weights(model)
    _describe(model, network)
    onnx.checker.check_model(model)
    written = model.SerializeToString()
    agreement = _agreement(written, network, tried, exact=int8 is None)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft(path) as part:
        part.write_bytes(written)
    return Exported(path, len(written), votes, agreement)


def accuracy(path: Path | str, examples: Examples, batch: int = 100) -> float:
    """The share of examples that a file calls by their class."""
    session = _session(Path(path).read_bytes())
    pairs = zip(examples.x.split(batch), examples.y.split(batch), strict=True)
    right = sum(int((_answers(session, x).argmax(1) == y.numpy()).sum()) for x, y in pairs)
    return right / len(examples)


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"ONNX files need {name}, which is not installed: pip install 'fedvote[onnx]'") from error


def _translated(network: Deployed) -> ModelProto:
    _library("onnxscript")
    try:
        with _quiet():
            program = torch.onnx.export(
                network, (_examples(network, 2),), dynamo=True, opset_version=OPSET, input_names=[INPUT],
                output_names=[OUTPUT], dynamic_shapes={"x": {0: torch.export.Dim("batch")}}, verbose=False,
            )  # fmt: skip
    except Exception as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"torch cannot translate the network to ONNX: {first_line}") from error
    assert program is not None
    model: ModelProto = program.model_proto
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's remarks on packages that are not here, and on its own code."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)


def _examples(network: Deployed, count: int) -> Tensor:
    """Random inputs of the kind that the network takes."""
    lots = torch.Generator().manual_seed(0)
    shape = (count, *network.shape)
    if network.dtype == torch.uint8:
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=lots)
    return torch.randn(shape, generator=lots).to(network.dtype)


def _checked(inputs: Tensor, network: Deployed) -> Tensor:
    if inputs.dtype != network.dtype or inputs.shape[1:] != network.shape or not len(inputs):
        raise ConfigError(
            f"int8 is {inputs.dtype} of shape {tuple(inputs.shape)}, expected inputs as the network takes them: "
            f"{network.dtype} of shape (some hundred, {', '.join(map(str, network.shape))})"
        )
    return inputs


def _pack_weights(model: ModelProto) -> int:
    """Put tables in the place of weights that are votes; how many weights these are."""
    from onnx import numpy_helper

    graph, votes = model.graph, 0
    decoders: list[NodeProto] = []
    for weight in [each for each in graph.initializer if len(each.dims) > 1]:
        values = numpy_helper.to_array(weight)
        if values.dtype not in (np.float32, np.int8) or (packed := pack(values)) is None:
            continue
        if values.dtype == np.int8 and packed.scale.max() > 1:
            continue  # integers are not scaled here: the layer does that
        graph.initializer.remove(weight)
        constants, nodes = _decoder(weight.name, packed)
        known = {each.name for each in graph.initializer}
        graph.initializer.extend(each for each in constants if each.name not in known)
        decoders += nodes
        votes += values.size
    layers = list(graph.node)
    del graph.node[:]
    graph.node.extend([*decoders, *layers])
    return votes


def _decoder(name: str, packed: Packed) -> tuple[list[TensorProto], list[NodeProto]]:
    """Constants and nodes that make the weight of this name."""
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
    constants.append(table)  # all weights have it in common
    rows = node("Cast", constant("packed", packed.bytes), to=TensorProto.INT32)
    votes = node("Gather", table.name, rows, axis=0)
    if (size := int(np.prod(packed.shape))) < packed.bytes.size * packed.table.shape[1]:
        flat = node("Reshape", votes, constant("flat", np.array([-1])))
        votes = node("Slice", flat, constant("start", np.array([0])), constant("end", np.array([size])))
    if packed.scale.dtype == np.int8:
        node("Reshape", votes, constant("shape", np.array(packed.shape)), output=name)
        return constants, nodes
    shaped = node("Reshape", votes, constant("shape", np.array(packed.shape)))
    floats = node("Cast", shaped, to=TensorProto.FLOAT)
    node("Mul", floats, constant("scale", packed.scale), output=name)
    return constants, nodes


def _describe(model: ModelProto, network: Deployed) -> None:
    from onnx import helper

    from fedvote import __version__

    model.producer_name, model.producer_version, model.graph.name = "fedvote", __version__, "fedvote"
    for part in (*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.value_info):
        del part.metadata_props[:]  # where in torch's source each came from
    for node in model.graph.node:
        node.doc_string = ""
    del model.metadata_props[:]
    helper.set_model_props(model, {"classes": json.dumps(network.classes)})


def _agreement(written: bytes, network: Deployed, x: Tensor, exact: bool) -> float:
    """The share of inputs that the file and the network call the same class; a file that is wrong is refused."""
    session = _session(written)
    found = np.concatenate([_answers(session, some) for some in x.split(100)])
    with torch.no_grad():
        expected = torch.cat([network(some) for some in x.split(100)]).numpy()
    agreement = float((found.argmax(1) == expected.argmax(1)).mean())
    difference = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12)
    if exact and not difference <= TOLERANCE:
        raise ModelError(
            f"the ONNX file answers differently from the network, by {difference:.1%} of the largest output: "
            "one of its layers is translated wrongly; export the network's nn.Module by another tool"
        )
    if not exact and agreement < AGREEMENT:
        raise ModelError(
            f"with integers of 8 bits the network calls only {agreement:.1%} of {len(x)} inputs the same class as with "
            f"floats, expected {AGREEMENT:.0%}: give more typical inputs, or export without int8"
        )
    return agreement


def _session(written: bytes) -> Any:
    return _library("onnxruntime").InferenceSession(written, providers=["CPUExecutionProvider"])


def _answers(session: Any, x: Tensor) -> NDArray[np.float32]:
    (logits,) = session.run([OUTPUT], {INPUT: x.numpy()})
    return np.asarray(logits)
