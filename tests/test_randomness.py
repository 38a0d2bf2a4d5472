"""Shared random numbers: those of the wire format on every device, evenly spread, each client's its own."""

from __future__ import annotations

import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from fedvote.quantize import BINARY, TERNARY, Alphabet, round_by_shared_random
from fedvote.randomness import BITS, SERVER, Key, as_uniform, run_secret, shared_random, shared_random_at
from fedvote.randomness.chacha20 import by_library, first_block, in_tensors

MANY = 400_000
KEYS = [Key(0, 1, 0), Key(0, 1, 1), Key(0, 2, 0), Key(1, 1, 0), Key(0, 1, secret=run_secret(0)).of(0)]

# RFC 8439, section 2.3.2: key, nonce, and block 1 of the key stream; appendix A.1: blocks 0 of zeros
RFC_KEY, RFC_NONCE = bytes(range(32)), bytes.fromhex("000000090000004a00000000")
RFC_BLOCK_1 = """
    e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3
    466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2
"""
RFC_ZEROS = """
    ade0b876 903df1a0 e56a5d40 28bd8653 b819d2bd 1aed8da0 ccef36a8 c70d778b
    7c5941da 8d485751 3fe02477 374ad8b8 f4b8436a 1ca11815 69b687c3 8665eeb2
"""


def hexadecimal(words: torch.Tensor) -> list[str]:
    return [f"{word % 2**32:08x}" for word in words.tolist()]


@pytest.mark.parametrize("by", ["library", "tensors"])
def test_the_generator_is_chacha20_of_rfc_8439(by: str) -> None:
    def words(key: bytes, nonce: bytes, count: int) -> torch.Tensor:
        return by_library(key, nonce, count) if by == "library" else in_tensors(first_block(key, nonce), count)

    assert hexadecimal(words(RFC_KEY, RFC_NONCE, 32)[16:]) == RFC_BLOCK_1.split()
    assert hexadecimal(words(bytes(32), bytes(12), 16)) == RFC_ZEROS.split()


@pytest.mark.parametrize("count", [0, 1, 16, 17, 70_001])
def test_plain_tensors_make_the_words_of_the_library(count: int) -> None:
    key, nonce = bytes(range(32, 64)), (2**31 + 5).to_bytes(12, "little")
    assert torch.equal(in_tensors(first_block(key, nonce), count), by_library(key, nonce, count))


@pytest.mark.parametrize("block", [0, 1, 4096])
def test_a_stream_may_begin_at_any_block(block: int) -> None:
    key, nonce = bytes(range(32, 64)), bytes(range(12))
    tail = by_library(key, nonce, 16 * block + 40)[16 * block :]
    assert torch.equal(by_library(key, nonce, 40, block), tail)
    assert torch.equal(in_tensors(first_block(key, nonce, block), 40), tail)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_shared_random_numbers_are_those_of_the_wire_format(key: Key) -> None:
    cipher = Cipher(ChaCha20(key.rounding_key, bytes(4) + key.round.to_bytes(12, "little")), mode=None)
    stream = cipher.encryptor().update(bytes(4 * MANY))
    drawn = shared_random(key, MANY)
    assert drawn.dtype == torch.int32
    places = [*range(100), 65_535, 65_536, MANY - 1]
    assert drawn[places].tolist() == [int.from_bytes(stream[4 * i : 4 * i + 4], "little") % 2**24 for i in places]
    assert torch.equal(shared_random_at(key, torch.tensor(places)), drawn[places])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_shared_random_numbers_are_evenly_spread_in_their_high_and_in_their_low_bits(key: Key) -> None:
    drawn = shared_random(key, MANY)
    assert int(drawn.min()) >= 0 and int(drawn.max()) < 2**BITS
    for shift in (0, 8, 16):
        counts = torch.bincount(drawn >> shift & 255, minlength=256).double()
        chi_square = float(((counts - MANY / 256) ** 2 / (MANY / 256)).sum())
        assert 150 < chi_square < 380  # 255 on average, with a deviation of 23


def test_numbers_of_neighbours_clients_rounds_seeds_and_secrets_have_nothing_in_common() -> None:
    streams = torch.stack([as_uniform(shared_random(key, MANY)) for key in KEYS])
    streams = torch.cat([streams, streams[:1].roll(1, 1), streams[:1].roll(256, 1)])
    off_diagonal = torch.corrcoef(streams) - torch.eye(len(streams))
    assert off_diagonal.abs().max() < 5 / MANY**0.5


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
def test_votes_by_shared_random_numbers_have_no_bias(alphabet: Alphabet) -> None:
    w = torch.linspace(-1, 1, 9).repeat_interleave(MANY)
    (votes,) = round_by_shared_random(w[None], alphabet, [Key(3, 1, 4)])
    assert set(votes.unique().tolist()) == set(alphabet)
    torch.testing.assert_close(votes.view(9, -1).float().mean(1), torch.linspace(-1, 1, 9), rtol=0, atol=0.008)


def test_a_clients_secret_follows_from_the_runs_secret_and_its_number_and_gives_no_other() -> None:
    server = Key(0, 3, SERVER, run_secret(0))
    secrets = {server.of(client).secret for client in range(50)}
    assert len(secrets | {server.secret}) == 51 and {len(secret) for secret in secrets} == {32}
    assert server.of(7).secret == Key(1, 9, SERVER, run_secret(0)).of(7).secret
    assert server.of(7).secret != Key(0, 3, SERVER, run_secret(1)).of(7).secret
    assert server.of(7).of(7) == server.of(7)
    with pytest.raises(ValueError, match="no secret of client 8"):
        server.of(7).of(8)
    with pytest.raises(ValueError, match="the server does not round"):
        shared_random(server, 10)


def test_a_secret_decides_the_numbers_of_rounding_and_nothing_else() -> None:
    one, other = (Key(0, 1, 2, secret) for secret in (bytes(32), bytes(31) + b"\1"))
    assert one.number("batches") == other.number("batches") == Key(0, 1, 2).number("batches")
    assert not torch.equal(shared_random(one, 9), shared_random(other, 9))


def test_no_secret_is_printed() -> None:
    assert "secret" not in repr(Key(0, 1, 2, b"a secret"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("count", [1, 16, 2049, MANY])
def test_a_gpu_draws_the_same(count: int) -> None:
    for key in KEYS:
        assert torch.equal(shared_random(key, count, "cuda").cpu(), shared_random(key, count))
        block = first_block(key.rounding_key, bytes(12))
        assert torch.equal(in_tensors(block.cuda(), count).cpu(), by_library(key.rounding_key, bytes(12), count))
