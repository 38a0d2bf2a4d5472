"""Evaluation on clients: what travels, and how the answers of all clients are added up.

A request holds the part of the state that the models are made of and, in the second of two turns, statistics for batch
norm. Both are tensors in a compressed safetensors file. First, clients measure batch-norm statistics on their training
examples, and the server pools them. Then clients count, with these statistics, how many of their held-out examples the
models classify correctly. Only sums and counts leave a client.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from fedvote.core import State
from fedvote.errors import WireError
from fedvote.method import Method
from fedvote.network.network import Network

STATE, STATISTICS = "state/", "statistics/"  # prefixes of the tensors of a request
EXAMPLES = "examples"  # in an answer: the number of examples behind it
RIGHT, RIGHT_CALIBRATED, LOSS = "right", "right_calibrated", "loss"  # of each model, as MODEL/right
MOST_EXAMPLES = 2**40
BATCHES = "num_batches_tracked"  # a batch norm's count
DTYPES = {RIGHT: torch.int64, RIGHT_CALIBRATED: torch.int64, BATCHES: torch.int64, LOSS: torch.float64}  # or float32
LARGEST = 2.0**60  # a statistic: a mean's square and a variance then add up to a float32


def needed(method: Method, state: State) -> State:
    """The tensors of a state that its models are made of."""
    seen: dict[str, None] = {}

    class Recording(dict[str, Tensor]):
        def __getitem__(self, name: str) -> Tensor:
            seen[name] = None
            return super().__getitem__(name)

    method.models(Recording(state))
    return {name: state[name] for name in seen}


def write(tensors: Mapping[str, Tensor]) -> bytes:
    return zlib.compress(save({name: value.cpu().contiguous() for name, value in tensors.items()}), 1)


def read(payload: bytes, limit: int) -> State:
    """The tensors in a payload; WireError if it is damaged, or larger than `limit` bytes."""
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(payload, limit)
        if inflate.unconsumed_tail or not inflate.eof:
            raise WireError(f"tensors of more than {limit} bytes, or cut off")
        return load(raw)
    except (zlib.error, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise WireError(f"{len(payload)} bytes are no tensors ({error})") from error


def part(tensors: State, prefix: str) -> State:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def expected_statistics(network: Network, models: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Name -> shape, of the statistics in an answer to the first turn."""
    return {f"{model}/{name}": tuple(shape) for model in models for name, shape in network.norms.items()}


def check_answer(answer: State, expected: Mapping[str, tuple[int, ...]]) -> None:
    """WireError unless an answer holds a count of examples, and the expected tensors with values that can be."""
    if answer.keys() != {EXAMPLES, *expected}:
        raise WireError(
            f"an answer of {', '.join(sorted(answer))[:200]}, expected {EXAMPLES} and {len(expected)} others"
        )
    examples = answer[EXAMPLES]
    if examples.dtype != torch.int64 or examples.shape != () or not 0 <= int(examples) <= MOST_EXAMPLES:
        raise WireError("an answer without a count of examples")
    for name, shape in expected.items():
        value, dtype = answer[name], DTYPES.get(re.split("[./]", name)[-1], torch.float32)
        if tuple(value.shape) != shape or value.dtype != dtype:  # first: not all types can be compared
            raise WireError(f"{name} is {value.dtype} of {tuple(value.shape)}, expected {dtype} of {shape}")
        if not bool(value.isfinite().all()) or (dtype == torch.float32 and bool((value.abs() > LARGEST).any())):
            raise WireError(f"{name} has values that are not finite, or statistics beyond ±{LARGEST:.3g}")
        if name.endswith((RIGHT, RIGHT_CALIBRATED)) and not 0 <= int(value) <= int(examples):
            raise WireError(f"{name} is {int(value)} of {int(examples)} examples")
        if name.endswith(("var", LOSS)) and bool((value < 0).any()):
            raise WireError(f"{name} has values below 0")


def pooled_statistics(answers: Sequence[State]) -> State:
    """Means and variances over the examples of all clients, from those of each.

    E[x] = sum_m n_m E_m[x] / n,  Var[x] = sum_m n_m (Var_m[x] + E_m[x]^2) / n - E[x]^2
    """
    counts = [int(answer[EXAMPLES]) for answer in answers]
    pooled = {name: value.clone() for name, value in answers[0].items() if name != EXAMPLES}
    for name in pooled:
        if not name.endswith("running_mean"):
            continue
        variance = name.removesuffix("mean") + "var"
        means = [answer[name].double() for answer in answers]
        squares = [answer[variance].double() + mean**2 for answer, mean in zip(answers, means, strict=True)]
        mean = sum((n * each for n, each in zip(counts, means, strict=True)), torch.zeros(())) / sum(counts)
        square = sum((n * each for n, each in zip(counts, squares, strict=True)), torch.zeros(())) / sum(counts)
        pooled[name], pooled[variance] = mean.float(), (square - mean**2).clamp_min(0).float()
    return pooled


def pooled_quality(answers: Sequence[State], models: Sequence[str]) -> dict[str, Any]:
    """The metrics of a round over the examples of all clients, and how the accuracy is distributed over clients."""
    counts = [int(answer[EXAMPLES]) for answer in answers]
    total, metrics = sum(counts), dict[str, Any]()
    for model in models:
        suffix = "" if model == "deployed" else f"_{model}"
        right, calibrated, loss = (
            sum(float(answer[f"{model}/{what}"]) for answer in answers) for what in (RIGHT, RIGHT_CALIBRATED, LOSS)
        )
        metrics |= {
            f"accuracy{suffix}": right / total,
            f"accuracy{suffix}_calibrated": calibrated / total,
            f"loss{suffix}": loss / total,
        }
    shares = [int(answer[f"deployed/{RIGHT_CALIBRATED}"]) / n for answer, n in zip(answers, counts, strict=True)]
    quartiles = torch.tensor(shares, dtype=torch.float64).quantile(torch.linspace(0, 1, 5, dtype=torch.float64))
    return metrics | {"judged_on": total, "judges": len(answers), "accuracy_quartiles": quartiles.tolist()}
