"""What a user's own method, rule, attack or partitioner hands back is checked: one sentence, before it does harm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fedvote import ConfigError, FedAvg, FedVote
from fedvote.aggregate import Mean
from fedvote.attacks import Attack, Seen
from fedvote.cli import main
from fedvote.codecs.float32 import Float32
from fedvote.core import Codec, Dataset, Message, State
from fedvote.data.partition import Partition
from fedvote.engines.simulate import simulate
from fedvote.errors import WireError
from fedvote.method import AllAtOnce, Merge
from fedvote.methods import Signum
from fedvote.randomness import Key
from fedvote.registry import find
from fedvote.reputation import Uniform
from fedvote.runs.config import read
from tests.toy import dataset, module

Change = Callable[[Any], Any]


FUNCTIONS = ("init", "local", "merge", "measure", "models", "wire", "memory", "objective")


def change_what(function: str, change: Change, patch: pytest.MonkeyPatch) -> None:
    """Let a function of FedAvg hand back something else."""
    original = getattr(FedAvg, function)
    patch.setattr(FedAvg, function, lambda *arguments: change(original(*arguments)))


def run(method: Any = None, **options: Any) -> None:
    chosen: dict[str, Any] = {"clients": 5, "rounds": 2, "steps": 2, "batch": 8, "device": "cpu"} | options
    list(simulate(module(), dataset(), method, **chosen).run())


def without(name: str) -> Change:
    return lambda given: {key: value for key, value in given.items() if key != name}


def closing(change: Change) -> Change:
    """Let the fold of a round end in something else."""
    return lambda merge: AllAtOnce(lambda ups, clients: change(_closed(merge, ups, clients)))


def _closed(merge: Merge, ups: Message, clients: list[int]) -> State:
    merge.add(ups, clients)
    return merge.close()


@pytest.mark.parametrize(
    ("of", "change", "sentence"),
    [
        ("init", lambda given: None, "FedAvg.init gives nothing, expected a dict of tensors by name"),
        ("init", lambda given: given | {"float": 3}, "FedAvg.init gives an int as 'float', expected a tensor"),
        ("memory", lambda given: [1], "FedAvg.memory gives a list, expected a dict"),
        ("measure", lambda given: 3, "FedAvg.measure gives an int, expected a dict of numbers by name"),
        (
            "measure",
            lambda given: {"drift": torch.ones(2)},
            "FedAvg.measure gives torch.float32 of shape (2,) as 'drift', expected a finite",
        ),
        ("measure", lambda given: {"drift": math.nan}, "FedAvg.measure gives nan as 'drift', expected a finite number"),
        ("local", lambda given: None, "FedAvg.local gives nothing, expected two things"),
        ("local", lambda given: given[0], "FedAvg.local gives a dict, expected two things"),
        ("local", lambda given: (None, given[1]), "FedAvg.local gives nothing, expected a dict of tensors"),
        (
            "local",
            lambda given: ({name: rows[1:] for name, rows in given[0].items()}, given[1]),
            "expected a row for each of the 5 clients",
        ),
        ("local", lambda given: (given[0], {"new": torch.zeros(5)}), "FedAvg.local gives 'new', expected none"),
        ("merge", lambda given: None, "FedAvg.merge gives nothing, expected a Merge"),
        ("merge", closing(lambda state: None), "FedAvg.merge gives nothing, expected a dict"),
        ("merge", closing(without("float")), "FedAvg.merge gives 'voted', expected 'voted', 'float'"),
        (
            "merge",
            closing(lambda state: state | {"voted": state["voted"][1:]}),
            "'voted' as torch.float32 of shape (71,), expected torch.float32 of shape (72,)",
        ),
        ("models", lambda given: None, "FedAvg.models gives nothing, expected a dict that has 'deployed' and 'float'"),
        ("models", without("deployed"), "expected a dict that has 'deployed' and 'float'"),
        ("models", lambda given: given | {"float": 1}, "FedAvg.models gives an int as 'float', expected Weights of 72"),
        ("wire", lambda given: None, "FedAvg.wire gives nothing, expected a Wire"),
        ("wire", lambda given: replace(given, uplink=None), "FloatWire.up gives nothing, expected a dict of codecs"),
        ("objective", lambda given: None, "objective returns nothing, expected one number"),
        ("objective", lambda given: given.expand(4), "returns a tensor of shape (4,), expected one number"),
    ],
)
def test_what_a_method_hands_back_is_checked(
    of: str, change: Change, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_what(of, change, monkeypatch)
    with pytest.raises(ConfigError) as refusal:
        run(FedAvg())
    assert sentence in str(refusal.value)


@dataclass(frozen=True)
class Rule(Uniform):
    change: Change = lambda given: given

    def judge(self, *arguments: Any) -> Any:
        return self.change(super().judge(*arguments))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda given: None, "Rule.judge gives nothing, expected a Verdict"),
        (lambda given: replace(given, soft_K=[1, 1, 1, 1, 1]), "soft_K of a list, expected a tensor of shape (5,)"),
        (lambda given: replace(given, hard_K=torch.ones(4)), "hard_K of shape (4,), expected a tensor of shape (5,)"),
        (
            lambda given: replace(given, soft_K=torch.tensor([1.0, 1, 1, 1, -3])),
            "soft_K from -3 that adds up to 1, expected none below 0",
        ),
        (
            lambda given: replace(given, soft_K=torch.zeros(5)),
            "weights for soft_K or hard_K alone",
        ),
        (lambda given: replace(given, hard_K=torch.full((5,), torch.nan)), "hard_K from nan that adds up to nan"),
        (lambda given: replace(given, memory=None), "Rule.judge gives nothing, expected a dict of tensors"),
        (lambda given: replace(given, memory={"a": torch.ones(5)}), "Rule.judge gives 'a', expected none"),
    ],
)
def test_what_a_rule_decides_is_checked(change: Change, sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        run(FedVote(reputation=Rule(change=change)))
    assert sentence in str(refusal.value)


@dataclass(frozen=True)
class Forger(Attack):
    forged: Change = lambda given: given
    labels: Change = lambda given: given

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        return self.labels(labels_HB)  # type: ignore[no-any-return]

    def tamper(self, seen: Seen) -> Any:
        return self.forged(dict(seen.own))


@pytest.mark.parametrize(
    ("attack", "sentence"),
    [
        (Forger(lambda own: None), "Forger.tamper gives nothing, expected a dict of tensors"),
        (Forger(lambda own: {}), "Forger.tamper gives no tensors, expected 'votes'"),
        (Forger(lambda own: {"votes": own["votes"][:1]}), "of shape (1, 72), expected torch.int8 of shape (2, 72)"),
        (
            Forger(lambda own: {"votes": own["votes"] / 2}),
            "'votes' as torch.float32 of shape (2, 72), expected torch.int8",
        ),
        (Forger(labels=lambda y: None), "Forger.poison gives nothing, expected whole numbers of shape (2, 16)"),
        (Forger(labels=lambda y: y[:, 1:]), "of shape (2, 15), expected whole numbers of shape (2, 16)"),
        (Forger(labels=lambda y: y.float()), "Forger.poison gives torch.float32"),
        (Forger(labels=lambda y: y + 1), "Forger.poison gives labels from 1 to 3, expected 0 to 2"),
    ],
)
def test_what_an_attack_makes_up_is_checked(attack: Forger, sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        run(FedVote(), attack=attack, hostile=2)
    assert sentence in str(refusal.value)


@dataclass(frozen=True)
class Split(Partition):
    made: Change = lambda parts: parts

    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> Any:
        return self.made([np.arange(client, len(data.train), clients) for client in range(clients)])


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda parts: None, "Split.split gives nothing, expected a list with the indices of each of the 5 clients"),
        (lambda parts: parts[1:], "gives 4 parts, expected a list with the indices of each of the 5 clients"),
        (lambda parts: [*parts, *parts], "gives 10 parts"),
        (lambda parts: [parts[0] - 200, *parts[1:]], "gives client 0 examples -200 to -5, expected 0 to 199"),
        (lambda parts: [*parts[:4], parts[4] + 1], "gives client 4 examples 5 to 200, expected 0 to 199"),
        (lambda parts: [part / 2 for part in parts], "gives float64 of shape (40,) for client 0, expected a list of"),
    ],
)
def test_who_has_what_is_checked(made: Change, sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        run(partition=Split(made))
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("kind", [np.asarray, list, torch.tensor])
def test_indices_may_be_arrays_lists_and_tensors(kind: Change) -> None:
    run(partition=Split(lambda parts: list(map(kind, parts))))


def test_parts_that_keep_the_contract_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that those above were refused for what they change alone."""
    for of in FUNCTIONS:
        change_what(of, lambda given: given, monkeypatch)
    run(FedAvg())
    run(Signum())  # which has a memory
    run(FedVote(reputation=Rule()), attack=Forger(), hostile=2)


