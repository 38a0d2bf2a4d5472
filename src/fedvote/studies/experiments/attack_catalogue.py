"""Every attack of the catalogue, with the settings among which a search finds the worst."""

from __future__ import annotations

Settings = tuple[str, ...]


def shares(attack: str, *percents: float) -> dict[str, Settings]:
    """Settings of an attack by the share of its votes."""
    return {f"{percent:g} %": (f"attack={attack}", f"attack.share={percent / 100:g}") for percent in percents}


def of_layer(place: str, weights: str, *percents: float) -> dict[str, Settings]:
    """Settings of the attack on one layer of the digits' network."""
    found = shares("layer", *percents).items()
    return {f"{share} of the {place}": (*settings, f'attack.layers=["{weights}"]') for share, settings in found}


def part_time(intention: str, every: int, *more: str) -> Settings:
    return ("attack=part-time", f"attack.intention={intention}", f"attack.every={every}", *more)


IDLE_FLIPPERS: Settings = ("attack=idle", "attack.intention=label-flip")
CATALOGUE: dict[str, dict[str, Settings]] = {
    "inverse": {"all votes": ("attack=inverse",)},
    "label-flip": {
        "mirrored": ("attack=label-flip",),
        "random pairs": ("attack=label-flip", "attack.pairs=random"),
    },
    "label-flip of few": {
        "one pair of classes": ("attack=label-flip", "attack.swaps=1"),
        "two pairs": ("attack=label-flip", "attack.swaps=2"),
        "a random pair": ("attack=label-flip", "attack.swaps=1", "attack.pairs=random"),
    },
    "label-flip one way": {
        name: ("attack=label-flip", "attack.one_way=true", f"attack.swaps={swaps}")
        for name, swaps in (("five classes", 5), ("three classes", 3), ("two classes", 2))
    },
    "late-labels": {
        f"from round {starts}, {work:.0%} of the work": (
            "attack=late-labels",
            f"attack.starts={starts}",
            f"attack.work={work}",
        )
        for starts, work in ((19, 1.0), (18, 1.0), (19, 1.1))
    },
    "random": {"all votes": ("attack=random",)},
    "omniscient": {"all votes": ("attack=omniscient",)},
    "partial": shares("partial", 50, 30, 10, 5),
    "layer": {
        **of_layer("first", "0.*", 100, 50, 25, 10),
        **of_layer("second", "4.*", 100, 10),
        **of_layer("third", "9.*", 100, 10),
    },
    "copycat": {
        **shares("copycat", 100, 10, 3, 1, 0.5),
        "of 6": ("attack=copycat", "attack.victims=6"),
    },
    "disagreeing-copycat": shares("disagreeing-copycat", 100, 30, 10),
    "low-agreement": shares("low-agreement", 20, 10, 5, 2),
    "vulnerable-votes": shares("vulnerable-votes", 100, 20, 5),
    "ladder": shares("ladder", 50, 30, 10),
    "insider": {name: ("attack=insider", f"attack.flip={name}") for name in ("weakest", "strongest")},
    "sleeper": {f"from round {wakes}": ("attack=sleeper", f"attack.wakes={wakes}") for wakes in (4, 10)},
    "part-time": {
        "omniscient, every 2nd round": part_time("omniscient", 2),
        "layer, every 3rd round": part_time("layer", 3),
        "label-flip, every 2nd round": part_time("label-flip", 2),
        "low-agreement, from round 10": part_time("low-agreement", 1, "attack.starts=10"),
    },
    "idle": {
        f"{idle} beside {intention}": ("attack=idle", f"attack.intention={intention}", f"attack.idle={idle}")
        for intention in ("omniscient", "label-flip", "layer")
        for idle in (1, 3)
    },
    "idle, many": {"7 beside label-flip": (*IDLE_FLIPPERS, "attack.idle=7")},
    "noise": {
        f"{noisy} beside label-flip": (*IDLE_FLIPPERS, f"attack.idle={noisy}", "attack.work=1.0") for noisy in (5, 7)
    },
    "noise, in pairs": {
        "7 beside label-flip": (*IDLE_FLIPPERS, "attack.idle=7", "attack.work=1.0", "attack.common=0.2"),
    },
    "common-push": {
        **shares("common-push", 15, 5),
        "20 % more work": ("attack=common-push", "attack.work=1.2"),
    },
    "reflect": {
        **{
            f"first layer, {work:.0%} of the work": ("attack=reflect", f"attack.work={work}")
            for work in (2.0, 1.0, 3.0)
        },
        "second layer": ("attack=reflect", 'attack.layers=["4.*"]'),
        "third layer": ("attack=reflect", 'attack.layers=["9.*"]', "attack.work=1.0"),
    },
    "reflect, late": {"from round 19": part_time("reflect", 1, "attack.starts=19")},
    "reflect, part-time": {"every 2nd round": part_time("reflect", 2, "attack.starts=2")},
    "frame": {
        "beside two victims": ("attack=frame",),
        "beside one victim": ("attack=frame", "attack.victims=1"),
        "to the end": ("attack=frame", "attack.turns=21"),
    },
    "team": {"of three": ("attack=team",)},
    "colluders": {"inverse": ("attack=colluders",)},
    "min-max": {name: ("attack=min-max", f"attack.flip={name}") for name in ("weakest", "strongest")},
    "a-little-is-enough": {"by formula": ("attack=a-little-is-enough",)},
    "inner-product": {"half a step": ("attack=inner-product",)},
}
