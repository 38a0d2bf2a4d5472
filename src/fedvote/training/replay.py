"""A local step of many clients on a GPU, recorded once as a CUDA graph and then replayed.

With a large network each client has its own kernels. Clients run side by side on a few streams, and convolutions keep
the layout that tensor cores prefer. With a small network all clients share each kernel, by vmap; compiled kernels share
more (products.py). The host launches one graph a step instead of thousands of kernels. Results do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from fedvote.core import Batches
from fedvote.network.channels_last import channels_last
from fedvote.network.network import Network
from fedvote.training.descent import is_small, loss_of, parts_of
from fedvote.training.optimizer import optimizer_of
from fedvote.training.stack import IMAGES, Loss, Stack

if TYPE_CHECKING:
    from fedvote.method import Method

STREAMS = 8
WARM_UP = 2  # runs before the recording: libraries choose their kernels in them
RECORDINGS = 2  # kept per network

Shapes = list[tuple[tuple[int, ...], torch.dtype]]


class Replay(Stack):
    """A stack that computes gradients by replaying a CUDA graph."""

    def __init__(
        self,
        loss: Loss,
        start: Sequence[Tensor],
        batch_K: Sequence[Tensor],
        together: bool,
        compiled: bool = False,
        sizes: Sequence[Sequence[int]] | None = None,
        rate: float | None = None,
    ):
        super().__init__(loss, start, together, compiled, sizes, rate)
        x_KB, *others_K = batch_K
        images = x_KB.ndim == IMAGES and not together
        self.batch_K = [each.clone() for each in (channels_last(x_KB) if images else x_KB, *others_K)]
        self._streams = [torch.cuda.Stream() for _ in range(1 if together else STREAMS)]
        recording = torch.cuda.Stream()
        recording.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(recording):
            for _ in range(WARM_UP):
                self._compute()
        torch.cuda.current_stream().wait_stream(recording)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=recording, capture_error_mode="thread_local"):
            self._compute()
        self.put(start)  # the runs above may have taken steps
        del self.losses  # not called again, and it holds the network

    def gradients(self, x_KB: Tensor, *others_K: Tensor) -> None:
        for kept, new in zip(self.batch_K, (x_KB, *others_K), strict=True):
            kept[: len(new)] = new
        self._graph.replay()

    def _compute(self) -> None:
        if self.together:
            super().gradients(*self.batch_K)
            return
        current = torch.cuda.current_stream()
        for stream in self._streams:
            stream.wait_stream(current)
        for client in range(self.clients):
            with torch.cuda.stream(self._streams[client % len(self._streams)]), torch.enable_grad():
                self._gradients_of(client, *(each[client] for each in self.batch_K))
        for stream in self._streams:
            current.wait_stream(stream)


@dataclass(frozen=True)
class Recorded:
    """A recording for stacks of its method and shapes. It runs all its clients: at most twice as many as needed."""

    method: Method
    shapes: Shapes
    replay: Replay

    def fits(self, method: Method, shapes: Shapes, clients: int) -> bool:
        return (self.method, self.shapes) == (method, shapes) and clients <= self.replay.clients <= 2 * clients


_recordings: WeakKeyDictionary[Network, list[Recorded]] = WeakKeyDictionary()


def replay_for(
    method: Method, network: Network, start: Sequence[Tensor], batches: Batches, same_rate: bool = True
) -> Replay:
    """A recording with the weights of `start`: one of an earlier round if it fits, else a new one.

    `same_rate`: whether all weights have the method's learning rate.
    """
    batch, inputs = batches.index_KSB.shape[2], batches.examples.x
    shapes = [*((rows.shape[1:], rows.dtype) for rows in start), ((batch, *inputs.shape[1:]), inputs.dtype)]
    recordings = _recordings.setdefault(network, [])
    for recorded in recordings:
        if recorded.fits(method, shapes, batches.clients):
            recorded.replay.put(start)
            return recorded.replay
    del recordings[: len(recordings) - RECORDINGS + 1]
    batch_K = batches.at(0)
    together = is_small(network, batch_K[0][0])
    shaped = network.as_products() if network.compiled and together else network
    if network.compiled:
        torch.compiler.reset()  # earlier functions are recorded; they would only count towards the compiler's limit
    sizes = parts_of(method, network, start)
    rate = optimizer_of(method).plain_rate if network.compiled and together and same_rate else None
    replay = Replay(loss_of(method, shaped), start, batch_K, together, network.compiled, sizes, rate)
    recordings.append(Recorded(method, shapes, replay))
    return replay


def forget(network: Network) -> None:
    """Free the memory of a network's recordings."""
    _recordings.pop(network, None)
