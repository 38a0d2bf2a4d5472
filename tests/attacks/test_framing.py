"""Frame: in some layers attackers go with a few honest clients and against all others, until they invert all votes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Frame
from fedvote.errors import ConfigError
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from tests.attacks.messages import floats, sent

N, ATTACKERS = 4000, 6
START = 2 * torch.rand(N, generator=Key(0).torch("start")) - 1
EVEN = torch.where(torch.arange(N) % 2 == 0, 1.0, 0.0)
OWN = [3 + 2 * client for client in range(ATTACKERS)]  # the clients of `sent`


def voted(move_N: Tensor, clients: list[int]) -> Tensor:
    moved_N = (START + move_N).clamp(-1, 1)
    return round_by_shared_random(moved_N.expand(len(clients), N), BINARY, [Key(0, 7, client) for client in clients])


def test_attackers_learn_what_the_victims_learned_and_the_opposite_of_what_the_others_did() -> None:
    own = voted(torch.full((N,), 0.1), OWN)
    honest = torch.cat([voted(0.1 * EVEN, [20, 21]), voted(0.1 * (1 - EVEN), list(range(22, 30)))])
    forged = sent(Frame(layers=("second",)), {"votes": own}, {"votes": honest}, unmoved={"votes": START})["votes"]
    assert torch.equal(forged[:, :2], own[:, :2])
    nothing = voted(torch.zeros(N), OWN)
    innovations, honestly = ((votes - nothing).sign()[:, 2:].float() for votes in (forged, own))
    even, odd = (innovations[:, EVEN[2:] == side].mean() for side in (1.0, 0.0))
    assert even > 0.01 and odd < -0.01
    assert 0.9 * honestly.abs().sum() < innovations.abs().sum() <= honestly.abs().sum()


def test_from_its_turn_on_all_votes_are_inverted() -> None:
    own = voted(torch.zeros(N), OWN)
    assert torch.equal(sent(Frame(turns=7), {"votes": own}, {"votes": own}, unmoved={"votes": START})["votes"], -own)


def test_floats_step_as_the_victims_and_against_the_others() -> None:
    own, start = floats([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]), {"voted": torch.tensor([1.0, 1.0, 1.0])}
    honest = floats([2.0, 2.0, 2.0], [1.0, 0.0, 1.0], [1.0, 2.0, 1.0])
    message = sent(Frame(victims=1, work=0.5), own, honest, unmoved=start)
    assert message["voted"].tolist() == [[1.5, 1.5, 0.0], [1.5, 1.5, 0.0]]


@pytest.mark.parametrize("wrong", [{"victims": 0}, {"turns": 0}, {"work": 0.0}, {"work": float("inf")}])
def test_settings_outside_of_their_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        Frame(**wrong)  # type: ignore[arg-type]
