"""What was written for other programs, and whether it answers as the network does."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedvote.errors import ConfigError, ModelError
from fedvote.export.network_file import Deployed

TOLERANCE = 1e-3  # of the largest output, by which answers in floats may differ
AGREEMENT = 0.9  # of the inputs that a file with integers has to call the same class as the network does


@dataclass(frozen=True)
class Exported:
    path: Path
    nbytes: int  # of the file, or where that is a program's source, of its constants
    votes: int  # weights that are packed
    agreement: float | None  # share of inputs that it calls the same class as the network; None: it could not be tried


def checked(network: Deployed, path: Path | str, ending: str) -> tuple[Deployed, Path]:
    """The network in evaluation mode, and where its file goes, if both are of the kind that they should be."""
    path = Path(path)
    if not isinstance(network, Deployed):
        raise ConfigError(
            f"got a {type(network).__name__}, expected what fedvote.load_network gives: save what was trained with "
            "fedvote.save_network, and load it"
        )
    if path.suffix != ending:
        raise ConfigError(f"the file is {str(path)!r}, expected a name that ends in {ending}")
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, expected a file in it, such as {path / f'network{ending}'}")
    return (copy.deepcopy(network).eval() if network.training else network), path


def examples(network: Deployed, count: int) -> Tensor:
    """Random inputs of the kind that the network takes."""
    lots = torch.Generator().manual_seed(0)
    shape = (count, *network.shape)
    if network.dtype == torch.uint8:
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=lots)
    return torch.randn(shape, generator=lots).to(network.dtype)


def agreement(found: NDArray[Any], network: Deployed, x: Tensor, exact: bool = True) -> float:
    """The share of inputs that are called the same class; answers that are wrong are refused."""
    with torch.no_grad():
        expected = torch.cat([network(some) for some in x.split(100)]).numpy()
    same = float((found.argmax(1) == expected.argmax(1)).mean())
    difference = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12)
    if exact and not difference <= TOLERANCE:
        raise ModelError(
            f"what was exported answers differently from the network, by {difference:.1%} of the largest output: "
            "one of its layers is translated wrongly; export the network's nn.Module by another tool"
        )
    if not exact and same < AGREEMENT:
        raise ModelError(
            f"with integers of 8 bits the network calls only {same:.1%} of {len(x)} inputs the same class as with "
            f"floats, expected {AGREEMENT:.0%}: give more typical inputs, or export without int8"
        )
    return same
