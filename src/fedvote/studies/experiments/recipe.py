"""The best recipes that are known: methods side by side, trained with equal care, and what each ingredient is worth."""

from __future__ import annotations

from fedvote.studies.experiments.both_ways import both_ways
from fedvote.studies.experiments.broadcast_levels import LEVELS
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import by_round

# float weights end best with steps that become small over the whole run
FALLING = ("local.lr_schedule=cosine", "local.lr_schedule.hold=0.0")
ROUNDED = "method.down_levels=1"  # the server rounds its update to three values
CONTENDERS: dict[str, tuple[str, ...]] = {
    "FedVote binary": (),
    "FedVote, 5 levels": LEVELS["5 carried, changes"],
    "FedVote ternary": ("method.votes=ternary",),
    "FedAvg": ("method=fedavg", "method.lr=0.001", *FALLING),
    "FedPAQ, buckets, rounded down": ("method=fedpaq", "method.bucket=512", "method.lr=0.001", ROUNDED, *FALLING),
    "EDEN 1 bit, rounded down": ("method=eden", "method.lr=0.001", ROUNDED, *FALLING),
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
    "All methods have the data, augmentation, network, clients and rounds of the preset. Float methods have their own "
    "learning rate, which falls along a cosine in the whole run, and FedPAQ and EDEN round what they broadcast as "
    "well. Settings were chosen on held-out training examples."
)


def contest(data: str, preset: str, *targets: float) -> Comparison:
    cells = tuple(Cell(name, preset, settings) for name, settings in CONTENDERS.items())
    about = f"The best known recipe: methods by bytes sent both ways, {data}"
    return Comparison(about, cells, both_ways(*targets), NOTE)


ACCURACY = contest("CIFAR-10 among 31 clients", "cifar10-best", 0.85, 0.9)
ACCURACY_FASHION = contest("Fashion-MNIST among 31 clients", "fashion-mnist-best", 0.9, 0.93)
ACCURACY_FEMNIST = contest("FEMNIST among 300 writers, 20 of them a round", "femnist-best", 0.85, 0.88)
ABLATION = Comparison(
    "The best known recipe on CIFAR-10, and each ingredient left out: 60 rounds",
    tuple(Cell(name, "cifar10-best", ("rounds=60", *settings)) for name, settings in LEFT_OUT.items()),
    by_round,
)
