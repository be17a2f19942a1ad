"""Records the cycles of a cluster that decided something, after their decisions were applied.

The engine's input is immutable, so a cycle is noted by reference while it runs, and written when the reconciliation is
done. Recording may use 2 % of a core. A whole record of a large cluster may exceed what is left of that, and the next
ones then wait: such cycles get a row without a document, which says so.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson

from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Cluster
from hekla.apps.cycle_records import services
from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.jobs.services.decisions import JobDecision
from hekla.domain.phases import GangPhase
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState
from hekla.engine.session import Call
from hekla.scheduling.column_codec import RecordTooLarge
from hekla.scheduling.cycle_document import BaseDocument, ExtenderReply, RecordedCycle, outcome_of, pack

log = logging.getLogger(__name__)
SHARE, MOST_SECONDS = 0.02, 2.0
"""The part of a core that recording may use, and how many seconds of CPU may be saved up."""
BASE_LIFETIME, MAX_FOLLOWERS, SMALL = timedelta(minutes=30), 200, 0.5
"""How long, for how many records, and up to which part of its size, records refer to a whole one."""
DELETE_EVERY = timedelta(minutes=10)
MAX_NOTED = 16
"""Cycles that wait to be written: a later step of the reconciliation may fail each time."""
MAX_ANSWERS, MAX_ANSWER_BYTES = 2000, 8_000_000
"""Of extenders in one cycle; they stay in memory until the cycle is written."""
_Limit, _Omission = CycleRecord.Limit, CycleRecord.Omission
_Trigger = CycleRecord.Trigger
EVENTS, TIME, FOLLOW_UP, LEADER = _Trigger.EVENTS, _Trigger.TIME, _Trigger.FOLLOW_UP, _Trigger.LEADER


class CpuBudget:
    """Seconds of CPU that may be used: they grow with time. Use may exceed what is left; then it must grow again."""

    def __init__(self) -> None:
        self._left, self._at = MOST_SECONDS, time.monotonic()

    def has_some(self) -> bool:
        """Whether anything is left."""
        now = time.monotonic()
        self._left, self._at = min(MOST_SECONDS, self._left + (now - self._at) * SHARE), now
        return self._left > 0

    def use(self, seconds: float) -> None:
        """Count what was used."""
        self._left -= seconds


class NotedAnswers:
    """Calls extenders and notes their answers: a replay does not call them. `answers`: None if there were too many."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.answers: list[ExtenderReply] | None = []
        self._bytes = 0

    def __call__(self, address: str, document: Mapping[str, Any], timeout: float) -> Any:  # noqa: ANN401
        try:
            answer = self._call(address, document, timeout)
        except Exception as error:
            self._note(False, str(error)[:200])
            raise
        self._note(True, answer)
        return answer

    def _note(self, is_answer: bool, answer: object) -> None:
        if self.answers is None:
            return
        self._bytes += _size(answer)
        if len(self.answers) < MAX_ANSWERS and self._bytes <= MAX_ANSWER_BYTES:
            self.answers.append((is_answer, answer))
        else:
            self.answers = None


def _size(answer: object) -> int:
    """In bytes as JSON; more than is allowed if it cannot be written."""
    try:
        return len(orjson.dumps(answer))
    except TypeError:
        return MAX_ANSWER_BYTES + 1


@dataclass(frozen=True, slots=True)
class EngineRun:
    """One cycle of the engine: its input and output. `answers`: of extenders; None if there were too many. `seconds`:
    how long it took; `considered`: jobs to decide on.
    """

    state: ClusterState
    policy: str
    now: datetime
    decided: Decisions
    answers: Sequence[ExtenderReply] | None = ()
    seconds: float = 0.0
    considered: int = 0


@dataclass(frozen=True, slots=True)
class NotedCycle:
    """A cycle to be recorded, and what of it was recorded for jobs."""

    run: EngineRun
    found: Sequence[JobDecision]
    trigger: CycleRecord.Trigger
    limit: str


@dataclass
class _Base:
    document: BaseDocument
    row: int
    size: int
    since: datetime
    followers: int = 0


