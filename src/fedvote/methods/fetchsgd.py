"""FetchSGD: clients send count sketches of their updates, the server recovers the largest. Rothchild et al., 2020.

A count sketch is linear: the mean of the clients' sketches is the sketch of their mean update. The server keeps the
momentum and the remaining error as sketches too. After a step the paper subtracts the sketch of the recovered weights
from the error. The authors' code instead clears every cell of error and momentum that they fall into. `feedback`
selects one of the two. The default is the code's rule: the paper's diverged where estimates were noisy.

A sketch is never larger than the vector: in small networks it has fewer columns, and a round changes fewer weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from fedvote.codecs import Sketch
from fedvote.codecs.bits import unpack_bits
from fedvote.core import Batches, Message, State
from fedvote.errors import ConfigError
from fedvote.method import AllAtOnce, Merge
from fedvote.methods.update import FloatMethod, FloatWire, move, trained_weights
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.settings import check_above_zero
from fedvote.wire import Wire


@dataclass(frozen=True)
class FetchSGD(FloatMethod):
    lr: float = 0.003
    server_lr: float = 1.0  # eta of the server
    momentum: float = 0.9  # rho, on the server
    rows: int = 5  # of the sketch; odd, so that there is a median
    columns: int = 1_000_000  # of the sketch, at most
    k: int = 50_000  # weights that change in a round, at most
    feedback: Literal["clear", "subtract"] = "clear"  # as in the authors' code; or "subtract", as in the paper

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above_zero(self, "server_lr")
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum is {self.momentum}, expected a number from 0 to below 1")
        if self.rows < 1 or self.rows % 2 == 0:
            raise ConfigError(f"rows is {self.rows}, expected an odd number, so that there is a median")
        if self.columns < 1 or self.k < 1:
            raise ConfigError(f"columns is {self.columns} and k is {self.k}, expected whole numbers above 0")

    def init(self, network: Network, clients: int) -> State:
        empty = torch.zeros(self.rows, self.width(network.trainable), device=network.start.voted.device)
        return super().init(network, clients) | {"momentum": empty, "error": empty}

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        update_KN = self.update(network, down, batches)
        return {"sketch": self.sketch(update_KN.shape[1], keys[0].seed).of(update_KN)}, memory

    def merge(self, state: State, key: Key) -> Merge:
        return AllAtOnce(lambda ups, clients: self._recovered(state, key, ups["sketch"]))

    def _recovered(self, state: State, key: Key, sketches_K: Tensor) -> State:
        sketch = self.sketch(trained_weights(state), key.seed)

        # S_u <- rho S_u + 1/K sum_m S(delta_m),  S_e <- S_e + eta S_u
        momentum = self.momentum * state["momentum"] + sketches_K.mean(0)
        error = state["error"] + self.server_lr * momentum

        # Delta = Top-k(U(S_e))
        found_N = largest(sketch.estimate(error), min(self.k, sketch.columns))

        # S_e <- S_e - S(Delta), or S_e, S_u <- 0 in the cells of S(Delta);  theta <- theta - Delta
        taken = sketch.of(found_N[None])[0]
        if self.feedback == "subtract":
            error = error - taken
        else:
            error, momentum = (table.masked_fill(taken != 0, 0) for table in (error, momentum))
        return move(state, found_N) | {"momentum": momentum, "error": error}

    def wire(self, network: Network) -> Wire:
        # clients that keep the last broadcast receive only the k weights that changed
        uplink = {"sketch": Sketch(self.rows, self.width(network.trainable))}
        return FloatWire(network, uplink, keeps_broadcast=True)

    def width(self, size: int) -> int:
        """Columns of the sketch of `size` weights."""
        return min(self.columns, math.ceil(size / self.rows))

    def sketch(self, size: int, seed: int) -> CountSketch:
        return CountSketch(self.rows, self.width(size), size, seed)


@dataclass(frozen=True)
class CountSketch:
    """A table in which every coordinate is added, with a sign, to one cell of each row. Charikar et al., 2002.

    Coordinates are cut into blocks as long as a row. Coordinate r of a block goes to column (a r + b) mod C. Each row
    and block draws its own a and b, with a coprime to C. Two coordinates of one block never collide; two of different
    blocks collide with probability 1/C, as in any count sketch. A block writes each cell once, so sums have the same
    order on every device. No table of positions is stored.
    """

    rows: int
    columns: int
    size: int
    seed: int

    def of(self, x_KN: Tensor) -> Tensor:
        """(K, rows, columns) the sketches of K vectors."""
        table = torch.zeros(len(x_KN), self.rows, self.columns, device=x_KN.device)
        for block, x_KC in enumerate(x_KN.split(self.columns, 1)):
            padded_KC = F.pad(x_KC, (0, self.columns - x_KC.shape[1]))
            for row in range(self.rows):
                a, b, sign_C = self._hash(row, block, x_KN.device)

                # S[(a r + b) mod C] += s_r x_r, gathered by column: column j holds r = (j - b) / a mod C
                table[:, row] += (sign_C * padded_KC)[:, self._line(pow(a, -1, self.columns), -b, 0, x_KN.device)]
        return table

    def estimate(self, table: Tensor) -> Tensor:
        """(N,) the median over rows of s_r S[(a r + b) mod C]."""
        found = []
        for block in range(-(-self.size // self.columns)):
            hashes = [self._hash(row, block, table.device) for row in range(self.rows)]
            lines = [self._line(a, 0, b, table.device) for a, b, _ in hashes]
            cells = [sign * cells[line] for cells, line, (_, _, sign) in zip(table, lines, hashes, strict=True)]
            found.append(torch.stack(cells).sort(0).values[self.rows // 2])
        return torch.cat(found)[: self.size]

    def _line(self, a: int, before: int, after: int, device: torch.device) -> Tensor:
        """(C,) a (r + before) + after mod C, for every r."""
        return (a * (torch.arange(self.columns, device=device) + before) + after) % self.columns

    def _hash(self, row: int, block: int, device: torch.device) -> tuple[int, int, Tensor]:
        """The factor a, the shift b and the signs of one row and block; the seed determines them."""
        random = Key(self.seed).numpy(f"sketch {row} {block}")
        a, b = (int(number) for number in random.integers(1, self.columns + 1, 2))
        while math.gcd(a, self.columns) > 1:
            a = a % self.columns + 1
        nbytes = -(-self.columns // 8)
        bits = unpack_bits(random.bytes(nbytes), 8 * nbytes, device)[: self.columns]
        return a, b, bits * 2.0 - 1


def largest(x: Tensor, k: int) -> Tensor:
    """x with all but its k largest coordinates, by absolute value, set to zero."""
    index = x.abs().topk(min(k, len(x))).indices
    return torch.zeros_like(x).index_copy(0, index, x[index])
