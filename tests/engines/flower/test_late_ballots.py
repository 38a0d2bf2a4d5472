"""Ballots that arrive after their round closed: refused by default; with flower.late_rounds they count later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fedvote.engines.flower.late_ballots import LateBallots
from fedvote.errors import ConfigError, WireError
from fedvote.methods import FedVote
from fedvote.methods.fedvote.late_votes import LateVotes, with_late
from fedvote.packed import pack
from fedvote.plan import FlowerOptions
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key
from tests.engines.flower.grid import after, elect, grid_of, in_round, number, run, small

QUICK = ("flower.quorum=0.75", "flower.minimum=0.5")
LATE = in_round(1, after(2.0))  # the others answer after a second


def test_by_default_a_late_ballot_is_refused(tmp_path: Path) -> None:
    _, second, _ = run(tmp_path, {3: LATE}, *QUICK)
    assert second["late"] == {3: "round 1: a ballot, refused: the round is over"}


def test_a_late_ballot_counts_in_the_next_round_with_its_weight(tmp_path: Path) -> None:
    _, second, third = run(tmp_path, {3: LATE}, *QUICK, "flower.late_rounds=1", "flower.late_weight=0.25")
    assert second["late"] == {3: "round 1: a ballot, counted with weight 0.25"}
    assert "late" not in third


def test_a_late_ballot_changes_the_next_state_and_not_its_own_round(tmp_path: Path) -> None:
    def states(name: str, *settings: str) -> list[dict[str, torch.Tensor]]:
        grid = grid_of(4)
        grid.behave = {number(grid, 3): LATE}
        return [snapshot.state for snapshot in elect(small(*QUICK, *settings), grid, tmp_path / name)]

    without, counted = states("without"), states("counted", "flower.late_rounds=1")
    assert torch.equal(without[0]["level"], counted[0]["level"])
    assert counted[1]["levels"] == FedVote().grid - 1  # a mean of unequal votes is on the grid
    assert without[1]["vote_weight"][3] != counted[1]["vote_weight"][3] > 0


def test_few_levels_keep_the_broadcast_after_a_late_ballot_short(tmp_path: Path) -> None:
    """Without them it is on the grid of 4097 levels, and takes many times the bits."""

    def bits(name: str, *settings: str) -> float:
        *_, third = run(tmp_path / name, {3: LATE}, *QUICK, *settings)
        return float(third["downlink_bits_per_weight"])

    refused, on_grid = bits("refused"), bits("grid", "flower.late_rounds=1")
    few = bits("few", "flower.late_rounds=1", "method.levels=5")
    assert on_grid > 3 * refused and few < refused


def test_a_ballot_that_is_too_late_is_refused(tmp_path: Path) -> None:
    config = ("rounds=5", *QUICK, "flower.late_rounds=1", "flower.deadline=20")
    records = run(tmp_path, {3: in_round(1, after(3.2))}, *config)
    late = [record["late"][3] for record in records if "late" in record]
    assert late and "rounds late, expected 1 at most" in late[0]


def test_rules_that_judge_ballots_refuse_late_ones_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"flower.late_rounds is 1, but FedVote with these settings cannot count"):
        run(tmp_path, {}, "method.reputation=camps", "flower.late_rounds=1")


def test_a_weight_above_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"flower.late_weight 1.5, expected"):
        FlowerOptions(late_weight=1.5)


def test_a_late_ballot_adds_what_its_client_learned_to_this_rounds_broadcast() -> None:
    """(2 x + 0.5 (start + w - r)) / 2.5, with r the votes of a client that learned nothing."""
    method, key = FedVote(), Key(0, 1, 2)
    old = {"level": torch.tensor([0, 1, 1]), "levels": torch.tensor(2)}  # soft votes -1 (clipped), 0 and 0
    now = {"level": torch.tensor([1, 1, 2]), "levels": torch.tensor(2)}  # 0, 0 and 1
    untrained = round_by_shared_random(method.soft(old)[None], method.alphabet, [key.of(2)])[0]
    votes = untrained * torch.tensor([1, -1, 1])  # learned the opposite of the second weight
    late = LateVotes(2, 0.5, pack(votes[None].to(torch.int8), method.alphabet), old, key)
    found = with_late(method, now, torch.tensor([1.0, 0.0, -1.0]), 2, [late])
    moved = -2.0 * float(untrained[1])
    assert torch.allclose(found, torch.tensor([2 / 2.5, 0.5 * moved / 2.5, (-2 + 0.5) / 2.5]))


class Closed:
    def __init__(self, number: int):
        self.number = number


def test_a_server_that_was_restarted_says_that_it_no_longer_has_the_round() -> None:
    now: Any = Closed(6)
    cast = LateBallots(FlowerOptions(late_rounds=2)).caster(now)
    assert cast is not None
    with pytest.raises(WireError, match=r"^a ballot of round 5, which this server no longer has: it was restarted"):
        cast(b"", 0, 5)
    with pytest.raises(WireError, match=r"^a ballot 3 rounds late, expected 2 at most$"):
        cast(b"", 0, 3)


def test_only_as_many_rounds_as_needed_are_kept() -> None:
    late = LateBallots(FlowerOptions(late_rounds=2))
    for number_ in range(1, 9):
        late.closed(Closed(number_), set())  # type: ignore[arg-type]
        assert len(late.rounds) <= 2
    assert list(late.rounds) == [7, 8]
