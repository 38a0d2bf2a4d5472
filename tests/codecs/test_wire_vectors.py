"""The test vectors of docs/wire-format.md are what the package computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fedvote.codecs import Start, Tallies
from fedvote.methods.fedvote import ALPHABETS
from fedvote.methods.fedvote.ballot_wire import ballot_codec
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key, shared_random

PAGE = (Path(__file__).parents[2] / "docs" / "wire-format.md").read_text(encoding="utf-8")
NUMBERS = re.findall(r"^\| (\d+) \| ([\d ]{20,}) \|$", PAGE, re.MULTILINE)
PAYLOADS = re.findall(r"^\| (\d+), (\w+) \| `([-+0]+)` \| `([0-9a-f]+)` \|$", PAGE, re.MULTILINE)
SINCE_START = re.findall(r"^`(03[0-9a-f]+)`$", PAGE, re.MULTILINE)
SECRET = bytes(range(32))


def test_the_page_has_vectors() -> None:
    assert len(NUMBERS) == 2 and len(PAYLOADS) == 2 and len(SINCE_START) == 1


@pytest.mark.parametrize(("round", "numbers"), NUMBERS)
def test_the_pages_numbers_are_drawn(round: str, numbers: str) -> None:
    expected = [int(number) for number in numbers.split()]
    assert shared_random(Key(0, int(round), 5, SECRET), len(expected)).tolist() == expected


@pytest.mark.parametrize(("count", "votes", "first", "payload"), PAYLOADS)
def test_the_pages_payloads_are_written_and_read(count: str, votes: str, first: str, payload: str) -> None:
    alphabet, key = ALPHABETS[votes], Key(0, 1, 5, SECRET)
    level = torch.arange(int(count)) % 5
    w = 0.75 * (2 * level / 4 - 1)
    (ballot,) = round_by_shared_random(w[None], alphabet, [key])
    codec = ballot_codec(alphabet, {"level": level.short(), "levels": torch.tensor([4])}, key)
    assert ballot[: len(first)].tolist() == [{"-": -1, "0": 0, "+": 1}[sign] for sign in first]
    assert codec.encode(ballot).hex() == payload
    assert torch.equal(codec.decode(bytes.fromhex(payload)), ballot)


def test_the_pages_payload_since_the_start_is_written_and_read() -> None:
    start = (1021 * torch.arange(1600) % 4097).short()
    x, codec = (start >= 2800).short(), Tallies(1600, start=Start(lambda: start, 4097))
    assert [codec.encode(x).hex()] == SINCE_START
    assert torch.equal(codec.decode(bytes.fromhex(SINCE_START[0])), x)
