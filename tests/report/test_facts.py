"""The facts at the top of the page: how far a run is, its clients, its attack, its words."""

from __future__ import annotations

from tests.report.pages import MakeRun, report


def test_an_unfinished_run_says_how_far_it_is(make_run: MakeRun) -> None:
    folder = make_run(rounds=10)
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:4]))
    assert "for 4 of 10 rounds by" in report(folder)


def test_the_facts_count_the_clients_of_a_round_even_where_the_configuration_says_all(make_run: MakeRun) -> None:
    folder = make_run(clients=4)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("cohort = 4", "cohort = 0"))
    assert "<dt>clients per round</dt><dd>4</dd>" in report(folder)
    (folder / "metrics.jsonl").write_text("")
    assert "<dt>clients per round</dt><dd>all</dd>" in report(folder)


def test_the_facts_name_the_attack_and_the_rule(make_run: MakeRun) -> None:
    folder = make_run(weights=True, hostile=2)
    rules = '[method.reputation]\nname = "camps"\n[attack]\nname = "inverse"\n'
    config = folder / "config.toml"
    config.write_text(config.read_text() + rules)
    assert "<dt>attack</dt><dd>inverse by 2 clients</dd>" in report(folder)
    assert "<dt>rule</dt><dd>camps</dd>" in report(folder)
    assert "<dt>attack</dt>" not in report(make_run()) and "<dt>rule</dt>" not in report(make_run())


def test_the_facts_name_a_bound_on_influence(make_run: MakeRun) -> None:
    folder = make_run()
    config = folder / "config.toml"
    before = config.read_text()
    for name, there in (("unbounded", False), ("agreement", True)):
        config.write_text(before + f'[method.influence]\nname = "{name}"\n')
        assert (f"<dt>bound on influence</dt><dd>{name}</dd>" in report(folder)) == there


def test_hostile_clients_whose_attack_is_not_known_are_named_in_words(make_run: MakeRun) -> None:
    page = report(make_run(hostile=2))
    assert "an attack that is not known by 2 clients" in page and "None" not in page


def test_one_client_and_one_round_are_written_in_the_singular(make_run: MakeRun) -> None:
    folder = make_run(clients=1, rounds=1)
    assert "One round as a table" in report(folder)
    assert ": one client, 10 clients, 1, 10 rounds." in report(folder, make_run("other"))


def test_many_different_runs_are_counted_in_words(make_run: MakeRun) -> None:
    page = report(*(make_run(f"run-{n}", method=f"m{n}", clients=n + 2, rounds=n + 1) for n in range(5)))
    assert "5 methods on digits with lenet5: 5 different numbers of clients, 5 different numbers of rounds." in page
