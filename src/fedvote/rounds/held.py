"""The broadcasts that clients still have, as the server's state knows them.

A client keeps the broadcast of the last round in which it took part. A new broadcast is short if it is coded against
that one, its reference. The state after a round includes that round's broadcast, with the prefix `held/`. If the server
keeps more (`federation.kept_broadcasts`), the state also includes those of earlier rounds, packed, and for each client
the round whose broadcast it has.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.core import Message, State

HELD = "held/"  # held/NAME: a tensor of the last broadcast
EARLIER = "held-earlier/"  # held-earlier/ROUND/NAME: one of an earlier broadcast
HOLDERS = "held-round"  # (N,) the round of the broadcast that a client has; 0: none that is kept
WIDTHS = (1, 2, 4, 8)  # bits of a packed number


def nobody(clients: int) -> State:
    """Before round 1: no client has a broadcast."""
    return {HOLDERS: torch.zeros(clients, dtype=torch.int64)}


def without_held(state: State) -> State:
    return {name: value for name, value in state.items() if not name.startswith((HELD, EARLIER, HOLDERS))}


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
    oldest = round - kept + 1
    older = {name: value for name, value in state.items() if name.startswith(EARLIER) and _round(name) >= oldest}
    if round - 1 >= max(oldest, 1):
        older |= {f"{EARLIER}{round - 1}/{name}": packed(value) for name, value in last(state).items()}
    rounds_N = state[HOLDERS].clone()
    rounds_N[counted] = round
    rounds_N[rounds_N < oldest] = 0
    return held | older | {HOLDERS: rounds_N}


def checked(state: State, round: int) -> State:
    """The earlier broadcasts in a state after this round; ValueError if they cannot be."""
    found = {name: value for name, value in state.items() if name.startswith(EARLIER)}
    like = last(state)
    for name, value in found.items():
        number, _, own = name.removeprefix(EARLIER).partition("/")
        if not number.isdecimal() or not 0 < int(number) < round or own not in like:
            raise ValueError(f"it has a tensor {name}, expected {EARLIER}ROUND/NAME with a round before {round}")
        fits = value.shape == like[own].shape if value.dtype == like[own].dtype else _width(value, like[own])
        if not fits:
            raise ValueError(f"{name} is {value.dtype} of shape {tuple(value.shape)}: no packed {own}")
    rounds_N = state.get(HOLDERS, torch.zeros(0))
    if rounds_N.numel() and not 0 <= int(rounds_N.min()) <= int(rounds_N.max()) <= round:
        raise ValueError(
            f"{HOLDERS} has rounds from {int(rounds_N.min())} to {int(rounds_N.max())}, expected 0 to {round}"
        )
    return found


def packed(x: Tensor) -> Tensor:
    """Whole numbers from 0 to 255 in as few bits as they need, several to a byte; other tensors as they are.

    Fewer than eight numbers are left as they are, too: from eight on the number of bytes tells the bits of a number.
    """
    if x.is_floating_point() or x.numel() < 8 or int(x.min()) < 0 or int(x.max()) > 255:
        return x
    bits = next(width for width in WIDTHS if int(x.max()) < 2**width)
    spare = -x.numel() % (8 // bits)
    columns = torch.nn.functional.pad(x.flatten().to(torch.uint8), (0, spare)).view(-1, 8 // bits).unbind(1)
    return torch.stack([column << (bits * place) for place, column in enumerate(columns)]).sum(0, dtype=torch.uint8)


def unpacked(x: Tensor, like: Tensor) -> Tensor:
    """The inverse of `packed`, for a tensor with this shape and type."""
    if x.dtype == like.dtype:
        return x
    bits = _width(x, like)
    places = torch.arange(0, 8, bits, device=x.device, dtype=torch.uint8)
    numbers: Tensor = (x[:, None] >> places) & (2**bits - 1)
    return numbers.flatten()[: like.numel()].view(like.shape).to(like.dtype)


def _width(x: Tensor, like: Tensor) -> int:
    """The bits of a number of a packed tensor; 0 if it is none of `like`."""
    widths = (width for width in WIDTHS if x.dtype == torch.uint8 and x.shape == (-(-like.numel() * width // 8),))
    return next(widths, 0)


def _round(name: str) -> int:
    return int(name.removeprefix(EARLIER).split("/")[0])
