"""A local step of many clients on a GPU, recorded once as a CUDA graph and replayed ever after.

Where one client's step is large enough to be worth kernels of its own, clients run side by side on a few streams;
their convolutions keep the layout that tensor cores like. Where it is small, all clients share each kernel, by vmap;
kernels made for that share more (products.py).
Either way the host says one word a step instead of thousands. What is computed does not depend on the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from fedvote.core import Batches
from fedvote.network.network import Network, channels_last
from fedvote.training.descent import IMAGES, Loss, Stack, is_small, parts_of
from fedvote.training.optimizer import optimizer_of

if TYPE_CHECKING:
    from fedvote.method import Method

STREAMS = 8
WARM_UP = 2  # runs before the recording, in which libraries choose their kernels
RECORDINGS = 2  # that a network keeps

Shapes = list[tuple[tuple[int, ...], torch.dtype]]


class Replay(Stack):
    """A stack whose gradients are found by replaying a recording of how they were found the first time."""

    def __init__(
        self,
        loss: Loss,
        start: Sequence[Tensor],
        x_KB: Tensor,
        y_KB: Tensor,
        together: bool,
        compiled: bool = False,
        sizes: Sequence[Sequence[int]] | None = None,
        rate: float | None = None,
    ):
        super().__init__(loss, start, together, compiled, sizes, rate)
        images = x_KB.ndim == IMAGES and not together
        self.x_KB, self.y_KB = (channels_last(x_KB) if images else x_KB).clone(), y_KB.clone()
        self._streams = [torch.cuda.Stream() for _ in range(1 if together else STREAMS)]
        recording = torch.cuda.Stream()
        recording.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(recording):
            for _ in range(WARM_UP):
                self._find()
        torch.cuda.current_stream().wait_stream(recording)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=recording, capture_error_mode="thread_local"):
            self._find()
        self.put(start)  # in place of what a stack that takes steps has made of it
        del self.losses  # which nothing calls again, and which hold the network

    def gradients(self, x_KB: Tensor, y_KB: Tensor) -> None:
        self.x_KB[: len(x_KB)] = x_KB
        self.y_KB[: len(y_KB)] = y_KB
        self._graph.replay()

    def _find(self) -> None:
        if self.together:
            super().gradients(self.x_KB, self.y_KB)
            return
        here = torch.cuda.current_stream()
        for stream in self._streams:
            stream.wait_stream(here)
        for client in range(self.clients):
            with torch.cuda.stream(self._streams[client % len(self._streams)]), torch.enable_grad():
                self._gradients_of(client, self.x_KB[client], self.y_KB[client])
        for stream in self._streams:
            here.wait_stream(stream)


@dataclass(frozen=True)
class Recorded:
    """Which stacks a recording fits: those of this method and these shapes, of as many clients, or up to half fewer.

    All that was recorded is replayed, so that fewer clients are worth a recording of their own.
    """

    method: Method
    shapes: Shapes
    replay: Replay

    def fits(self, method: Method, shapes: Shapes, clients: int) -> bool:
        return (self.method, self.shapes) == (method, shapes) and clients <= self.replay.clients <= 2 * clients


_recordings: WeakKeyDictionary[Network, list[Recorded]] = WeakKeyDictionary()


def replay_for(method: Method, network: Network, start: Sequence[Tensor], batches: Batches) -> Replay:
    """A recording that fits, at the weights of `start`: that of an earlier round where there is one."""
    batch, inputs = batches.index_KSB.shape[2], batches.examples.x
    shapes = [*((rows.shape[1:], rows.dtype) for rows in start), ((batch, *inputs.shape[1:]), inputs.dtype)]
    known = _recordings.setdefault(network, [])
    for recorded in known:
        if recorded.fits(method, shapes, batches.clients):
            recorded.replay.put(start)
            return recorded.replay
    del known[: len(known) - RECORDINGS + 1]
    x_KB, y_KB = batches.at(0)
    together = is_small(network, x_KB[0])
    shaped = network.as_products() if network.compiled and together else network
    if network.compiled:
        torch.compiler.reset()  # what was compiled before is recorded, and would only count against a limit
    sizes = parts_of(method, network, start)
    rate = optimizer_of(method).plain_rate if network.compiled and together else None
    made = Replay(partial(method.objective, shaped), start, x_KB, y_KB, together, network.compiled, sizes, rate)
    known.append(Recorded(method, shapes, made))
    return made


def forget(network: Network) -> None:
    """Give the memory of a network's recordings back."""
    _recordings.pop(network, None)
