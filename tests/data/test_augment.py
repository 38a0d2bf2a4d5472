"""Augmentations: what they do to a picture, and that their random numbers come from seed, round, client and step."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fedvote
from fedvote.core import Batches, Dataset
from fedvote.data.augment import AUGMENTATIONS, Augmentation, Crop, Cutout, Flip, Noise, Rotation, augmented
from fedvote.data.batches import draw_batches
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from fedvote.runs.config import parse, read
from fedvote.runs.experiment import federation
from fedvote.runs.keys import settings
from fedvote.runs.own_files import own_files
from fedvote.runs.toml_tables import as_table, to_toml
from tests.data.pictures import ALL, images
from tests.toy import dataset, keys, module

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
PICTURE = torch.arange(12.0).view(1, 1, 3, 4)


def drawn(clients: list[int], round: int = 1, device: str = "cpu", parts: Any = ALL, steps: int = 3) -> Batches:
    own = [torch.arange(client * 20, client * 20 + 20) for client in clients]
    ks = keys(clients, round)
    return augmented(draw_batches(images().to(device), own, steps, 4, ks), parts, ks)


def test_a_flip_mirrors_left_to_right_below_one_half() -> None:
    mirrored, kept = Flip()(PICTURE.repeat(2, 1, 1, 1), torch.tensor([[0.49], [0.5]]))
    assert mirrored[0, 0].tolist() == [3, 2, 1, 0]
    assert torch.equal(kept, PICTURE[0])


def test_a_crop_shifts_and_reflects_at_the_edge() -> None:
    u = torch.tensor([[0.0, 0.5], [0.5, 0.9], [0.5, 0.5]])  # up by one, left by one, not at all
    up, left, still = Crop(1)(PICTURE.repeat(3, 1, 1, 1), u)
    assert up[0].tolist() == [[4, 5, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7]]
    assert left[0, 0].tolist() == [1, 2, 3, 2]
    assert torch.equal(still, PICTURE[0])


def test_cutout_clears_a_square_that_may_lie_outside_in_part() -> None:
    u = torch.tensor([[0.5, 0.5], [0.0, 0.0]])
    middle, corner = Cutout(2)(torch.ones(2, 1, 4, 4), u)
    assert middle[0].tolist() == [[1, 1, 1, 1], [1, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]]
    assert corner.sum() == 15 and corner[0, 0, 0] == 0


def test_a_rotation_by_a_quarter_turns_the_picture_and_none_leaves_it() -> None:
    square = torch.arange(9.0).view(1, 1, 3, 3)
    turned = Rotation(90.0)(square, torch.tensor([[0.0]]))
    torch.testing.assert_close(turned[0, 0], torch.rot90(square[0, 0], -1), atol=1e-5, rtol=0)
    torch.testing.assert_close(Rotation(90.0)(square, torch.tensor([[0.5]])), square)


def test_noise_has_the_deviation_asked_for_and_differs_between_features_and_examples() -> None:
    u = torch.rand(200, 1, generator=Key(0).torch("u"))
    moved = Noise(0.3)(torch.zeros(200, 50), u)
    assert abs(float(moved.std()) - 0.3) < 0.01 and abs(float(moved.mean())) < 0.01
    assert abs(float(torch.corrcoef(moved[:2])[0, 1])) < 0.5 and abs(float(torch.corrcoef(moved.T[:2])[0, 1])) < 0.3


@pytest.mark.parametrize("device", DEVICES)
def test_a_client_has_the_same_batches_in_any_stack_on_any_device(device: str) -> None:
    together, alone = drawn([0, 1, 2], device=device), drawn([1])
    for step in range(3):
        (x, y), (x1, y1) = together.at(step), alone.at(step)
        torch.testing.assert_close(x[1].cpu(), x1[0])
        torch.testing.assert_close(together.of(1).at(step)[0], x[1:2])
        assert torch.equal(y[1].cpu(), y1[0])
    exact = [Flip(), Crop(2), Cutout(4), Noise(0.1)]
    one, other = (drawn([0, 2], device=where, parts=exact).at(1)[0] for where in ("cpu", device))
    torch.testing.assert_close(one, other.cpu(), rtol=0, atol=1e-6)


def test_rounds_clients_steps_and_examples_have_numbers_of_their_own() -> None:
    numbers = [drawn([0, 1, 2], round).random_KSBR for round in (1, 2)]
    rows = torch.cat([table.flatten(0, 2) for table in numbers if table is not None])
    assert rows.shape[1] == sum(part.draws for part in ALL)
    assert len({tuple(row) for row in rows.tolist()}) == len(rows)
    more = drawn([0], steps=5).random_KSBR
    assert more is not None and numbers[0] is not None and torch.equal(more[0, :3], numbers[0][0])


@pytest.mark.parametrize("part", ALL, ids=str)
def test_an_augmentation_changes_inputs_but_neither_labels_nor_the_data(part: Augmentation) -> None:
    made = drawn([0, 1], parts=[part])
    before = made.examples.x.clone()
    (x, y), (plain, labels) = made.at(0), replace(made, augment=None).at(0)
    assert x.shape == plain.shape and x.dtype == plain.dtype and not torch.equal(x, plain)
    assert torch.equal(y, labels) and torch.equal(made.examples.x, before)


def cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))


def states(**options: Any) -> Tensor:
    data = Dataset("pictures", images(), images(), tuple("abc"))
    run = fedvote.simulate(cnn(), data, clients=3, rounds=2, steps=3, batch=4, start="seed", device="cpu", **options)
    *_, last = run
    return last.state["level"]


def test_a_run_with_augmentation_differs_and_one_seed_has_one_result() -> None:
    plain, none, once, again = states(), states(augment=[]), *(states(augment=["flip", Crop(2)]) for _ in range(2))
    assert torch.equal(plain, none) and torch.equal(once, again) and not torch.equal(plain, once)


@pytest.mark.parametrize(
    ("augment", "words"),
    [
        (["flop"], "augment 'flop' is not known; known: flip, crop, cutout, rotation, noise.*did you mean flip?"),
        ("flip", "augment is 'flip', expected a list of names"),
        ([Crop(8)], "pixels is 8, expected 1 to 7"),
        ([Cutout(9)], "pixels is 9, expected 1 to 8"),
        ([Noise(float("inf"))], "deviation is inf, expected a finite number above 0"),
        ([3], "augment is 3, expected a name or an Augmentation"),
    ],
    ids=str,
)
def test_what_cannot_augment_is_refused(augment: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        states(augment=augment)


@pytest.mark.parametrize("name", [name for name in AUGMENTATIONS if name != "noise"])
def test_a_table_has_no_pixels(name: str) -> None:
    with pytest.raises(ConfigError, match="takes images"):
        fedvote.simulate(module(), dataset(), clients=5, batch=8, device="cpu", augment=[name])
    fedvote.simulate(module(), dataset(), clients=5, batch=8, device="cpu", augment=["noise"])


def test_a_row_of_pixels_cannot_be_cropped() -> None:
    with pytest.raises(ConfigError, match=r"2 x 2 pixels or more, but the inputs have shape \(1, 1, 8\)"):
        Crop(1).check((1, 1, 8))


OWN = """
from dataclasses import dataclass
from fedvote.data.augment import Augmentation

