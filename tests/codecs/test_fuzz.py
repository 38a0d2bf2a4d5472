"""Damaged and hostile frames of every codec and every method are refused."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest
import torch

from fedvote import FedAvg, FedVote
from fedvote.codecs import (
    Binary,
    EntropyVotes,
    FloatChanges,
    FloatSteps,
    Header,
    IfChanged,
    Levels,
    Sketch,
    Tallies,
    unpack,
)
from fedvote.codecs.frame import HEAD
from fedvote.method import Method
from fedvote.methods import FetchSGD, SignSGD
from fedvote.randomness import SERVER, Key
from fedvote.reputation import Proportional
from fedvote.rounds import Round
from tests.codecs import fuzz
from tests.codecs.fuzz import ACCEPTED, FITTED, KEPT, REFUSED, UNCHANGED
from tests.codecs.fuzz_cases import Raises, case_of
from tests.codecs.fuzz_messages import Case, honest
from tests.codecs.fuzz_mutations import MUTATIONS
from tests.toy import Federation, open_round


def test_ten_thousand_frames_pass_and_every_mutation_does_its_work() -> None:
    counts = fuzz.fuzz(honest(), 10_000, seed=1)
    assert counts.total() == 10_000
    for mutation in MUTATIONS:
        assert counts[mutation, KEPT, REFUSED] > 50 and counts[mutation, FITTED, REFUSED] > 200, mutation
        assert counts[mutation, KEPT, ACCEPTED] == 0
    for mutation in ("flip", "change", "payload", "swap"):
        assert counts[mutation, FITTED, ACCEPTED] > 10, mutation
    assert sum(n for (_, _, outcome), n in counts.items() if outcome == UNCHANGED) < 1000


def test_a_seed_is_the_same_frames_again() -> None:
    assert fuzz.fuzz(honest(3), 500, 3) == fuzz.fuzz(honest(3), 500, 3) != fuzz.fuzz(honest(4), 500, 4)


def test_every_codec_is_among_the_honest_messages_plain_and_coded() -> None:
    codecs = [(codec, case) for case in honest() for codec in case.codecs.values()]
    assert (
        {codec.tag for codec, _ in codecs}
        == set(fuzz.VALID)
        == {*range(1, 7), Sketch.tag, IfChanged.tag, FloatChanges.tag, Levels.tag, FloatSteps.tag}
    )
    modes = {EntropyVotes.tag: {0, 1}, Tallies.tag: {0, 1, 2, 3}, FloatChanges.tag: {0, 1, 2, 3}, Levels.tag: {0, 1}}
    for kind, written in (modes | {FloatSteps.tag: {0, 1}}).items():
        ways = Counter(case.frame[HEAD.size + 9] for codec, case in codecs if codec.tag == kind)
        assert set(ways) == written and min(ways.values()) >= 2, ways


def test_mutations_reach_all_of_a_frame() -> None:
    """Every byte of a frame is hit, and every field of a tensor's head is lied about."""
    (case,) = case_of(Binary(11))
    hit: dict[str, set[int]] = {}
    for name in ("flip", "change", "head", "claim", "payload"):
        for seed in range(3000):
            mutated = MUTATIONS[name](random.Random(seed), case.frame, case, case)
            hit.setdefault(name, set()).update(
                i for i, (a, b) in enumerate(zip(mutated, case.frame, strict=False)) if a != b
            )
    everywhere = set(range(len(case.frame)))
    assert hit["flip"] == hit["change"] == everywhere
    assert hit["head"] == set(range(HEAD.size)) and hit["claim"] == set(range(HEAD.size, HEAD.size + 9))
    assert hit["payload"] > set(range(HEAD.size + 9, HEAD.size + 11))


def real_cases(method: Method) -> list[Case]:
    federation = Federation(method)
    network, state = federation.network, federation.states([range(5)])[-1]
    broadcast = open_round(method, network, state, 2)
    _, frames = federation.frames(state, 2, [0, 3])
    head = partial(Header, 2, fingerprint=network.fingerprint, method=type(method).__name__)
    down = unpack(broadcast, head(client=SERVER), method.wire(network).down())
    cases = [Case("down", head(client=SERVER), method.wire(network).down(), down)]
    for client, frame in frames.items():
        codecs = method.wire(network).up(down, Key(0, 2, client))
        cases.append(Case(f"up {client}", head(client=client), codecs, unpack(frame, head(client=client), codecs)))
    assert [case.frame for case in cases] == [broadcast, *frames.values()]
    if held := Round(method, network, Key(0, 2)).reference(state):
        cases.append(Case("to holders", head(client=SERVER), method.wire(network).down(held, Key(0, 2)), down))
    return cases


@pytest.mark.parametrize(
    "method",
    [
        FedVote(train_float=True),
        FedVote(train_float=True, float_levels=7),
        FedVote(votes="ternary", reputation=Proportional()),
        FedVote(coding="plain"),
        FedVote(levels=3, level_rounding="random"),
        FedAvg(),
        FedAvg(down_levels=3),
        SignSGD(),
        FetchSGD(k=3),
    ],
    ids=["binary", "floats in levels", "ternary", "plain", "few levels", "FedAvg", "few steps", "signSGD", "FetchSGD"],
)
def test_frames_of_real_rounds_pass(method: Method) -> None:
    counts = fuzz.fuzz(real_cases(method), 1000, seed=2)
    assert counts.total() == 1000


def test_the_command_prints_counts_by_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    fuzz.main(["--frames", "200", "--seed", "7"])
    title, *rows, last = capsys.readouterr().out.splitlines()
    assert "kept refused" in title and [row.split()[0] for row in rows] == list(MUTATIONS)
    assert sum(int(cell.replace(",", "")) for row in rows for cell in row.split()[1:]) == 200
    assert last.startswith("200 frames, seed 7, ") and last.endswith("all passed")


def test_the_command_fails_with_the_seed_and_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "honest", lambda seed: case_of(Raises(11)))
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    with pytest.raises(SystemExit) as stopped:
        fuzz.main(["--frames", "3000", "--seed", "9"])
    assert isinstance(stopped.value.code, str)  # which Python prints to standard error, and exits with 1
    assert "decoding raised ValueError" in stopped.value.code and "seed 9, frame " in stopped.value.code
    bytes.fromhex(stopped.value.code.splitlines()[-1])
