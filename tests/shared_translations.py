"""Exports in tests: torch translates equal networks once."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import torch


class Content(pickle.Pickler):
    """Writes tensors by their values; torch writes their addresses as well."""

    def reducer_override(self, thing: Any) -> Any:
        return (torch.from_numpy, (thing.detach().numpy(),)) if isinstance(thing, torch.Tensor) else NotImplemented


@contextmanager
def shared_translations() -> Iterator[None]:
    """Torch takes a second to translate a network, however small; half of it for its table of operators, anew.

    All that fedvote itself does with a graph is done for every test.
    """
    if find_spec("onnx") is None or find_spec("onnxscript") is None:
        yield  # nothing is exported here
        return
    from onnx import ModelProto
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    from fedvote.export import onnx
    from fedvote.export.c import program
    from fedvote.network.deployed import Deployed

    graphs: dict[bytes, bytes] = {}
    translate = onnx.translated

    def translated(network: Deployed, x: torch.Tensor) -> Any:
        onnx._library("onnxscript")
        key = io.BytesIO()
        try:
            Content(key).dump(network)
        except (AttributeError, pickle.PicklingError):  # a class within a test
            return translate(network, x)
        if key.getvalue() not in graphs:
            graphs[key.getvalue()] = translate(network, x).SerializeToString()
        return ModelProto.FromString(graphs[key.getvalue()])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        for module in (onnx, program):
            patch.setattr(module, "translated", translated)
        yield
