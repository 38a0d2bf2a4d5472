"""The server: in each round it draws the cohort, asks it for ballots, hears them, closes the round, and records it.

After every round the run folder holds everything needed: a restarted server resumes from it.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import Any

from flwr.serverapp import Grid

from fedvote.core import State
from fedvote.engines.flower.asking import Asker
from fedvote.engines.flower.attendance import Attendance
from fedvote.engines.flower.between_machines import check_between_machines, warn_of_trusted
from fedvote.engines.flower.decoders import Decoders
from fedvote.engines.flower.hearing import hear
from fedvote.engines.flower.late_ballots import LateBallots
from fedvote.engines.flower.local_data import dtype_name, numbered
from fedvote.engines.flower.log_lines import Log, sentence
from fedvote.engines.flower.mailbox import Mailbox
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.problem import Problem
from fedvote.engines.flower.roster import load_roster, save_roster
from fedvote.engines.flower.round_record import events, results_and_traffic
from fedvote.engines.flower.secret_file import keep_secret
from fedvote.engines.flower.secret_tally import SecretTally
from fedvote.engines.flower.server_evaluation import Jury
from fedvote.engines.flower.server_round import ServerRound
from fedvote.errors import FedVoteError
from fedvote.federation import Federation
from fedvote.reputation import trusted_by
from fedvote.rounds import Round, held
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.config import Config
from fedvote.runs.folder import RUN_NAME
from fedvote.runs.own_files import own_files
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.secure import SecureTally
from fedvote.secure.messages import most_bytes
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
    secret: InitVar[bytes | None] = None  # of a new run; None: the operating system draws it
    log: Log = sentence
    attendance: Attendance = field(init=False)
    mailbox: Mailbox = field(init=False)
    asker: Asker = field(init=False)
    late: LateBallots = field(init=False)
    jury: Jury | None = field(default=None, init=False)  # if there are no examples on the server
    secret_tally: SecretTally | None = field(default=None, init=False)  # if the server learns sums alone
    _last_said: str = ""

    def __post_init__(self, secret: bytes | None) -> None:
        check_between_machines(self.federation, self.config.flower)
        self.federation = replace(self.federation, secret=keep_secret(self.folder, secret))
        clients = len(self.federation.owned)
        warn_of_trusted(self.federation.method, self.allowed, clients)
        roster = load_roster(self.folder, clients, self.allowed).enrol([])
        if roster.numbers:
            save_roster(self.folder, roster)
        if names := {client: roster.names().get(client) for client in trusted_by(self.federation.method)}:
            self.log("trusted", f"trusted clients: {', '.join(f'{c} is {name}' for c, name in names.items())}")
        self.attendance = Attendance(self.grid, self.folder, roster, self.clock)
        self.late = LateBallots(self.config.flower)

    def run(self, since: Snapshot | None = None) -> Iterator[Snapshot]:
        """Yield a snapshot after every round, from the round after `since` to the last."""
        federation = self.federation
        network, test = federation.placed(), federation.test()
        calibration = federation.calibration()
        snapshot = (since or Snapshot(0, federation.start().state, {})).to(federation.device)
        round = Round(federation.method, network, federation.key(snapshot.round + 1))
        description, limit = problem(federation, self.config, self.folder), round.largest_ballot(snapshot.state)
        if isinstance(secure := federation.plan.secure, SecureTally):
            terms = secure.terms(description.run, round.wire.summed, description.hash)
            limit = max(limit, most_bytes(terms, federation.plan.cohort))
        self.mailbox = Mailbox(self.grid, limit)
        self.asker = Asker(self.mailbox, description, self.config.flower.deadline, held.holders(snapshot.state))
        self.attendance.away = {int(c) for name in ("absent", "failed") for c in snapshot.record.get(name, ())}

        def evaluate(snapshot: Snapshot) -> dict[str, Any]:
            return federation.quality(snapshot, network, test, calibration) if len(test) else {}

        if not len(test):
            answers = Mailbox(self.grid, self.mailbox.limit, informed=self.mailbox.informed)
            self.jury = Jury(federation, self.asker.problem, answers, self.config.flower, self.clock, self.sleep)

        if isinstance(secure, SecureTally):
            rules = self.config.flower
            self.secret_tally = SecretTally(terms, self.asker, rules, self.attendance, self.clock, self.sleep)
        if snapshot.round < federation.plan.rounds:
            self._gather()
        with closing(Decoders()) as decoders:
            while snapshot.round < federation.plan.rounds:
                number, state = snapshot.round + 1, snapshot.state
                snapshot = self._round(ServerRound(federation, network, state, number, evaluate, decoders))
                yield snapshot

    def statistics(self) -> State | None:
        """Batch-norm statistics of the deployed network, as clients measured them; None if the server does it."""
        return self.jury.statistics if self.jury else None

    def _round(self, round: ServerRound) -> Snapshot:
        began = self.clock()
        poll = Poll(round.number, round.cohort, self.config.flower, round.cast)
        if self.secret_tally:
            round, poll = self.secret_tally.open(round)
        poll.cast_late = self.late.caster(round)
        if round.number == 1:
            self.asker.holders = dict.fromkeys(round.cohort, 0)  # all derive the first reference from the seed
        self._vote(poll, round, began)
        voted = self.clock()
        if self.secret_tally:
            self.secret_tally.close(round, poll)
        closed, quality = round.close()
        while self._hear(poll, round):  # a late ballot counts until the next broadcast
            closed, quality = round.close()
        self.late.closed(round, poll.voted)
        self.asker.holders |= dict.fromkeys(closed.counted, round.number)
        if self.jury is not None and self.federation.evaluates(round.number):
            quality = self.jury.judge(closed.state, round.number, self.attendance.online)
        returned = self.attendance.after_vote(poll.cohort, poll.voted)
        record = {
            **results_and_traffic(round, poll, closed, quality),
            **events(round, poll, closed, self.mailbox.awaited(poll.round), self.attendance, returned),
            "seconds": self.clock() - began,
            "seconds_training": voted - began,
        }
        return Snapshot(round.number, closed.state, {}, record)

    def _gather(self) -> None:
        """Wait until all clients are online, or the minimum is and no other came for a grace; at most the deadline."""
        began, rules, clients = self.clock(), self.config.flower, len(self.federation.owned)
        here, since = -1, began
        while True:
            self.attendance.look()
            online, now = len(self.attendance.online), self.clock()
            here, since = (online, now) if online != here else (here, since)
            self._say(f"{online} of {clients} clients are here")
            enough = online >= math.ceil(rules.minimum * clients - 1e-9) and now - since >= rules.grace
            if self.attendance.complete() or enough or now - began >= rules.deadline:
                return
            self.sleep(rules.poll)

    def _vote(self, poll: Poll, round: ServerRound, began: float) -> None:
        """Ask the cohort and hear its replies until the round closes.

        Clients that were away are asked like all others, but the round waits for them only for a grace after the last
        ballot.
        """
        heard_at = began
        while True:
            self.attendance.look()
            self.asker.ask(poll, round, self.attendance.online)
            heard = self._hear(poll, round)
            self.attendance.look()
            waited, heard_at = self.clock() - began, self.clock() if heard else heard_at
            awaited = self.mailbox.awaited(poll.round) | (poll.askable() & self.attendance.online.keys())
            probed = self.attendance.away if self.clock() - heard_at >= self.config.flower.grace else set()
            if poll.closes(waited, awaited - probed):
                return
            self._wait_for_minimum(poll, waited, awaited)
            if not heard:
                self.sleep(self.config.flower.poll)

    def _hear(self, poll: Poll, round: ServerRound) -> bool:
        return hear(self.mailbox, poll, round.reader, self.asker, self.attendance)

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

    def _say(self, text: str) -> None:
        """Log a sentence, unless it was the last one."""
        if text != self._last_said:
            self.log("waiting", text)
            self._last_said = text


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
