"""Detects copied votes: the sender of a vote shows in its random numbers, and its copiers in the length of jumps.

Let B = e t be the jumps of a ballot.

Numbers: client i's rounding of the broadcast, r_i, minus its mean 2 p - 1, is independent of every other honest ballot.
The sum x of B_j (r_i - 2 p + 1) then has mean 0 and variance V = sum B_j^2 Var(r_i). Copied votes make it large. Nobody
can make an honest ballot look like a copy: the server draws r_i itself. Where the broadcast is nearly decided, a single
term, b at most, can exceed many standard deviations. So V + b x / 3 takes the place of V (Bernstein's inequality: x is
more than z times its root with a chance of at most exp(-z^2 / 2)).

Jumps: votes that disagree with their sender's numbers pass that test. Where two honest ballots have the same
innovation, each jump is a part of an honest change. A copier has not trained for the vote that it copied: its jump is
as long as its own numbers happen to ask for. If all others of a camp have longer jumps than one client, they have
robbed it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.reputation.innovations import Part
from fedvote.reputation.row_products import ROWS, Prepare, in_blocks, row_products

COPIED = 5.0  # standard deviations above chance that mark a copy; chance reaches them once in 270,000, or less


def copies(found: Sequence[Part]) -> Tensor:
    """(K,) which ballots copy from another."""
    return (by_numbers(found).fill_diagonal_(0) > COPIED).any(1)


def robbed(found: Sequence[Part], camp: Tensor) -> Tensor:
    """(n,) which ballots of a camp its other members have copied: common innovations cost the copiers longer jumps."""
    total_nn, square_nn = longer_jumps(found, camp)
    return total_nn.sum(0) / square_nn.sum(0).clamp_min(1).sqrt() > COPIED


def by_numbers(found: Sequence[Part]) -> Tensor:
    """(K, K) how much each ballot goes with each client's random numbers, in standard deviations above chance."""
    K = len(found[0].jumps_Kn)
    total_KK = torch.zeros((K, K), dtype=torch.float64)
    variance_K1, largest_K1 = (torch.zeros((K, 1), dtype=torch.float64) for _ in range(2))
    for part in found:
        soft_n, jumps_Kn = part.soft_n, part.jumps_Kn

        # sum of B_j (r_i - 2 p + 1)
        products_KK = row_products(jumps_Kn, part.rounded_Kn, Tensor.float, Tensor.float)
        total_KK += (products_KK - (jumps_Kn @ soft_n)[:, None]).double().cpu()

        # binary r: 1 - (2 p - 1)^2
        variance_n = variance(soft_n, part.rounded_Kn)
        squares_K = torch.cat([rows_bn.square() @ variance_n for rows_bn in jumps_Kn.split(ROWS)])
        variance_K1 += squares_K.double().cpu()[:, None]

        # |B_j (r_i - 2 p + 1)| <= |B_j| (1 + |2 p - 1|)
        terms_K = torch.cat([(rows_bn.abs() * (1 + soft_n.abs())).amax(1) for rows_bn in jumps_Kn.split(ROWS)])
        largest_K1 = largest_K1.maximum(terms_K.double().cpu()[:, None])

    # x / sqrt(V + b x / 3)
    squares_KK = total_KK.clamp_min(0).mul_(largest_K1).div_(3).add_(variance_K1)
    return total_KK.div_(squares_KK.clamp_min_(1e-12).sqrt_())


def variance(soft_n: Tensor, rounded_Kn: Tensor) -> Tensor:
    """(n,) the variance of a random rounding of the broadcast: of binary votes, or of ternary ones, which can be 0."""
    second_n = soft_n.abs() if bool((rounded_Kn == 0).any()) else torch.ones_like(soft_n)
    return second_n - soft_n.square()


def longer_jumps(found: Sequence[Part], camp: Tensor) -> tuple[Tensor, Tensor]:
    """(n, n) by how much row j's jumps are longer than column i's where they have the same innovations; and squares."""
    camp = camp.to(found[0].jumps_Kn.device)
    count_n1, total_n1 = (
        torch.stack([in_blocks(part.jumps_Kn, measure)[camp] for part in found]).sum(0)[:, None]
        for measure in (lambda rows_bn: rows_bn.count_nonzero(1), lambda rows_bn: rows_bn.abs().sum(1))
    )
    mean_n1 = total_n1 / count_n1.clamp_min(1)
    total_nn, square_nn = torch.zeros((2, len(camp), len(camp)), dtype=torch.float64)
    row_n = torch.arange(len(camp), device=camp.device)
    for part in found:
        for sign in (1, -1):
            # t / mean t: clients that train for longer have longer jumps everywhere
            def jumps(rows_b: Tensor, sign: int = sign, part: Part = part) -> Tensor:
                return (sign * part.jumps_Kn[camp[rows_b]]).clamp_min(0) / mean_n1[rows_b].clamp_min(1e-12)

            def here(rows_b: Tensor, jumps: Prepare = jumps) -> Tensor:
                return (jumps(rows_b) > 0).float()

            def squares(rows_b: Tensor, jumps: Prepare = jumps) -> Tensor:
                return jumps(rows_b).square()

            # sum of t_j - t_i, and of its square
            longer_nn, both_nn, squares_nn = (
                row_products(row_n, row_n, left, right).double().cpu()
                for left, right in ((jumps, here), (jumps, jumps), (squares, here))
            )
            total_nn += longer_nn - longer_nn.T
            square_nn += squares_nn + squares_nn.T - 2 * both_nn
    return total_nn, square_nn
