"""A sketch is its table, row by row."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from fedvote.codecs import LARGEST, Float32, Sketch
from fedvote.errors import WireError

finite = st.floats(-LARGEST, LARGEST, width=32)
tables = hnp.arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(0, 13)), elements=finite).map(torch.from_numpy)


@given(tables)
def test_any_table_survives_at_four_bytes_a_cell(x: Tensor) -> None:
    codec = Sketch(*x.shape)
    payload = codec.encode(x)
    assert isinstance(payload, bytes) and len(payload) == 4 * codec.count == 4 * x.numel()
    back = codec.decode(payload)
    assert back.dtype == torch.float32 and back.shape == x.shape and torch.equal(back, x)
    assert torch.equal(back.signbit(), x.signbit())  # -0.0 as well
    back += 1  # what comes back is the receiver's to change


def test_the_bytes_are_as_documented() -> None:
    assert Sketch(2, 2).encode(torch.tensor([[1.0, 2.0], [3.0, 4.0]])) == struct.pack("<4f", 1, 2, 3, 4)


def test_a_table_that_does_not_lie_in_a_row_survives() -> None:
    x = torch.arange(6.0).view(2, 3).T
    assert torch.equal(Sketch(3, 2).decode(Sketch(3, 2).encode(x)), x)


def test_a_sketch_is_not_mistaken_for_floats() -> None:
    assert Sketch.tag != Float32.tag and Sketch(2, 3).count == 6


@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 2), (2, 4), (1, 2, 3), ()])
def test_what_has_another_shape_is_not_encoded(shape: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match=r"a tensor of shape .* is not a sketch of 2 x 3"):
        Sketch(2, 3).encode(torch.ones(shape))


@pytest.mark.parametrize("size", [0, 1, 20, 23, 25, 28, 48])
def test_cut_and_longer_payloads_are_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"{size} bytes where 6 floats take 24"):
        Sketch(2, 3).decode(bytes(size))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(WireError, match="1 of 2 floats are not numbers"):
        Sketch(1, 2).decode(Sketch(1, 2).encode(torch.tensor([[1.0, bad]])))


@given(st.integers(0, 3), st.integers(0, 4), st.binary(max_size=50))
def test_what_is_decoded_is_what_would_have_been_encoded(rows: int, columns: int, payload: bytes) -> None:
    codec = Sketch(rows, columns)
    for data in (payload, payload[: 4 * rows * columns]):
        try:
            x = codec.decode(data)
        except WireError:
            continue
        assert x.shape == (rows, columns) and codec.encode(x) == data
