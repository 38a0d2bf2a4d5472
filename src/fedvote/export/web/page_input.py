"""What a page asks for: a drawing, an image, or the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from fedvote.core import Dataset
from fedvote.errors import ConfigError
from fedvote.export.web.ink import Ink, measured
from fedvote.network.deployed import Deployed

KINDS = {torch.uint8: "uint8", torch.float32: "float32"}
CHANNELS = (1, 3)  # grey or colour


def page_input(network: Deployed, data: Dataset | None) -> dict[str, Any]:
    """How the page makes inputs of this network; ConfigError if it cannot. `data` has names, ranges and drawings."""
    shape, dtype = network.shape, KINDS.get(network.dtype)
    if dtype is None or not (len(shape) == 1 or (len(shape) == 3 and shape[0] in CHANNELS)):
        raise ConfigError(
            f"the network takes {network.dtype} of shape {shape}, expected bytes or floats of an image, (1 or 3, "
            "height, width), or of a table, (columns,): a page can ask for no others; export it as onnx"
        )
    if data is not None and data.shape != shape:
        raise ConfigError(f"the data have inputs of shape {data.shape}, expected {shape}, as the network takes them")
    x = None if data is None or not len(data.train) else data.train.x
    about = _image(network, x) if len(shape) == 3 else {"columns": _columns(network, x, data.columns if data else ())}
    return {"shape": list(shape), "dtype": dtype, **about}


def _image(network: Deployed, x: Tensor | None) -> dict[str, Any]:
    low, high = (0.0, 255.0) if network.dtype == torch.uint8 else (0.0, 1.0)
    if x is not None and x.dtype != torch.uint8:
        low, high = float(x.min()), float(x.max())
    channels, height, width = network.shape
    if channels > 1:
        return {"low": low, "high": high, "ink": None}
    ink = Ink.usual(height, width) if x is None else measured((x[:, 0].float() - low) / max(high - low, 1e-12))
    return {"low": low, "high": high, "ink": ink and asdict(ink)}


def _columns(network: Deployed, x: Tensor | None, names: Sequence[str]) -> list[dict[str, Any]]:
    """Name, range and first value of each column; whole: it holds no fractions."""
    (count,) = network.shape
    names = names or [f"column {index + 1}" for index in range(count)]
    if x is not None:
        whole = (x == x.float().round()).all(0).tolist()
        low, start, high = (values.tolist() for values in (x.min(0).values, x.median(0).values, x.max(0).values))
    else:
        whole = [network.dtype == torch.uint8] * count
        low, start, high = _guessed(network)
    rows = zip(names, low, start, high, whole, strict=True)
    return [{"name": n, "low": a, "start": s, "high": b, "whole": w} for n, a, s, b, w in rows]


def _guessed(network: Deployed) -> tuple[list[float], list[float], list[float]]:
    """Two deviations on either side of the mean, if training had them; else -3 to 3, or all bytes."""
    (count,) = network.shape
    if network.dtype == torch.uint8:
        return [0.0] * count, [0.0] * count, [255.0] * count
    mean = network.mean.expand(count) if network.mean.numel() else torch.zeros(count)
    reach = 2 * network.std.expand(count) if network.std.numel() else torch.full((count,), 3.0)
    return (mean - reach).tolist(), mean.tolist(), (mean + reach).tolist()
