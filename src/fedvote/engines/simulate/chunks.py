"""How many clients of a cohort train at once: as many as fit the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from fedvote.network.network import Network
from fedvote.training.replay import forget


class Chunks:
    """Takes a cohort through its turn in nearly equal chunks, halved for good whenever memory runs out."""

    def __init__(self, most: int):
        self.most = most  # clients at once

    def each(self, cohort: Sequence[int], network: Network, turn: Callable[[Sequence[int]], None]) -> None:
        """Call `turn` with chunks that make up the cohort; one that raises for want of memory is cut and done again."""
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
            # only here, where nothing holds the tensors of the turn that failed
            self.most = size // 2
            forget(network)
            torch.cuda.empty_cache()
