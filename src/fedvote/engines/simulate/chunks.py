"""Chunks of a cohort that train at once: as large as fit into the device's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from fedvote.network.network import Network
from fedvote.training.replay import forget


class Chunks:
    """Trains a cohort in nearly equal chunks. If memory runs out, chunks stay half as large from then on."""

    def __init__(self, most: int):
        self.most = most  # clients at once

    def each(self, cohort: Sequence[int], network: Network, turn: Callable[[Sequence[int]], None]) -> None:
        """Call `turn` with each chunk of the cohort; a chunk that runs out of memory is retried with half its size."""
        done = 0
        while done < len(cohort):
            left = len(cohort) - done
            size = -(-left // -(-left // self.most))
            try:
                turn(cohort[done : done + size])
                done += size
                continue
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
            # outside the except block: there, the error still holds the failed turn's tensors
            self.most = size // 2
            forget(network)
            torch.cuda.empty_cache()