@dataclass(frozen=True)
class Shift(Augmentation):
    by: float = 0.5

    def __call__(self, x, u):
        return x + self.by * u[:, :1, None, None]

@dataclass(frozen=True)
class Wrong(Augmentation):
    def __call__(self, x, u):
        return x[:1]
"""


def test_a_configuration_lists_augmentations_with_their_settings_and_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    chosen = f'["flip", {{name = "crop", pixels = 2}}, {{name = "{tmp_path}/own.py:Shift", by = 0.25}}]'
    config = read("quickstart", [f"data.augment={chosen}"])
    assert config.data.augment[:2] == (Flip(), Crop(2)) and config.data.augment[2].by == 0.25  # type: ignore[attr-defined]
    assert parse(to_toml(as_table(config)), "written") == config
    assert list(own_files(config)) == [f"{tmp_path}/own.py"]
    keys = {setting.key: setting for setting in settings("data.augment")}
    assert keys["data.augment"].default == "[]" and "data.augment[].pixels" in keys
    federation(config, "cpu")
    with pytest.raises(ConfigError, match=r"Wrong\.__call__ gives torch\.float32 of shape \(1, 1, 8, 8\), expected"):
        federation(read("quickstart", [f'data.augment=["{tmp_path}/own.py:Wrong"]']), "cpu")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("flip", "data.augment is 'flip', expected a list of names, or of tables with a name; known: flip, crop"),
        ("[3]", "expected a list of names"),
        ("[{pixels = 2}]", "expected a list of names"),
        ('[{name = "crop", pixel = 2}]', "data.augment[0] 'crop' has no key 'pixel'; known: pixels"),
        ('["flop"]', "data.augment[0] 'flop' is not known"),
    ],
)
def test_a_list_of_anything_else_is_refused(value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read("quickstart", [f"data.augment={value}"])