OWN = """
import helper
from dataclasses import dataclass
from fedvote.methods import FedAvg

@dataclass(frozen=True)
class Mine(FedAvg):
    def merge(self, state, key):
        return helper.merged[len(state)]
"""


def test_an_error_in_a_users_own_file_names_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text(OWN)
    (tmp_path / "own" / "helper.py").write_text("merged = {}\n")  # which it can import
    small = ["--set", "rounds=1", "--set", "local.steps=1", "--device", "cpu"]
    with pytest.raises(SystemExit) as stop:
        main(["run", *small, "--set", "method=own/mine.py:Mine"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and "Traceback" not in said
    assert said.strip().endswith(f"{tmp_path}/own/mine.py, line 9, in merge: KeyError: 2")


WRONG_SIGNATURES = {
    "merge": "def merge(self, state):\n        return None",
    "init": "def init(self, network):\n        return {}",
    "wire": "def wire(self):\n        return None",
    "local": "def local(self, network, down, batches, memory):\n        return {}, {}",
}


@pytest.mark.parametrize("name", WRONG_SIGNATURES)
def test_a_function_that_cannot_be_called_as_the_contract_says_is_refused_in_one_sentence(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"import fedvote\n\nclass Mine(fedvote.FedAvg):\n    {WRONG_SIGNATURES[name]}\n")
    with pytest.raises(ConfigError, match=rf"Mine\.{name} takes \(self.*\), expected \(self, "):
        read("quickstart", [f"method={file}:Mine"])
    mine: Any = find({}, f"{file}:Mine", "method")
    with pytest.raises(ConfigError, match=rf"Mine\.{name} takes"):
        run(mine())


def test_fields_of_a_class_that_is_no_dataclass_are_not_dropped_in_silence(tmp_path: Path) -> None:
    file = tmp_path / "constants.py"
    file.write_text("import fedvote, typing\n\nclass Mine(fedvote.FedAvg):\n    mu: typing.ClassVar[float] = 0.1\n")
    assert type(read("quickstart", [f"method={file}:Mine"]).method).__name__ == "Mine"
    file = tmp_path / "mine.py"
    file.write_text("import fedvote\n\nclass Mine(fedvote.FedAvg):\n    mu: float = 0.1\n")
    with pytest.raises(
        ConfigError, match=r"has fields, but is not a dataclass: put @dataclass\(frozen=True\) above it"
    ):
        read("quickstart", [f"method={file}:Mine"])


@pytest.mark.parametrize("wire", ["weighed", "written"])
def test_a_tensor_of_another_type_than_its_codec_carries_is_refused(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator would go on with other numbers than those that arrive."""
    change_what("local", lambda given: (given[0] | {"voted": given[0]["voted"].double()}, given[1]), monkeypatch)
    with pytest.raises(WireError, match=r"'voted' is torch\.float64, expected torch\.float32"):
        run(FedAvg(), wire=wire)


@pytest.mark.parametrize("reasons", [["late"], {7: "late"}, {0: 3}], ids=["list", "another client", "a number"])
def test_why_a_rule_leaves_clients_out_is_checked(reasons: Any) -> None:
    class First(Uniform):
        def judge(self, *arguments: Any) -> Any:
            given = super().judge(*arguments)
            weights_K = torch.ones_like(given.soft_K).index_fill(0, torch.tensor([0]), 0)
            return replace(given, soft_K=weights_K, hard_K=weights_K)

        def reasons(self, *arguments: Any) -> Any:
            return reasons

    with pytest.raises(ConfigError, match=r"First.reasons gives .*, expected (a dict: client -> why|words for some)"):
        run(FedVote(reputation=First()))


def test_a_codec_that_changes_numbers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = Float32.decode
    monkeypatch.setattr(Float32, "decode", lambda *given: decode(*given) / 2)
    with pytest.raises(ConfigError, match=r"\w+.decode gives other voted than encode was given"):
        run(FedAvg(), wire="written")


def test_a_codec_has_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Halves(Float32):
        """An extension of a codec has the codec's number."""

    class Mine(Codec):
        tag = 4
        encode, decode = Float32.encode, Float32.decode

        def __init__(self, count: int) -> None:
            self.count = count

    def sending(kind: Any) -> Change:
        return lambda wire: replace(wire, uplink={name: kind(codec.count) for name, codec in wire.uplink.items()})

    for kind in (Halves, Mine):
        with monkeypatch.context() as patch:
            change_what("wire", sending(kind), patch)
            if kind is Halves:
                run(FedAvg())
                continue
            with pytest.raises(ConfigError, match=r"Mine.tag is 4, which Float32 has, expected .*: 14 to 255"):
                run(FedAvg())


class Draws(FedAvg):
    def local(self, *arguments: Any) -> Any:
        torch.rand(1)
        return super().local(*arguments)


class Overwrites(FedAvg):
    def merge(self, state: State, key: Key) -> Merge:
        def in_place(ups: Message, clients: list[int]) -> State:
            state["voted"] += ups["voted"].mean(0)
            return state

        return AllAtOnce(in_place)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (Draws(), r"Draws.local drew from torch's global generator, expected one that is made of a key"),
        (Overwrites(), r"Overwrites.merge changed the tensor 'voted' that it was given, expected a new tensor"),
    ],
)
def test_a_function_that_is_not_pure_is_refused(method: FedAvg, sentence: str) -> None:
    """Snapshots would share one tensor, or a run of the same seed would have other bits."""
    with pytest.raises(ConfigError, match=sentence):
        run(method)


class Rows(Mean):
    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        return rows_KD


def test_what_an_aggregation_rule_hands_back_is_checked() -> None:
    with pytest.raises(
        ConfigError, match=r"Rows.__call__ gives torch.float32 of shape \(5, \d+\), expected one row of"
    ):
        run(FedAvg(aggregate=Rows()))


def test_a_method_may_be_given_by_its_name() -> None:
    assert simulate(module(), dataset(), "fedavg", clients=5, batch=8).federation.method == FedAvg()
    with pytest.raises(ConfigError, match=r"method 'fedavgg' is not known; .*did you mean fedavg"):
        run("fedavgg")


def test_a_class_in_place_of_a_method_is_named_as_one() -> None:
    with pytest.raises(ConfigError, match="got the class FedAvg, expected a Method"):
        run(FedAvg)
