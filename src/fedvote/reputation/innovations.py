"""Innovations: where a ballot departs from the broadcast, given the random numbers by which its client rounds.

The server can draw a client's random numbers u, so it knows the ballot r of a client that learned nothing: the
broadcast p, rounded by u. An honest client votes v != r only where its training moved the weight across u. Let
e = sign(v - r), and the jump t the smallest change of the weight that makes u round to v. For an honest client

    E[e] is the weight's change, jumps are smaller than that change, and e is 0 for most weights.

The server knows the random rounding of each vote, so innovations are far less noisy than votes. A client that forges
votes without regard to its own numbers (inverts, copies, votes against a plurality) has many innovations, with long
jumps.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from fedvote.quantize import BINARY, ROUNDING, Alphabet
from fedvote.randomness import Key, as_uniform, shared_random_at
from fedvote.reputation.reputation import Ballots
from fedvote.reputation.row_products import in_blocks, row_products

POWERS = (0, 1)
"""Exponents of jump length t: the sum of t^0 counts innovations, the sum of t^1 adds up their lengths."""
LARGEST = 2**21  # weights in a part: larger layers are cut into several
SAMPLE = {"cpu": 2**17, "cuda": 2**20}  # weights of a part that are looked at, by the kind of device
RUN = 2**10  # neighbouring weights that are sampled together
VOTES = {"cpu": 2**25, "cuda": 2**27}  # looked at in a round, of all clients together
MANY = 256  # ballots; of more, half as many votes are looked at: less memory on a server of many clients


@dataclass(frozen=True, eq=False)
class Part:
    """The innovations of all ballots in one layer, or in a block of a large one."""

    jumps_Kn: Tensor  # e t, on a sample of the weights
    rounded_Kn: Tensor  # r: the broadcast, rounded by each client's numbers
    soft_n: Tensor  # the broadcast, 2 p - 1
    weights: int  # in the part
    layer: int = 0  # the number of its layer
    last: bool = False  # whether that is the last layer

    def jumps_alone(self) -> Part:
        """The same part without roundings and cached sums, which take much memory on a server of many clients."""
        return replace(self, rounded_Kn=torch.empty_like(self.rounded_Kn[:0]))

    @property
    def scale(self) -> float:
        """Weights for each weight of the sample."""
        return self.weights / self.jumps_Kn.shape[1]

    @cached_property
    def common_KK(self) -> Tensor:
        """(K, K) sum over the sample of e_i e_j: whole numbers, in the smallest dtype that has them; on the CPU."""
        few = self.jumps_Kn.shape[1] < 2**15
        found_KK = row_products(self.jumps_Kn, self.jumps_Kn, Tensor.sign, Tensor.sign)
        return found_KK.to("cpu", torch.int16 if few else torch.float32)

    def common(self, rows_b: Tensor, columns_n: Tensor) -> Tensor:
        """(b, n) sum over weights of e_i e_j, for some ballots i and j; float64, on the CPU."""
        return self.common_KK[rows_b][:, columns_n].double().mul_(self.scale)

    @cached_property
    def squares(self) -> tuple[Tensor, ...]:
        """(K,) for each power: sum over weights of t^(2 power), where a ballot has an innovation; on the CPU."""
        lengths_K = in_blocks(self.jumps_Kn, lambda rows_bn: (rows_bn @ rows_bn.T).diagonal())
        return tuple(self.scale * sum_K.double().cpu() for sum_K in (self.common_KK.diagonal(), lengths_K))

    @cached_property
    def works(self) -> tuple[Tensor, ...]:
        """(K,) for each power: sum over weights of t^power, where a ballot has an innovation; on the CPU."""
        sums = (
            in_blocks(self.jumps_Kn, lambda rows_bn: rows_bn.sign().abs_().sum(1, dtype=torch.float64)),
            in_blocks(self.jumps_Kn, lambda rows_bn: rows_bn.abs().sum(1, dtype=torch.float64)),
        )
        return tuple(self.scale * sum_K.cpu() for sum_K in sums)


def innovations(ballots: Ballots, key: Key) -> list[Part]:
    """The innovations in each part; `key`: the server's in this round, which yields all clients' random numbers."""
    layers = ballots.layers or (ballots.weights,)
    spans, ends = parts(layers), list(accumulate(layers))
    votes, sample = (most[ballots.device.type] for most in (VOTES, SAMPLE))
    votes = votes if len(ballots) <= MANY else votes // 2
    most = min(sample, max(RUN, votes // (len(ballots) * len(spans))))
    places = sampled(spans, seed(ballots, key), most, ballots.device)
    place_n = torch.cat(places)
    soft_n = ballots.soft_D[place_n]
    jumps_Kn = torch.empty((len(ballots), len(place_n)), device=place_n.device)
    rounded_Kn = torch.empty_like(jumps_Kn, dtype=torch.int8)
    for row, client in enumerate(ballots.clients_K.tolist()):
        u_n = as_uniform(shared_random_at(key.of(client), place_n))
        rounded_Kn[row] = ROUNDING[ballots.alphabet](soft_n, u_n)
        jumps_Kn[row] = jumps(ballots.row_at(row, place_n), rounded_Kn[row], soft_n, u_n, ballots.alphabet)
    sizes = [len(each) for each in places]
    found = []
    for span, jumps_Kp, rounded_Kp, soft_p in zip(
        spans, jumps_Kn.split(sizes, 1), rounded_Kn.split(sizes, 1), soft_n.split(sizes), strict=True
    ):
        layer = bisect_right(ends, span.start)
        found.append(Part(jumps_Kp, rounded_Kp, soft_p, span.stop - span.start, layer, layer == len(ends) - 1))
    return found


def jumps(votes_n: Tensor, rounded_n: Tensor, soft_n: Tensor, u_n: Tensor, alphabet: Alphabet) -> Tensor:
    """e t: the smallest change of each normalised weight that makes u round it to the vote; 0 if it does so already."""
    if alphabet == BINARY:
        # +1 if u < (w + 1) / 2
        change_n = 2 * u_n - 1 - soft_n
    else:
        # v != 0 if u < v w; 0 if |w| <= u
        change_n = torch.where(votes_n == 0, soft_n.sign() * u_n, votes_n * u_n) - soft_n
    return torch.where(votes_n == rounded_n, 0.0, change_n)


def parts(layers: Sequence[int]) -> list[slice]:
    """The weights of each layer, or of blocks of equal size in a large one; `layers`: their sizes."""
    spans, start = [], 0
    for size in layers:
        count = -(-size // LARGEST)
        ends = [start + size * block // count for block in range(count + 1)]
        spans += [slice(*pair) for pair in pairwise(ends)]
        start += size
    return spans


def sampled(spans: Sequence[slice], seed: int, most: int, device: torch.device) -> list[Tensor]:
    """The weights of each part that are looked at: all, or runs of neighbours, at most so many."""
    generator, found, run = torch.Generator().manual_seed(seed), list[Tensor](), torch.arange(RUN, device=device)
    for span in spans:
        size = span.stop - span.start
        if size <= most:
            found.append(torch.arange(span.start, span.stop, device=device))
        else:
            runs = torch.randperm(size // RUN, generator=generator)[: most // RUN].sort().values
            start = span.start + int(torch.randint(size % RUN + 1, (), generator=generator))
            found.append((start + runs.to(device)[:, None] * RUN + run).flatten())
    return found


def seed(ballots: Ballots, key: Key) -> int:
    """A seed that nobody can predict before all ballots have arrived: every vote is part of it."""
    whole = ballots.weights // 8 * 8
    # numbers, not tensors: small tensors that stay between large ones that go would make the process grow
    sums = [int(row[:whole].clone().view(torch.int64).sum() + row[whole:].sum()) for row in ballots.rows()]
    text = f"{sums}/{key.number('innovations')}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")
