"""The best recipes that are known: methods side by side, trained with equal care, and what each ingredient is worth."""

from __future__ import annotations

from functools import partial

from fedvote.studies.experiments.broadcast_levels import LEVELS
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import by_bytes, by_round

# float weights end best with steps that become small over the whole run
FALLING = ("local.lr_schedule=cosine", "local.lr_schedule.hold=0.0")
CONTENDERS: dict[str, tuple[str, ...]] = {
    "FedVote binary": (),
    "FedVote ternary": ("method.votes=ternary",),
    "FedAvg": ("method=fedavg", "method.lr=0.001", *FALLING),
    "FedPAQ, buckets": ("method=fedpaq", "method.bucket=512", "method.lr=0.001", *FALLING),
    "EDEN 1 bit": ("method=eden", "method.lr=0.001", *FALLING),
}
CONSTANT, SOFT = "local.lr_schedule=constant", "method.sign_share=0.0"
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "the whole recipe": (),
    "without augmentation": ("data.augment=[]",),
    "without crops": ('data.augment=["flip"]',),
    "without flips": ('data.augment=["crop"]',),
    "votes counted, not changes": ("method.counts=votes",),
    "without the sign at the end": (SOFT,),
    "without the falling rate": (CONSTANT,),
    "without both": (CONSTANT, SOFT),
    "falling from the start": (*FALLING, "method.sign_schedule.hold=0.0"),
    "with cutout": ('data.augment=["flip","crop",{name="cutout",pixels=8}]',),
    "with 5 carried levels": LEVELS["5 carried, changes"],
    "with WRN-20-4": ("model.name=wrn20-4",),
}
NOTE = (
    "All methods have the data, augmentation, network, clients and rounds of the preset; float methods have their own "
    "learning rate, which falls along a cosine in the whole run. Settings were chosen on held-out training examples."
)
both_ways = partial(by_bytes, gigabytes=(0.5, 1, 2, 5, 20), ways=("up", "down"))


def contest(data: str, preset: str) -> Comparison:
    cells = tuple(Cell(name, preset, settings) for name, settings in CONTENDERS.items())
    return Comparison(f"The best known recipe: methods by bytes sent both ways, {data}", cells, both_ways, NOTE)


ACCURACY = contest("CIFAR-10 among 31 clients", "cifar10-best")
ACCURACY_FASHION = contest("Fashion-MNIST among 31 clients", "fashion-mnist-best")
ACCURACY_FEMNIST = contest("FEMNIST among 300 writers, 20 of them a round", "femnist-best")
ABLATION = Comparison(
    "The best known recipe on CIFAR-10, and each ingredient left out: 60 rounds",
    tuple(Cell(name, "cifar10-best", ("rounds=60", *settings)) for name, settings in LEFT_OUT.items()),
    by_round,
)
