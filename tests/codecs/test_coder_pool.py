"""Lengths that are found elsewhere are those that are found here."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
import torch

from fedvote.codecs import ans
from fedvote.codecs import coder_pool as coders
from fedvote.codecs import coder_process as coder
from fedvote.codecs.entropy import EntropyVotes
from fedvote.codecs.if_changed import IfChanged
from fedvote.codecs.pending import then, wait_for
from fedvote.codecs.tallies import Tallies
from fedvote.core import Codec
from fedvote.errors import ConfigError
from fedvote.randomness import Key

RANDOM = np.random.default_rng(0)
BLOCKS: ans.Blocks = [
    (RANDOM.integers(0, 4, 1000).astype(np.uint8), np.array([0.1, 0.2, 0.3, 0.4])),
    (RANDOM.integers(0, 2, 500).astype(np.int16), np.array([0.5, 0.5])),
    (np.zeros(0, np.uint8), np.array([0.9, 0.1])),
]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coders, "WORTH_IT", 0)


def big(levels: int) -> torch.Tensor:
    return torch.randint(levels, (3000,), generator=Key(0).torch("big"), dtype=torch.int16)


@pytest.mark.usefixtures("elsewhere")
def test_a_program_elsewhere_tells_what_the_coder_here_makes() -> None:
    lengths = [coders.length(1500, lambda: BLOCKS) for _ in range(20)]
    assert not any(isinstance(length, int) for length in lengths)
    assert {wait_for(length) for length in lengths} == {len(ans.encode(BLOCKS))}


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("codec", "x"),
    [
        (EntropyVotes((-1, 1), big(5), np.full((5, 2), 0.5)), big(2) * 2 - 1),
        (EntropyVotes((-1, 1), big(5), np.full((5, 2), 0.5)), (big(100) > 0) * 2 - 1),
        (EntropyVotes((-1, 0, 1), big(5), np.full((5, 3), 1 / 3)), big(3) - 1),
        (Tallies(3000), big(32)),
        (Tallies(3000), big(2) * 4000),
        (IfChanged(Tallies(3000), big(7)), big(32)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_weighs_elsewhere_what_it_is_long_here(codec: Codec, x: torch.Tensor) -> None:
    assert wait_for(codec.weigh_one(x)) == len(codec.encode(x))


@pytest.mark.usefixtures("elsewhere")
def test_where_the_program_has_gone_its_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise BrokenPipeError

    monkeypatch.setattr(coders, "_program", gone)
    assert wait_for(coders.length(1500, lambda: BLOCKS)) == len(ans.encode(BLOCKS))


def test_half_an_answer_is_none() -> None:
    with pytest.raises(BrokenPipeError):
        coder.ask(BytesIO(), BytesIO(b"123"), BLOCKS)


def test_requests_are_answered_one_after_the_other() -> None:
    asked, answers = BytesIO(), BytesIO()
    for _ in range(3):
        with pytest.raises(BrokenPipeError):
            coder.ask(asked, BytesIO(), BLOCKS)
    asked.seek(0)
    coder.answer(Peekable(asked), answers)
    assert answers.getvalue() == coder.ANSWER.pack(len(ans.encode(BLOCKS))) * 3


class Peekable(BytesIO):
    def __init__(self, other: BytesIO):
        super().__init__(other.read())

    def peek(self, size: int) -> bytes:
        return self.getvalue()[self.tell() :][:size]


@pytest.mark.usefixtures("elsewhere")
def test_a_missing_library_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "constriction", None)
    with pytest.raises(ConfigError, match="needs the package constriction"):
        coders.length(10, lambda: BLOCKS)


def test_what_goes_wrong_with_a_length_goes_wrong_with_what_it_is_changed_to() -> None:
    def fail() -> ans.Blocks:
        raise ValueError("no blocks")

    length = then(coders.length(coders.WORTH_IT, fail), lambda n: n + 1)
    with pytest.raises(ValueError, match="no blocks"):
        wait_for(length)
