"""Randomness comes from (seed, round, client, purpose) alone; examples are made ready for a network."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from fedvote.core import Batches, Dataset, Examples
from fedvote.randomness import SERVER, Key


def test_a_key_gives_the_same_numbers_every_time() -> None:
    first, again = Key(7, 3, 5), Key(7, 3, 5)
    assert first.number("rounding") == again.number("rounding")
    assert torch.equal(
        torch.rand(9, generator=first.torch("rounding")), torch.rand(9, generator=again.torch("rounding"))
    )
    assert (first.numpy("rounding").random(9) == again.numpy("rounding").random(9)).all()


def test_every_part_of_a_key_counts() -> None:
    numbers = {
        Key(seed, round, client).number(purpose)
        for seed, round, client, purpose in product(range(12), range(12), range(SERVER, 11), ("tie", "rounding"))
    }
    assert len(numbers) == 12 * 12 * 12 * 2


def test_digits_do_not_slide_from_one_part_of_a_key_to_the_next() -> None:
    numbers = {
        Key(1, 11, 1).number("x"),
        Key(11, 1, 1).number("x"),
        Key(1, 1, 11).number("x"),
        Key(1, 1, 1).number("1x"),
    }
    assert len(numbers) == 4


def test_a_number_fits_what_generators_take() -> None:
    numbers = [Key(seed).number("x") for seed in range(2000)]
    assert all(0 <= number < 2**63 for number in numbers)
    assert max(numbers) > 2**62  # all 63 bits are used


def test_a_key_does_not_touch_the_global_generator() -> None:
    before = torch.get_rng_state()
    torch.rand(5, generator=Key(1).torch("x"))
    assert torch.equal(torch.get_rng_state(), before)


def test_bytes_become_floats_normalised_by_channel() -> None:
    x = torch.tensor([[[[0, 255]], [[51, 102]]]], dtype=torch.uint8)  # one image, two channels, 1 x 2 pixels
    examples = Examples(x, torch.tensor([4]), mean=(0.5, 0.2), std=(0.5, 0.1))
    taken, labels = examples.take(torch.tensor([0]))
    torch.testing.assert_close(taken, torch.tensor([[[[-1.0, 1.0]], [[0.0, 2.0]]]]))
    assert taken.dtype == torch.float32 and labels.tolist() == [4]


def test_floats_without_mean_are_left_as_they_are() -> None:
    x = torch.tensor([[0.0, 255.0], [3.0, -7.5]], dtype=torch.float64)
    taken, _ = Examples(x, torch.tensor([0, 1])).take(slice(None))
    assert torch.equal(taken, x.float())


def test_an_index_of_clients_and_rows_gives_a_stack_of_batches() -> None:
    x = torch.arange(12, dtype=torch.uint8).view(6, 2, 1, 1)
    examples = Examples(x, torch.arange(6), mean=(0.0, 0.0), std=(1 / 255, 1 / 255))
    taken, labels = examples.take(torch.tensor([[0, 5, 5], [2, 1, 0]]))
    assert taken.shape == (2, 3, 2, 1, 1)
    torch.testing.assert_close(taken[0, 1].flatten(), torch.tensor([10.0, 11.0]))
    assert labels.tolist() == [[0, 5, 5], [2, 1, 0]]


def test_rows_keep_bytes_and_normalisation() -> None:
    examples = Examples(torch.arange(6, dtype=torch.uint8).view(3, 2), torch.tensor([7, 8, 9]), (0.5, 0.5), (1.0, 1.0))
    few = examples.rows(torch.tensor([2, 0]))
    assert len(few) == 2 and few.x.tolist() == [[4, 5], [0, 1]] and few.x.dtype == torch.uint8
    assert few.y.tolist() == [9, 7]
    assert torch.equal(few.take(slice(None))[0], examples.take(torch.tensor([2, 0]))[0])
    assert torch.equal(examples.to("cpu").x, examples.x) and examples.to("cpu").mean == examples.mean


def test_batches_give_each_client_its_own_rows_of_a_step() -> None:
    examples = Examples(torch.arange(8.0).view(8, 1), torch.arange(8))
    index_KSB = torch.tensor([[[0, 1], [2, 3], [1, 0]], [[4, 5], [6, 7], [7, 7]]])
    batches = Batches(examples, index_KSB, torch.tensor([4, 4]))
    x_KB, y_KB = batches.at(2)
    assert (batches.clients, batches.steps) == (2, 3)
    assert y_KB.tolist() == [[1, 0], [7, 7]] and x_KB.squeeze(-1).tolist() == [[1.0, 0.0], [7.0, 7.0]]


@pytest.mark.parametrize("shape", [(1, 28, 28), (3,)])
def test_a_dataset_knows_the_shape_of_one_input(shape: tuple[int, ...]) -> None:
    examples = Examples(torch.zeros(2, *shape), torch.zeros(2, dtype=torch.int64))
    assert Dataset("some", examples, examples, ("a", "b")).shape == shape
