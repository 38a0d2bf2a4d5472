"""Doubtful settings run, and are said: as warnings in programs, as sentences on the command line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import fedvote
from fedvote.attacks import Attack, Seen
from fedvote.cli import main
from fedvote.core import Message
from fedvote.data.partition import Uneven
from fedvote.secure import SecureTally
from tests.toy import dataset, module


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"attack": "inverse"}, "attack is inverse, but hostile is 0: nobody attacks"),
        ({"hostile": 2}, "hostile is 2, but there is no attack"),
        ({"oracle": True}, "oracle is true, but hostile is 0"),
        ({"epochs": 1.0, "steps": 7}, "epochs is 1, so that steps = 7 is not used"),
    ],
)
def test_a_program_is_warned(knobs: dict[str, Any], words: str) -> None:
    with pytest.warns(fedvote.Doubt, match=words) as caught:
        fedvote.simulate(module(), dataset(), clients=5, rounds=1, batch=8, **knobs)
    assert len(caught) == 1


OWNED = [range(30), range(30, 42), range(42, 80)]
ONE_SHORT = "client 1 has 12 examples, fewer than a batch of 16, .* more than once; for .*: batch = 12"
MANY_SHORT = "clients 0, 1, 2, 3 and 1 more have 40 examples or more, fewer than .* 41, .*: batch = 40 or fewer clients"


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"clients": 3, "owned": OWNED, "batch": 16}, f"{ONE_SHORT}$"),
        ({"clients": 5, "batch": 41}, f"{MANY_SHORT}$"),
        ({"clients": 5, "batch": 41, "partition": Uneven()}, r" or partition\.min_samples = 41 \(in a program Uneven"),
    ],
    ids=["owned", "partition", "uneven"],
)
def test_less_than_a_batch_is_a_doubt_however_the_data_were_divided(knobs: dict[str, Any], words: str) -> None:
    with pytest.warns(fedvote.Doubt, match=words) as caught:
        made = fedvote.simulate(module(), dataset(), rounds=1, steps=2, device="cpu", **knobs)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert next(iter(made)).record["clients"] == list(range(knobs["clients"]))


@dataclass(frozen=True)
class Misspelt(Attack):
    def tampr(self, seen: Seen) -> Message:
        return seen.own


def test_an_attack_that_changes_nothing_is_a_doubt() -> None:
    with pytest.warns(fedvote.Doubt, match="Misspelt has no poison_examples, poison or tamper") as caught:
        fedvote.simulate(module(), dataset(), clients=5, rounds=1, batch=8, attack=Misspelt(), hostile=2)
    assert len(caught) == 1


def test_a_softmax_before_cross_entropy_is_a_doubt() -> None:
    network = nn.Sequential(module(), nn.Softmax(1))
    with pytest.warns(fedvote.Doubt, match="outputs are probabilities.*leave out the network's last softmax"):
        fedvote.simulate(network, dataset(), keep_float=[], clients=4, batch=10)


def test_a_plain_run_raises_no_doubt() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedvote.simulate(module(), dataset(), clients=5, rounds=1, batch=8)
        fedvote.simulate(module(), dataset(), clients=5, rounds=1, batch=8, attack="inverse", hostile=2)
        fedvote.simulate(module(), dataset(), clients=5, rounds=1, batch=8, attack="backdoor")  # measures its trigger


def test_the_command_line_says_it_once_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["rounds=1", "local.steps=1", "local.batch=8", "federation.clients=3", "attack=inverse"]
    settings = [word for each in quick for word in ("--set", each)]
    with pytest.raises(SystemExit) as stop:
        main(["run", "quickstart", "--out", str(tmp_path / "run"), *settings])
    said = capsys.readouterr().err
    assert stop.value.code == 0
    assert said.count("fedvote: warning: attack is inverse, but hostile is 0: nobody attacks\n") == 1
    assert "UserWarning" not in said and "Doubt" not in said


def test_to_resume_without_a_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", "--resume"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "fedvote: --resume names no run: give the folder of the run to resume, --resume --out DIR\n"
    )


def test_a_program_in_which_no_message_counts_is_warned_when_it_ends() -> None:
    method = fedvote.FedAvg(lr=1e30)  # beyond all that can be sent
    run = fedvote.simulate(module(), dataset(), method, clients=3, rounds=2, steps=1, batch=8, device="cpu")
    with pytest.warns(fedvote.Doubt, match="^in 2 of 2 rounds no message counted; in the last, ") as caught:
        assert len(list(run)) == 2
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fedvote.FedVote(train_float="false"), "train_float is 'false', expected True or False"),  # type: ignore[arg-type]
        (lambda: fedvote.FedVote(train_float=2), "train_float is 2, expected True or False"),  # type: ignore[arg-type]
        (lambda: fedvote.FedAvg(by_samples="no"), "by_samples is 'no', expected True or False"),  # type: ignore[arg-type]
        (lambda: SecureTally(count_only=None), "count_only is None, expected True or False"),  # type: ignore[arg-type]
    ],
)
def test_only_true_and_false_answer_a_yes_or_no_field(make: Callable[[], object], words: str) -> None:
    with pytest.raises(fedvote.ConfigError, match=f"^{words}$"):
        make()
