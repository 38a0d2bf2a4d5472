"""The broadcasts that clients still have, as the server's state knows them.

A client keeps the broadcast of the last round in which it took part. A new broadcast is short if it is coded against
that one, its reference. The state after a round includes that round's broadcast, with the prefix `held/`. If the server
keeps more (`federation.kept_broadcasts`), the state also includes those of earlier rounds, packed, and for each client
the round whose broadcast it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from fedvote.codecs import Integers
from fedvote.core import Message, State

HELD = "held/"  # held/NAME: a tensor of the last broadcast
EARLIER = "held-earlier/"  # held-earlier/ROUND/NAME: one of an earlier broadcast
HOLDERS = "held-round"  # (N,) the round of the broadcast that a client has; 0: none that is kept


def nobody(clients: int) -> State:
    """Before round 1: no client has a broadcast."""
    return {HOLDERS: torch.zeros(clients, dtype=torch.int64)}


def without_held(state: State) -> State:
    return {name: value for name, value in state.items() if not name.startswith((HELD, EARLIER, HOLDERS))}


def without_earlier(state: State) -> State:
    return {name: value for name, value in state.items() if not name.startswith(EARLIER)}


def holders(state: State) -> dict[int, int]:
    """client -> the round of the kept broadcast that it has; empty if the server keeps the last one alone."""
    rounds_N = state[HOLDERS].tolist() if HOLDERS in state else []
    return {client: round for client, round in enumerate(rounds_N) if round}


def last(state: State) -> Message:
    """The broadcast of the last round; empty if clients do not keep it."""
    return {name.removeprefix(HELD): value for name, value in state.items() if name.startswith(HELD)}


def earlier(state: State, round: int) -> Message:
    """The broadcast of a round before the last; empty if it is not kept."""
    prefix = f"{EARLIER}{round}/"
    return {name: unpacked(state[prefix + name], like) for name, like in last(state).items() if prefix + name in state}


def after(state: State, broadcast: Message, round: int, counted: Sequence[int], kept: int) -> State:
    """The part of the state after a round that says what clients have: `counted` have its broadcast.

    `state`: the one before the round. `kept`: the number of broadcasts to keep.
    """
    held = {HELD + name: value for name, value in broadcast.items()}
    if HOLDERS not in state:
        return held
    oldest = max(round - kept + 1, 1)
    older = {name: value for name, value in state.items() if name.startswith(EARLIER) and _round(name) >= oldest}
    if round - 1 >= oldest:
        older |= {f"{EARLIER}{round - 1}/{name}": packed(value) for name, value in last(state).items()}
    rounds_N = state[HOLDERS].clone()
    rounds_N[counted] = round
    rounds_N[rounds_N < oldest] = 0
    return held | older | {HOLDERS: rounds_N}


def checked(state: State, round: int) -> Iterator[Message]:
    """Each earlier broadcast in a state after this round; ValueError or WireError if no rounds can have kept them."""
    lowest, highest = (int(end) for end in state[HOLDERS].aminmax())
    if lowest < 0 or highest > round:
        raise ValueError(f"{HOLDERS} has rounds from {lowest} to {highest}, expected 0 to {round}")
    found = {name for name in state if name.startswith(EARLIER)}
    numbers = {str(number) for number in range(1, round)} & {name.split("/")[1] for name in found}
    expected = {f"{EARLIER}{number}/{name}" for number in numbers for name in last(state)}
    if odd := sorted(found ^ expected):
        verb = "lacks" if odd[0] in expected else "has"
        raise ValueError(f"it {verb} {odd[0]}, expected all tensors of broadcasts before round {round}")
    yield from (earlier(state, int(number)) for number in sorted(numbers))


def packed(x: Tensor) -> Tensor:
    """A vector of levels as bit planes, in bytes; other tensors as they are."""
    if x.dtype != Integers.dtype or x.dim() != 1 or not x.numel() or int(x.min()) < 0:
        return x
    return torch.frombuffer(bytearray(Integers(len(x)).encode(x)), dtype=torch.uint8).to(x.device)


def unpacked(x: Tensor, like: Tensor) -> Tensor:
    """The inverse of `packed`, for a tensor with this shape and type."""
    return x if x.dtype == like.dtype else Integers(len(like)).decode(x.cpu().numpy().tobytes(), x.device)


def _round(name: str) -> int:
    return int(name.removeprefix(EARLIER).split("/")[0])
