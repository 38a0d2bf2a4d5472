"""The sentence at the top: a stranger learns who trained what, and who attacked."""

from __future__ import annotations

from pathlib import Path

from fedvote.report.read_run import read_runs
from fedvote.report.run_sentence import run_sentence
from tests.report.pages import MakeRun


def sentence(*folders: Path) -> str:
    return run_sentence(read_runs(folders))


def test_a_run_is_told_in_a_sentence_with_its_method_explained(make_run: MakeRun) -> None:
    assert sentence(make_run(method="fedavg")) == (
        "10 clients trained lenet5 on digits for 10 rounds by FedAvg: clients send their float weights, the server "
        "averages them."
    )


def test_a_method_of_ones_own_is_named(make_run: MakeRun) -> None:
    assert sentence(make_run(method="mine.py:Mine")).endswith("for 10 rounds by mine.py:Mine.")


def test_an_attack_and_its_rule_are_named(make_run: MakeRun) -> None:
    folder = make_run(hostile=3, method="own")
    rules = '[method.reputation]\nname = "camps"\n[attack]\nname = "inverse"\n'
    (folder / "config.toml").write_text((folder / "config.toml").read_text() + rules)
    assert sentence(folder).endswith(
        " 3 of them attacked (inverse), and the server weighed messages by the rule camps."
    )


def test_an_oracle_is_named(make_run: MakeRun) -> None:
    folder = make_run(hostile=3, method="own")
    config = (folder / "config.toml").read_text().replace("[federation]\n", "[federation]\noracle = true\n")
    (folder / "config.toml").write_text(config + '[attack]\nname = "inverse"\n')
    assert "3 of them would have attacked (inverse), but an oracle" in sentence(folder)


def test_rounds_with_a_part_of_the_clients_say_how_many(make_run: MakeRun) -> None:
    folder = make_run(method="own", clients=10)
    (folder / "metrics.jsonl").write_text('{"round": 1, "clients": [0, 4, 7]}\n')
    assert "for 1 of 10 rounds, 3 of them in each, by" in sentence(folder)


def test_several_runs_are_told_by_what_they_share_and_what_differs(make_run: MakeRun) -> None:
    assert sentence(make_run("a", method="one"), make_run("b", method="two")) == (
        "one, two on digits with lenet5: 10 clients, 10 rounds."
    )


def test_a_folder_with_hardly_any_settings_has_a_sentence(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "config.toml").write_text("")
    assert sentence(folder) == (
        "Clients trained a network on data of their own for 10 rounds, 10 of them in each, by a method of their own."
    )
