"""The coder undoes itself, block by block, and any bytes are one encoding or none."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedvote.codecs import ans
from fedvote.errors import ConfigError, WireError
from fedvote.randomness import Key

Block = tuple[ans.Symbols, ans.Probabilities]


def assert_round_trip(blocks: list[Block]) -> bytes:
    payload = ans.encode(blocks)
    assert isinstance(payload, bytes) and len(payload) % 4 == 0
    back = ans.decode(payload, [(len(symbols), p) for symbols, p in blocks])
    assert len(back) == len(blocks)
    for got, (want, _) in zip(back, blocks, strict=True):
        assert got.dtype == np.int32 and np.array_equal(got, want)
    return payload


@st.composite
def drawn_blocks(draw: st.DrawFn) -> list[Block]:
    blocks = []
    for _ in range(draw(st.integers(0, 4))):
        weights = draw(st.lists(st.floats(1e-9, 1), min_size=2, max_size=9))
        symbols = draw(st.lists(st.integers(0, len(weights) - 1), max_size=30))
        blocks.append((np.array(symbols, np.int32), np.array(weights) / sum(weights)))
    return blocks


@given(drawn_blocks())
@example([])
@example([(np.zeros(0, np.int32), np.array([0.5, 0.5]))])
def test_any_blocks_survive(blocks: list[Block]) -> None:
    assert_round_trip(blocks)


def test_nothing_is_written_as_nothing() -> None:
    assert ans.encode([]) == b"" and ans.decode(b"", []) == []


def test_symbols_that_were_thought_all_but_impossible_survive() -> None:
    p = np.full(256, 2.0**-128)
    p[0] = 1
    payload = assert_round_trip([(np.arange(256, dtype=np.int32), p)])
    assert len(payload) <= 4 * 256  # never more than 24 bits a symbol, and the last word


def test_the_length_is_the_entropy() -> None:
    rng = Key(0).numpy("ans")
    p = np.array([0.7, 0.2, 0.05, 0.05])
    symbols = rng.choice(4, 50_000, p=p).astype(np.int32)
    bits = -np.log2(p[symbols]).sum()
    assert bits - 64 <= 8 * len(assert_round_trip([(symbols, p)])) <= 1.001 * bits + 64


@pytest.mark.parametrize(
    ("symbols", "payload"),
    [
        ([0], ""),
        ([1], "00008000"),
        ([0, 1], "00000001"),
        ([0] * 40 + [1], "0000000000000080"),
        ([1] * 40, "000080ffffffff7f"),
    ],
)
def test_the_words_are_those_that_were_written_before(symbols: list[int], payload: str) -> None:
    """Little-endian; and if another version of the library wrote something else, two versions could not talk."""
    assert assert_round_trip([(np.array(symbols, np.int32), np.array([0.5, 0.5]))]).hex() == payload


@given(st.lists(st.integers(0, 255), max_size=24).map(bytes), st.lists(st.integers(0, 20), max_size=3))
@example(b"\0\0\0\0", [3])
@example(b"\1\0\0\0\0\0\0\0", [3])
@example(b"\xff" * 24, [20, 20, 20])
@example(b"", [20])
@example(b"\1", [])
def test_any_bytes_are_the_one_encoding_of_what_they_decode_to_or_refused(payload: bytes, counts: list[int]) -> None:
    p = np.array([0.9, 0.06, 0.03, 0.01])
    try:
        blocks = ans.decode(payload, [(count, p) for count in counts])
    except WireError:
        return
    assert [len(symbols) for symbols in blocks] == counts
    assert all(((symbols >= 0) & (symbols < 4)).all() for symbols in blocks)
    assert ans.encode([(symbols, p) for symbols in blocks]) == payload


def test_what_is_longer_is_refused_and_what_is_cut_is_something_else() -> None:
    p = np.array([0.5, 0.3, 0.2])
    symbols = Key(1).numpy("ans").choice(3, 400, p=p).astype(np.int32)
    symbols[-1] = 2  # first symbols at the end cost nothing, and so could be left out
    payload = assert_round_trip([(symbols, p)])
    for wrong in (payload + b"\1\0\0\0", b"\1\0\0\0" + payload):
        with pytest.raises(WireError, match="left over or missing"):
            ans.decode(wrong, [(400, p)])
    with pytest.raises(WireError, match="left over or missing"):
        ans.decode(payload, [(399, p)])
    for start, end in ((4, None), (None, -4)):
        try:
            (other,) = ans.decode(payload[start:end], [(400, p)])
        except WireError:
            continue
        assert not np.array_equal(other, symbols) and ans.encode([(other, p)]) == payload[start:end]
    with pytest.raises(WireError, match=f"{len(payload) - 1} bytes are not whole 32-bit words"):
        ans.decode(payload[:-1], [(400, p)])
    with pytest.raises(WireError, match="the words end in zeros"):
        ans.decode(payload + bytes(4), [(400, p)])


def test_without_the_library_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "constriction":
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    for act in (lambda: ans.encode([]), lambda: ans.decode(b"", [])):
        with pytest.raises(ConfigError, match=r'needs the package constriction.*--set method.coding="plain"'):
            act()
