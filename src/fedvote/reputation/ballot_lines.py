"""Lines on which ballots stand: their work, and how much they agree with all others, by part and in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

import torch
from torch import Tensor

from fedvote.reputation.gaps import Line
from fedvote.reputation.innovations import POWERS, Part
from fedvote.reputation.row_products import in_blocks

EQUAL = (0.05, 0.10)  # spread of the logarithm of work, at least, for each power: honest clients learn more or less
DIFFERENT = 0.2  # spread of agreement, at least, as a share of the median: honest clients have more or less in common
LINES = 2  # of each part, of the same kind: two powers of work


def all_lines(found: Sequence[Part], stay: Tensor) -> Iterator[Line]:
    """Every line on which a ballot far above the majority is left out."""
    yield from work_lines(found, stay)
    yield from agreement_lines(found, stay)


def sum_of_work(found: Sequence[Part]) -> Tensor:
    """(K, P) the work of whole ballots."""
    return torch.stack([torch.stack([part.works[power] for part in found]).sum(0) for power in POWERS], 1)


def common_counts(found: Sequence[Part]) -> Tensor:
    """(K, K) in how many weights two whole ballots have the same innovation, minus in how many the opposite one."""
    all_K = torch.arange(len(found[0].jumps_Kn))
    return in_blocks(all_K, lambda rows_b: torch.stack([part.common(rows_b, all_K) for part in found]).sum(0))


def cosines_by_layer(found: Sequence[Part], stay: Tensor, places: int) -> Iterator[Tensor]:
    """(n, n) how much ballots agree in each layer; of more layers than places, some neighbours are taken together."""
    last = found[-1].layer
    for _, together in groupby(found, lambda part: part.layer * places // (last + 1) if last >= places else part.layer):
        yield cosines(common_counts(list(together))[stay][:, stay])


def work_lines(found: Sequence[Part], stay: Tensor) -> Iterator[Line]:
    """How much each ballot works, in each part and in all."""
    for power in POWERS:
        works = [part.works[power][stay] for part in found]
        squares = [part.scale * part.squares[power][stay] for part in found]
        each = list(zip(works, squares, strict=True))
        if len(each) > 1:
            each.append((torch.stack(works).sum(0), torch.stack(squares).sum(0)))
        for work_n, square_n in each:
            # sum t^2 / sum t: a usual innovation, added to all, since none at all has no logarithm
            worked_n = work_n > 0
            one = float((square_n / work_n)[worked_n].median()) if bool(worked_n.any()) else 1.0

            # innovations are independent, so the variance of sum t is sum t^2; relative to (sum t)^2
            noise = float(((square_n + one**2).sqrt() / (work_n + one)).median())
            yield Line((work_n + one).log(), max(EQUAL[power], noise))


def agreement_lines(found: Sequence[Part], stay: Tensor) -> Iterator[Line]:
    """How much each ballot agrees with all others, in each part and in all: the mean cosine of innovations."""
    for count in common_counts_by_part(found, stay):
        gram_nn = count()
        others, innovations = max(len(stay) - 1, 1), float(gram_nn.diagonal().median())
        mean_n = cosines(gram_nn).fill_diagonal_(0).sum(1) / others

        # the cosine of independent innovations has a variance of at most 1 / their number
        chance = (max(innovations, 1) * others) ** -0.5
        yield Line(mean_n, max(DIFFERENT * float(mean_n.median()), chance), partial(_cosines_of, count))


def common_counts_by_part(found: Sequence[Part], stay: Tensor) -> Iterator[Callable[[], Tensor]]:
    """(n, n) of the sample of each part, and of whole ballots; as functions: all matrices would take much memory."""
    for part in found:
        yield partial(_common_of, part, stay)
    if len(found) > 1:
        yield lambda: common_counts(found)[stay][:, stay]


def _common_of(part: Part, stay: Tensor) -> Tensor:
    return part.common(stay, stay).div_(part.scale)


def _cosines_of(count: Callable[[], Tensor]) -> Tensor:
    return cosines(count())


def cosines(gram_KK: Tensor) -> Tensor:
    lengths_K = gram_KK.diagonal().clamp_min(1e-12).sqrt()
    return (gram_KK / lengths_K).div_(lengths_K[:, None])
