"""The server: in each round it draws the cohort, asks it for ballots, hears them, closes the round, and records it.

After every round the run folder holds everything needed: a restarted server resumes from it.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flwr.serverapp import Grid

from fedvote.engines.flower.asking import Asker
from fedvote.engines.flower.attendance import Attendance
from fedvote.engines.flower.hearing import hear
from fedvote.engines.flower.local_data import dtype_name, numbered
from fedvote.engines.flower.mailbox import Mailbox
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.roster import load_roster
from fedvote.engines.flower.round_record import events, results_and_traffic
from fedvote.engines.flower.server_round import ServerRound
from fedvote.engines.flower.tasks import Problem
from fedvote.errors import ConfigError, FedVoteError
from fedvote.federation import Federation, Snapshot
from fedvote.rounds import Round
from fedvote.runs.config import Config
from fedvote.runs.folder import RUN_NAME, own_files
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.system.atomic_file import write


class NoQuorum(FedVoteError):
    """Too few clients voted in time. All earlier rounds are saved: the run can be resumed."""


@dataclass
class Server:
    """Runs a federation over Flower's grid. `allowed`: identity -> name, of nodes that may vote; None: all may."""

    federation: Federation
    config: Config
    folder: Path
    grid: Grid
    allowed: Mapping[str, str] | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    attendance: Attendance = field(init=False)
    mailbox: Mailbox = field(init=False)
    asker: Asker = field(init=False)
    _last_said: str = ""

    def __post_init__(self) -> None:
        _check_attack(self.federation)
        roster = load_roster(self.folder, len(self.federation.owned), self.allowed)
        self.attendance = Attendance(self.grid, self.folder, roster, self.clock)

    def run(self, since: Snapshot | None = None) -> Iterator[Snapshot]:
        """Yield a snapshot after every round, from the round after `since` to the last."""
        federation = self.federation
        network, test = federation.placed(), federation.test()
        calibration = federation.calibration(federation.data.train.to(federation.device))
        snapshot = (since or Snapshot(0, federation.start().state, {})).to(federation.device)
        round = Round(federation.method, network, federation.key(snapshot.round + 1))
        self.mailbox = Mailbox(self.grid, round.largest_ballot(snapshot.state))
        self.asker = Asker(self.mailbox, problem(federation, self.config, self.folder), self.config.flower.deadline)
        self.attendance.away = {int(c) for name in ("absent", "failed") for c in snapshot.record.get(name, ())}

        def evaluate(snapshot: Snapshot) -> dict[str, float]:
            return federation.quality(snapshot, network, test, calibration)

        if snapshot.round < federation.plan.rounds:
            self._gather()
        while snapshot.round < federation.plan.rounds:
            snapshot = self._round(ServerRound(federation, network, snapshot.state, snapshot.round + 1, evaluate))
            yield snapshot

    def _round(self, round: ServerRound) -> Snapshot:
        began = self.clock()
        poll = Poll(round.number, round.cohort, self.config.flower, round.read)
        if round.number == 1:
            self.asker.holders = set(round.cohort)  # all derive the first reference from the seed
        self._vote(poll, round, began)
        voted = self.clock()
        closed, quality = round.close(poll.ballots)
        while self._hear(poll):  # a late ballot counts until the next broadcast
            closed, quality = round.close(poll.ballots)
        self.asker.holders = set(closed.counted)
        returned = self.attendance.after_vote(poll.cohort, poll.voted)
        record = {
            **results_and_traffic(round, poll, closed, quality),
            **events(poll, closed, self.mailbox.awaited(poll.round), self.attendance, returned),
            "seconds": self.clock() - began,
            "seconds_training": voted - began,
        }
        return Snapshot(round.number, closed.state, {}, record)

    def _gather(self) -> None:
        """Wait until all clients are online, but no longer than the deadline."""
        began, rules = self.clock(), self.config.flower
        while not self.attendance.complete() and self.clock() - began < rules.deadline:
            self.attendance.look()
            self._say(f"{len(self.attendance.online)} of {len(self.federation.owned)} clients are here")
            if not self.attendance.complete():
                self.sleep(rules.poll)

    def _vote(self, poll: Poll, round: ServerRound, began: float) -> None:
        """Ask the cohort and hear its replies until the round closes."""
        while True:
            self.attendance.look()
            self.asker.ask(poll, round, self.attendance.online)
            heard = self._hear(poll)
            self.attendance.look()
            waited = self.clock() - began
            awaited = self.mailbox.awaited(poll.round) | (poll.askable() & self.attendance.online.keys())
            if poll.closes(waited, awaited):
                return
            self._wait_for_minimum(poll, waited, awaited)
            if not heard:
                self.sleep(self.config.flower.poll)

    def _hear(self, poll: Poll) -> bool:
        return hear(self.mailbox, poll, self.asker, self.attendance)

    def _wait_for_minimum(self, poll: Poll, waited: float, awaited: set[int]) -> None:
        """If only the minimum is missing, say so and ask failed clients again; NoQuorum if it cannot be reached."""
        hopeless = poll.cannot_reach_minimum()
        over = hopeless or waited >= self.config.flower.patience
        if not over and not poll.lacks_minimum(waited, awaited):
            return
        missing = poll.missing(self.attendance.online, awaited, self.attendance.roster.names())
        if over:
            why = "refused clients get no second vote" if hopeless else "flower.patience is over"
            raise NoQuorum(
                f"{missing}; {why}, after {waited:.0f} s. Round {poll.round - 1} is safe in {self.folder}: start the "
                "run again when they are back"
            )
        poll.retry_after_deadline(waited)
        self._say(missing)

    def _say(self, sentence: str) -> None:
        """Print a sentence, unless it was the last one printed."""
        if sentence != self._last_said:
            print(sentence, file=sys.stderr, flush=True)
            self._last_said = sentence


def problem(federation: Federation, config: Config, folder: Path) -> Problem:
    """The federation's description for clients. A new run also gets its random name."""
    data, train = federation.data, federation.data.train
    if not (folder / RUN_NAME).is_file():
        write(folder / RUN_NAME, secrets.token_hex(8))
    return Problem(
        experiment=to_toml(as_table(config)),
        shape=data.shape,
        classes=len(data.classes),
        mean=train.mean,
        std=train.std,
        run=(folder / RUN_NAME).read_text(),
        dtype=dtype_name(train),
        own_data=federation.data_elsewhere,
        files=tuple(own_files(config).items()),
        task=data.task,
        names=() if data.classes == numbered(len(data.classes)) else data.classes,
    )


def _check_attack(federation: Federation) -> None:
    attack, oracle = federation.plan.attack, federation.plan.federation.oracle
    if federation.hostile and (attack.omniscient or attack.joint or oracle):
        raise ConfigError(
            f"attack {type(attack).__name__} (oracle: {oracle}) needs the messages of several clients, which are on "
            "different machines here: use the simulator, or an attack that works on single messages"
        )