@dataclass
class CycleRecorder:
    """The recorder of one cluster, for one lease."""

    budget: CpuBudget = field(default_factory=CpuBudget)
    _noted: list[NotedCycle] = field(default_factory=list)
    _base: _Base | None = None
    _promised: Mapping[str, str] = field(default_factory=dict)
    _deleted_at: datetime | None = None

    def note(
        self, run: EngineRun, found: Sequence[JobDecision], *, trigger: CycleRecord.Trigger, limit: str = ""
    ) -> None:
        """Note a cycle, if it decided something. `found`: the decisions that were recorded for jobs."""
        decided, promised = run.decided, self._promised
        self._promised = decided.pipelined
        is_new = any(one.gang_phase is GangPhase.INQUEUE or one.waiting is not None for one in found)
        if is_new or decided.binds or decided.evictions or decided.pipelined != promised:
            self._noted.append(NotedCycle(run, found, trigger, limit))
            del self._noted[:-MAX_NOTED]

    def write(self, cluster: Cluster, epoch: int, *, now: datetime) -> None:
        """Write the noted cycles, and delete old records now and then. Raises LeaseLost.

        Other errors are logged: scheduling goes on without records.
        """
        try:
            self._write_all(cluster, epoch, now)
        except leases.LeaseLost:
            raise
        except Exception:
            log.exception("cluster %s: its cycles cannot be recorded", cluster)

    def _write_all(self, cluster: Cluster, epoch: int, now: datetime) -> None:
        noted, self._noted = self._noted, []
        for one in noted:
            self._write(cluster, epoch, one)
        if self._deleted_at is None or now - self._deleted_at >= DELETE_EVERY:
            self._deleted_at = now
            services.delete_old(cluster.pk, epoch, now=now)

    def _write(self, cluster: Cluster, epoch: int, one: NotedCycle) -> None:
        started_at = time.thread_time()
        row = _row(cluster, one)
        data = None
        if not self.budget.has_some():
            row.omission = _Omission.CPU
        else:
            leases.renew(cluster.pk, epoch)  # a whole record of a large cluster takes seconds
            data = self._pack(cluster, one, row)
        used = time.thread_time() - started_at
        self.budget.use(used)
        row.recording_ms = used * 1000
        services.store(cluster.pk, epoch, row)
        self._keep_base(one, row, data)

    def _pack(self, cluster: Cluster, one: NotedCycle, row: CycleRecord) -> bytes | None:
        """The document of a cycle, stored in the row; None if there is none."""
        try:
            if one.run.answers is None:
                raise RecordTooLarge
            cycle = _recorded(one)
            base = self._usable_base(one.run.now)
            data = pack(cycle, base.document if base else None)
            if base and len(data) > base.size * SMALL:
                base, data = None, pack(cycle)
        except RecordTooLarge:
            row.omission = _Omission.SIZE
            return None
        except Exception as error:
            log.warning("cluster %s: a cycle cannot be recorded: %s: %s", cluster, type(error).__name__, error)
            row.omission = _Omission.ERROR
            return None
        if len(data) > services.MAX_RECORD_BYTES:
            row.omission = _Omission.SIZE
            return None
        row.base, row.data, row.size = base.row if base else None, data, len(data)
        return data

    def _usable_base(self, now: datetime) -> _Base | None:
        base = self._base
        is_usable = base is not None and base.followers < MAX_FOLLOWERS and now - base.since < BASE_LIFETIME
        return base if is_usable else None

    def _keep_base(self, one: NotedCycle, row: CycleRecord, data: bytes | None) -> None:
        if data is None:
            return
        if row.is_whole:
            self._base = _Base(BaseDocument(one.run.state), row.pk, len(data), one.run.now)
        elif self._base is not None:
            self._base.followers += 1


def _recorded(one: NotedCycle) -> RecordedCycle:
    run = one.run
    waiting = [str(decision.job_id) for decision in one.found if decision.waiting is not None]
    outcome = outcome_of(run.state, run.decided, waiting)
    return RecordedCycle(run.state, run.policy, run.now.timestamp(), outcome, tuple(run.answers or ()))


def _row(cluster: Cluster, one: NotedCycle) -> CycleRecord:
    run, decided = one.run, one.run.decided
    return CycleRecord(
        cluster=cluster,
        at=run.now,
        trigger=one.trigger,
        limit=one.limit,
        engine_ms=run.seconds * 1000,
        jobs=run.considered,
        pods=sum(len(job.pods) for job in run.state.jobs),
        admissions=sum(decision.gang_phase is GangPhase.INQUEUE for decision in one.found),
        binds=len(decided.binds),
        evictions=len(decided.evictions),
        pipelined=len(decided.pipelined),
        refusals=sum(decision.waiting is not None for decision in one.found),
    )


def limit_of(*, is_protected: bool, has_observed: bool) -> str:
    """Which decisions of a cycle are not applied."""
    if is_protected:
        return _Limit.BUDGET
    return "" if has_observed else _Limit.NO_OBSERVATION
