"""Augmentations by name: random changes of the training inputs. One a file, and one line in `AUGMENTATIONS`."""

from __future__ import annotations

from fedvote.data.augment.augmentation import Augmentation, augmented, check_all
from fedvote.data.augment.crop import Crop
from fedvote.data.augment.cutout import Cutout
from fedvote.data.augment.flip import Flip
from fedvote.data.augment.noise import Noise
from fedvote.data.augment.rotation import Rotation

__all__ = ["AUGMENTATIONS", "Augmentation", "Crop", "Cutout", "Flip", "Noise", "Rotation", "augmented", "check_all"]

AUGMENTATIONS: dict[str, type[Augmentation]] = {
    "flip": Flip,
    "crop": Crop,
    "cutout": Cutout,
    "rotation": Rotation,
    "noise": Noise,
}
