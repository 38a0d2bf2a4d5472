"""The server's side: rounds that close at a quorum or a deadline, and a run that goes on where it was."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from flwr.serverapp import Grid

from fedvote.codecs import Parcel
from fedvote.engines.flower.local_data import dtype_name
from fedvote.engines.flower.mailbox import Post
from fedvote.engines.flower.messages import Problem, Task
from fedvote.engines.flower.poll import NoQuorum, Poll
from fedvote.engines.flower.roster import Roster, load_roster, save_roster
from fedvote.errors import ConfigError
from fedvote.federation import Federation, Snapshot, traffic
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.rounds import close_round, held_before, largest_ballot, open_round, read_ballot
from fedvote.runs.config import Config
from fedvote.runs.folder import RUN_NAME, own_files
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.system.atomic_file import write
from fedvote.system.device import repeatable

LOOK = 3.0  # seconds between two looks at who is there
NEVER = float("-inf")
TIME_TO_LIVE = 1.5  # of a message, in deadlines: a little late is still counted, and stale work is soon dropped
LONGER, MOST = 2.0, 10  # times as long for whoever is asked again, whose turns may just take so long; so often at most


@dataclass
class Server:
    """What a server keeps in memory while it runs; all that matters is in the run folder after every round."""

    made: Federation
    config: Config
    folder: Path
    grid: Grid
    allowed: Mapping[str, str] | None = None  # whose keys may vote, and names; None: whoever the SuperLink lets in
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    post: Post = field(init=False)
    roster: Roster = field(init=False)
    problem: Problem = field(init=False)
    present: dict[int, int] = field(default_factory=dict)  # client -> node
    strangers: list[str] = field(default_factory=list)
    away: set[int] = field(default_factory=set)  # who did not vote when they last should have
    holders: set[int] = field(default_factory=set)  # who have the last broadcast: they answered it
    _looked: float = NEVER
    _said: str = ""

    def __post_init__(self) -> None:
        attack = self.made.attack
        if self.made.hostile and (attack.omniscient or attack.joint or self.made.oracle):
            raise ConfigError(
                f"attack {type(attack).__name__} (oracle: {self.made.oracle}) needs to see the messages of several "
                "clients, which are on different machines here: use the simulator, or an attack that works alone"
            )
        self.roster = load_roster(self.folder, len(self.made.owned), self.allowed)
        self.problem = self._problem(_name(self.folder / RUN_NAME))

    def _problem(self, run: str) -> Problem:
        data, train = self.made.data, self.made.data.train
        return Problem(
            to_toml(as_table(self.config)),
            data.shape,
            len(data.classes),
            train.mean,
            train.std,
            run,
            dtype_name(train),
            self.made.data_elsewhere,
            tuple(own_files(self.config).items()),
        )

    def run(self, since: Snapshot | None = None) -> Iterator[Snapshot]:
        """A snapshot after every round, from the one after `since` to the last."""
        made = self.made
        network, test, calibration = made.placed(), made.test(), made.calibration(made.data.train.to(made.device))
        snapshot = since or Snapshot(0, made.start().state, {})
        state = {name: value.to(made.device) for name, value in snapshot.state.items()}
        snapshot = Snapshot(snapshot.round, state, {}, snapshot.record)
        self.post = Post(self.grid, largest_ballot(made.method, network, state))
        self.away = {int(client) for name in ("absent", "failed") for client in snapshot.record.get(name, ())}

        def quality(snapshot: Snapshot) -> dict[str, float]:
            return made.quality(snapshot, network, test, calibration)

        if snapshot.round < made.rounds:
            self._gather()
        while snapshot.round < made.rounds:
            snapshot = self._round(snapshot, network, quality)
            yield snapshot

    def _gather(self) -> None:
        """Wait until everybody has joined, or for the deadline if not all come."""
        began, rules = self.clock(), self.config.flower
        while len(self.present) < len(self.made.owned) and self.clock() - began < rules.deadline:
            self._look()
            self._say(f"{len(self.present)} of {len(self.made.owned)} clients are here")
            if len(self.present) < len(self.made.owned):
                self.sleep(rules.poll)

    def _round(self, last: Snapshot, network: Network, quality: Callable[[Snapshot], dict[str, float]]) -> Snapshot:
        began, made = self.clock(), self.made
        key, method = Key(made.seed, last.round + 1), made.method
        cohort = made.drawn(key)
        held = held_before(method, last.state, key.round)
        if key.round == 1:
            self.holders = set(cohort)

        @cache
        def broadcast(holds: bool) -> bytes:
            with repeatable():
                return open_round(method, network, last.state, key.round, held=held if holds else None)

        def read(frame: bytes, client: int) -> Parcel:
            with repeatable():
                return read_ballot(method, network, last.state, frame, Key(made.seed, key.round, client))

        poll = Poll(key.round, cohort, self.config.flower, read)
        posted, told = self.post.nbytes, self._vote(poll, broadcast, began)
        voted = self.clock()
        while True:
            with repeatable():
                closed = close_round(method, network, last.state, poll.ballots, key, len(cohort))
                measured = quality(Snapshot(key.round, closed.state, {}))
            if not self._hear(poll):  # a late ballot counts until the next broadcast
                break
        record = {
            "round": key.round,
            **measured,
            **traffic(poll.received, sum(told), poll.heard, len(told), network.D),
            "uplink_message_bytes": poll.nbytes,
            "downlink_message_bytes": self.post.nbytes - posted,
            "clients": cohort,
            "counted": closed.counted,
            **made.weights(closed.state, closed.counted),
            **({"measured": closed.measured} if closed.measured else {}),
            **self._events(poll, closed.refused),
            "seconds": self.clock() - began,
            "seconds_training": voted - began,
        }
        self.holders = set(closed.counted)
        return Snapshot(key.round, closed.state, {}, record)

    def _vote(self, poll: Poll, broadcast: Callable[[bool], bytes], began: float) -> list[int]:
        """Ask the cohort and wait until the round closes; returns the lengths of all broadcasts that took."""
        told: list[int] = []
        while True:
            self._look()
            told += self._ask(poll, broadcast)
            heard = self._hear(poll)
            self._look()
            waited, awaited = self.clock() - began, self.post.awaited(poll.round) | (poll.askable() & set(self.present))
            if poll.closes(waited, awaited):
                return told
            if poll.stuck(waited, awaited):
                poll.forgive(waited)
                self._say(poll.waiting(list(self.present), awaited, self.roster.names()))
            if waited >= self.config.flower.patience or poll.lost():
                over = "those who were refused had their vote" if poll.lost() else "flower.patience is over"
                raise NoQuorum(
                    f"{poll.waiting(list(self.present), awaited, self.roster.names())}; {over} after {waited:.0f} s. "
                    f"Round {poll.round - 1} is safe in {self.folder}: start the run again when they are back"
                )
            if not heard:
                self.sleep(self.config.flower.poll)

    def _look(self) -> None:
        """See who is there, and give newcomers their numbers."""
        if self.clock() - self._looked < LOOK:
            return
        self._looked = self.clock()
        nodes = list(self.grid.get_nodes())
        roster = self.roster.enrol(nodes)
        if roster != self.roster:
            self.roster = roster
            save_roster(self.folder, roster)
        self.present, self.strangers = roster.present(nodes), roster.strangers(nodes)

    def _ask(self, poll: Poll, broadcast: Callable[[bool], bytes]) -> list[int]:
        """Send the broadcast to those of the cohort who are there and have it not; returns how long each was."""
        whom = sorted((poll.askable() & self.present.keys()) - self.post.awaited(poll.round))
        frames = {client: broadcast(client in self.holders) for client in whom}
        deadline = self.config.flower.deadline
        tasks = [
            (Task(self.problem, poll.round, c, frame), self.present[c], time_to_live(deadline, poll.failures[c]))
            for c, frame in frames.items()
        ]
        return [len(frames[client]) for client in self.post.send(tasks)]

    def _hear(self, poll: Poll) -> bool:
        """Take in what has come; True if there was a ballot that counts."""
        answers = self.post.collect()
        lacking = {answer.errand.client for answer in answers if answer.not_held} & self.holders
        self.holders -= lacking  # they are asked again, with the whole broadcast, once
        answers = [replace(answer, mendable=True) if answer.errand.client in lacking else answer for answer in answers]
        if any(answer.mendable for answer in answers):
            self._looked = NEVER  # somebody may have gone
        return any([poll.take(answer) for answer in answers])

    def _events(self, poll: Poll, refused: dict[int, str]) -> dict[str, Any]:
        events = poll.events(list(self.present), self.post.awaited(poll.round))
        if refused:
            events["refused"] = {**poll.refused, **refused}
        if returned := sorted(self.away & poll.voted):
            events["returned"] = returned
        if self.strangers:
            events["turned_away"] = [self.roster.in_full(who) for who in self.strangers]
        self.away = (self.away - poll.voted) | {client for client in poll.cohort if client not in poll.voted}
        return events

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            print(sentence, file=sys.stderr, flush=True)
            self._said = sentence


def time_to_live(deadline: float, failures: int) -> float:
    """Seconds for which a message waits to be answered, by a client that failed so often in this round."""
    return float(TIME_TO_LIVE * deadline * LONGER ** min(failures, MOST))


def _name(file: Path) -> str:
    """What no two runs share, so that no client mistakes one for the other; it is made as a run begins."""
    if not file.is_file():
        write(file, secrets.token_hex(8))
    return file.read_text()
