"""A client's memory from round to round: the method's tensors, such as momentum, and the last broadcasts.

It never leaves the client. It lies in Flower's state, which lasts for one submitted run, or in a file, which survives
restarts of client and server: --node-config 'memory="/srv/memory"'. The memories after the last two rounds are kept,
so that a client that is asked for a round again can repeat its turn, and can read a broadcast that builds on the one
before its last.
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
from fedvote.rounds.held import HELD, last
from fedvote.system.tensor_file import save_tensors

KEPT = 2  # rounds
PREFIX = "memory/"  # of the names of our records in Flower's state

Memories = dict[int, State]
"""Round -> the method's tensors after it (with a leading axis of one client), and the round's broadcast."""


@dataclass(frozen=True)
class Memory:
    """The memory before and after one turn of a client, in a file if one is given, else in Flower's state."""

    state: RecordDict
    file: Path | None = None

    def before(self, round: int, fresh: Mapping[str, Tensor]) -> State:
        """The method's tensors before a round; `fresh` if there are none."""
        earlier = {number: memory for number, memory in self._memories.items() if number < round}
        if not earlier:
            return {name: value[None].clone() for name, value in fresh.items()}
        latest = earlier[max(earlier)]
        return {name: latest[name].to(value.device) for name, value in fresh.items()}

    def broadcasts_before(self, round: int) -> list[Message]:
        """The broadcasts of earlier rounds that this client still has, the newest first.

        The server may build on the one before the newest: the answer to the newest may not have arrived.
        """
        earlier = sorted((number for number in self._memories if number < round), reverse=True)
        return [broadcast for number in earlier if (broadcast := last(self._memories[number]))]

    def after(self, round: int, memory: State, broadcast: Message) -> None:
        """Save the method's tensors after a round, and its broadcast. Memories of later rounds are dropped."""
        memory = memory | {HELD + name: value for name, value in broadcast.items()}
        if not memory:
            return
        earlier = {number: kept for number, kept in self._memories.items() if number < round}
        numbers = sorted(earlier)[1 - KEPT :]
        self._save({**{number: earlier[number] for number in numbers}, round: memory})

    @cached_property
    def _memories(self) -> Memories:
        """The memories when this turn began."""
        found: Memories = {}
        if self.file is not None and self.file.is_file():
            for name, value in self._read(self.file).items():
                number, _, tensor = name.partition("/")
                found.setdefault(int(number), {})[tensor] = value
        elif self.file is None:
            for name, record in self.state.array_records.items():
                if name.startswith(PREFIX):
                    arrays = {tensor: from_numpy(array.numpy()) for tensor, array in record.items()}
                    found[int(name.removeprefix(PREFIX))] = arrays
        return found

    @staticmethod
    def _read(file: Path) -> State:
        """The tensors in a file. If it cannot be read, the client starts over, and overwrites it after this turn."""
        try:
            return load_file(file)
        except (SafetensorError, OSError) as error:
            print(f"{file} cannot be read ({error}): this client starts without memory", file=sys.stderr)
            return {}

    def _save(self, memories: Memories) -> None:
        if self.file is not None:
            flat = {f"{n}/{name}": v.cpu().contiguous() for n, memory in memories.items() for name, v in memory.items()}
            save_tensors(self.file, flat, secret=True)
            return
        for name in [name for name in self.state.array_records if name.startswith(PREFIX)]:
            del self.state[name]
        for number, memory in memories.items():
            self.state[f"{PREFIX}{number}"] = ArrayRecord({n: Array(v.cpu().numpy()) for n, v in memory.items()})
