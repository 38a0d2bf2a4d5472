"""One plain sentence about a run: who trained what, on which data, and how. A second one says who was hostile."""

from __future__ import annotations

from collections.abc import Sequence

from fedvote.report.read_run import Run
from fedvote.runs.catalogue import catalogue


def run_sentence(runs: Sequence[Run]) -> str:
    return of_one(runs[0]) if len(runs) == 1 else of_several(runs)


def of_one(run: Run) -> str:
    network, data = run.setting("model", "name") or "a network", run.setting("data", "name") or "data of their own"
    who = f"{number_of_clients(run)} trained {network} on {data}{in_rounds(run)}"
    return " ".join(part for part in (f"{who} by {method(run)}", attack(run)) if part)


def of_several(runs: Sequence[Run]) -> str:
    facts = {
        "": in_common([method_name(run) for run in runs], "methods"),
        "on": in_common([run.setting("data", "name") for run in runs], "datasets"),
        "with": in_common([run.setting("model", "name") for run in runs], "networks"),
    }
    words = " ".join(f"{word} {fact}".strip() for word, fact in facts.items() if fact)
    clients = in_common([number_of_clients(run).lower() for run in runs], "different numbers of clients")
    rounds = in_common([progress(run) for run in runs], "different numbers of")
    return f"{words}: {clients}, {rounds} {'round' if rounds == '1' else 'rounds'}."


def number_of_clients(run: Run) -> str:
    clients = run.setting("federation", "clients")
    if not isinstance(clients, int) or not clients:
        return "Clients"
    return f"{clients:,} clients" if clients > 1 else "One client"


def in_rounds(run: Run) -> str:
    rounds, cohort = progress(run), clients_per_round(run)
    whole = not isinstance(cohort, int) or cohort == run.setting("federation", "clients")
    some = "" if whole else f", {cohort} of them in each,"
    return f" for {rounds} {'round' if rounds == '1' else 'rounds'}{some}"


def method(run: Run) -> str:
    """The method with its own explanation, such as: FedVote: clients send votes, the server counts them."""
    return described("methods", method_name(run))


def method_name(run: Run) -> str:
    return str(run.setting("method", "name") or "a method of their own")


def attack(run: Run) -> str:
    if not run.hostile:
        return ""
    many = f"{len(run.hostile)} of them" if len(run.hostile) > 1 else "One of them"
    name, judged = attack_name(run), rule(run)
    if run.setting("federation", "oracle"):
        return f"{many} would have attacked ({name}), but an oracle, which no server has, left them out."
    weighed = f", and the server weighed messages by the rule {judged}" if judged else ""
    return f"{many} attacked ({name}){weighed}."


def attack_name(run: Run) -> str:
    return written(run.setting("attack", "name") or "an attack that is not known")


def rule(run: Run) -> object:
    """How clients are weighed: the reputation rule of votes, or the aggregate of float weights."""
    return run.setting("method", "reputation", "name") or run.setting("method", "aggregate", "name")


def described(kind: str, name: str) -> str:
    """The first sentence that `fedvote list` has of a part; of a part of the user's own, its name alone."""
    first, _, _ = catalogue(kind)[kind].get(name, name).partition(". ")
    return first.removesuffix(".") + "."


def clients_per_round(run: Run) -> object:
    """Number of clients in the last round; before the first round, the planned number."""
    clients = run.rounds[-1].get("clients") if run.rounds else None
    return len(clients) if clients else run.setting("federation", "cohort") or "all"


def progress(run: Run) -> str:
    """Number of finished rounds; if some are missing, also the planned number."""
    done = run.rounds[-1]["round"] if run.rounds else 0
    planned = run.setting("rounds")
    return str(done) if planned in (None, done) else f"{done} of {written(planned)}"


def in_common(values: Sequence[object], several: str = "different") -> str:
    """The value that the runs share, or up to four different values, or how many there are, and of what."""
    distinct = list(dict.fromkeys(written(value) for value in values if value is not None))
    return ", ".join(distinct) if len(distinct) <= 4 else f"{len(distinct)} {several}"


def written(value: object) -> str:
    """A value as a person writes it: true instead of True, a list by its items."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(written, value)) or "none"
    return str(value) if value not in ("", {}) else "none"
