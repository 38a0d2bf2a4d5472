"""What a client remembers between its rounds, such as momentum, or what was broadcast. It never leaves the client.

Flower's own state lasts for one submitted run. A node that names a folder, --node-config 'memory="/srv/memory"',
remembers over restarts, of the server too. The memories after the last two rounds are kept, so that a client that is
asked for a round once more takes the same turn once more.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flwr.app import Array, ArrayRecord, RecordDict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, from_numpy

from fedvote.core import Message, State
from fedvote.rounds import HELD
from fedvote.system.tensor_file import save_tensors

KEPT = 2
PREFIX = "memory/"

Memories = dict[int, State]
"""After which round: what, with a stack's leading axis of one, and what was broadcast in it."""


@dataclass(frozen=True)
class Memory:
    """For one turn of a client: in Flower's state, or in a file where there is one."""

    state: RecordDict
    file: Path | None = None

    def before(self, round: int, fresh: Mapping[str, Tensor]) -> State:
        """What is remembered as a round begins; what the method starts with, if nothing is."""
        earlier = {number: memory for number, memory in self._kept.items() if number < round}
        if not earlier:
            return {name: value[None].clone() for name, value in fresh.items()}
        latest = earlier[max(earlier)]
        return {name: latest[name].to(value.device) for name, value in fresh.items()}

    def held(self, round: int) -> Message | None:
        """What was broadcast in a round, if this client was there and kept it."""
        kept = self._kept.get(round, {})
        return {name.removeprefix(HELD): value for name, value in kept.items() if name.startswith(HELD)} or None

    def after(self, round: int, memory: State, down: Message) -> None:
        """Remember, and keep what was broadcast; whatever there is of later rounds never happened."""
        memory = memory | {HELD + name: value for name, value in down.items()}
        if not memory:
            return
        earlier = {number: kept for number, kept in self._kept.items() if number < round}
        numbers = sorted(earlier)[1 - KEPT :]
        self._save({**{number: earlier[number] for number in numbers}, round: memory})

    @cached_property
    def _kept(self) -> Memories:
        """As it was when this turn began."""
        found: Memories = {}
        if self.file is not None and self.file.is_file():
            for name, value in self._read(self.file).items():
                number, _, what = name.partition("/")
                found.setdefault(int(number), {})[what] = value
        elif self.file is None:
            for name, record in self.state.array_records.items():
                if name.startswith(PREFIX):
                    arrays = {what: from_numpy(array.numpy()) for what, array in record.items()}
                    found[int(name.removeprefix(PREFIX))] = arrays
        return found

    @staticmethod
    def _read(file: Path) -> State:
        """What a file holds; one that cannot be read is forgotten, as if the client were new, and written again."""
        try:
            return load_file(file)
        except (SafetensorError, OSError) as error:
            print(f"{file} cannot be read ({error}): this client begins anew", file=sys.stderr)
            return {}

    def _save(self, memories: Memories) -> None:
        if self.file is not None:
            flat = {f"{n}/{what}": v.cpu().contiguous() for n, memory in memories.items() for what, v in memory.items()}
            save_tensors(self.file, flat, secret=True)
            return
        for name in [name for name in self.state.array_records if name.startswith(PREFIX)]:
            del self.state[name]
        for number, memory in memories.items():
            self.state[f"{PREFIX}{number}"] = ArrayRecord({n: Array(v.cpu().numpy()) for n, v in memory.items()})
