"""The record of an export, and the check that it answers like the network."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedvote import contracts
from fedvote.core import Dataset
from fedvote.errors import ConfigError, FedVoteError, ModelError, reason
from fedvote.network.deployed import Deployed

TOLERANCE = 1e-3  # allowed difference of a float export, relative to the largest output
ROUNDING, MOST = 10, 0.05  # allowed, too: this many times what rounding to float32 changes, and at most so much
AGREEMENT = 0.9  # share of inputs on which an int8 export must predict the network's class


@dataclass(frozen=True)
class Exported:
    path: Path
    nbytes: int  # of the file; for C, of the program's constants
    votes: int  # number of packed weights that are votes
    agreement: float | None  # share of inputs with the network's class; None: not tested


def checked(network: Deployed, path: Path | str, ending: str) -> tuple[Deployed, Path]:
    """Check both arguments of an export. Returns the network in evaluation mode, and the path."""
    if not isinstance(network, Deployed):
        raise ConfigError(
            f"got {contracts.kind(network)}, expected a deployed network: give run.deployed(snapshot), or what "
            "fedvote.load_network returns"
        )
    if not isinstance(path, str | Path):
        raise ConfigError(f"the file is {contracts.kind(path)}, expected a path that ends in {ending}")
    path = Path(path)
    if path.suffix != ending:
        raise ConfigError(f"the file is {str(path)!r}, expected a name that ends in {ending}")
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, expected a file in it, such as {path / f'network{ending}'}")
    return (copy.deepcopy(network).eval() if network.training else network), path


def votes_among(packed: int, network: Deployed) -> int:
    """How many of the packed weights are votes: a float weight of zeros is packed as well, but nobody voted on it."""
    return packed if network.votes is None else min(packed, network.votes)


def inputs_of(data: Dataset | None) -> Tensor | None:
    """The inputs of some data: of the training examples, or of the test examples if there are no others."""
    return None if data is None else (data.train if len(data.train) else data.test).x


def checked_inputs(network: Deployed, inputs: Tensor, name: str) -> Tensor:
    """Check inputs that the caller gave as the argument `name`. Returns them on the CPU."""
    fits = isinstance(inputs, Tensor) and inputs.dtype == network.dtype and inputs.shape[1:] == network.shape
    if not fits or not len(inputs):
        found = contracts.form(inputs) if isinstance(inputs, Tensor) else contracts.kind(inputs)
        raise ConfigError(
            f"{name} is {found}, expected inputs as the network takes them, such as data.train.x[:200]: a tensor of "
            f"{network.dtype} of shape (a few hundred, {', '.join(map(str, network.shape))})"
        )
    return inputs.detach().cpu()


def examples(network: Deployed, count: int, given: Tensor | None = None) -> Tensor:
    """Inputs to try an export on: the first of those given, else random inputs that the network accepts."""
    if given is not None:
        return given[torch.arange(count) % len(given)]
    problem = ""
    for x in _random_inputs(network, count):
        try:
            with torch.no_grad():
                network(x)
            return x
        except FedVoteError:
            raise
        except Exception as error:  # a forward may raise anything
            problem = problem or f"{type(error).__name__}: {reason(error)}"
    raise ModelError(
        f"the export cannot be tested, because the network accepts no random inputs ({problem}): give some of its "
        "data, as inputs=x[:4] in Python or with --test on the command line"
    )


def _random_inputs(network: Deployed, count: int) -> Iterator[Tensor]:
    """Random inputs of the network's shape and dtype: numbers, then tokens that every embedding has, then zeros."""
    generator = torch.Generator().manual_seed(0)
    shape = (count, *network.shape)
    if network.dtype == torch.uint8:
        yield torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    else:
        yield torch.randn(shape, generator=generator).to(network.dtype)
    tables = [layer for layer in network.modules() if isinstance(layer, nn.Embedding | nn.EmbeddingBag)]
    if tables:
        fewest = min(table.num_embeddings for table in tables)
        yield torch.randint(0, fewest, shape, generator=generator).to(network.dtype)
    yield torch.zeros(shape, dtype=network.dtype)


def agreement(found: NDArray[Any], network: Deployed, x: Tensor, exact: bool = True) -> float:
    """The share of inputs on which the export predicts the network's class. Too many errors are a ModelError.

    A network that amplifies rounding, such as a recurrent layer of votes, answers differently in every program.

    A network of one output has no classes: with 8-bit activations, 1 minus the mean difference in deviations.
    """
    with torch.no_grad():
        expected = torch.cat([network(batch) for batch in x.split(100)]).numpy()
    same = float((found.argmax(1) == expected.argmax(1)).mean())
    difference = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12)
    if exact and not difference <= TOLERANCE:
        _check_rounding(float(difference), network, x)
    if not exact and expected.shape[1] == 1:  # one number, no class
        same = 1 - float(np.abs(found - expected).mean() / max(expected.std(), 1e-12))
    if not exact and same < AGREEMENT:
        raise ModelError(
            f"with 8-bit activations the network gives only {same:.1%} of {len(x)} inputs the same class as with "
            f"floats, expected {AGREEMENT:.0%}: give more typical inputs, or export without int8"
        )
    return same


def _check_rounding(difference: float, network: Deployed, x: Tensor) -> None:
    """ModelError unless the network amplifies rounding so much that it explains the difference of an export."""
    rounding = _rounding(network, x)
    allowed = min(max(TOLERANCE, ROUNDING * rounding), MOST)
    if difference <= allowed:
        return
    cause = "a layer was translated wrongly; export the nn.Module with another tool"
    if rounding * ROUNDING > TOLERANCE:
        cause = (
            f"rounding to float32 alone changes the network's outputs by {rounding:.1%}, because its layers amplify "
            "it, as recurrent layers of votes do: keep such layers float, or shorten the sequences"
        )
    raise ModelError(
        f"the export answers differently from the network, by {difference:.1%} of the largest output, expected at most "
        f"{allowed:.1%}: {cause}"
    )


def _rounding(network: Deployed, x: Tensor) -> float:
    """By how much the network's outputs differ in float32 and in float64, relative to the largest output."""
    exact = copy.deepcopy(network.network).double()
    try:
        with torch.no_grad():
            found = torch.cat([network(batch) for batch in x.split(100)]).double()
            expected = torch.cat([exact(network.scaled(batch).double()) for batch in x.split(100)])
    except Exception:  # a forward may mix in float32 of its own
        return 0.0
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(1e-12))
