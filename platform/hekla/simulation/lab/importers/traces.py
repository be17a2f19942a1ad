"""What all importers need: bounded reading of tables, times, and the workload of the jobs that were read."""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.translation import gettext_noop, translate
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, QueueSpec
from hekla.simulation.lab.workload import (
    MAX_JOBS,
    MAX_PODS,
    SECOND,
    EvictionEffect,
    History,
    RecordedBind,
    Workload,
    WorkloadJob,
    WorkloadNote,
    in_order,
)

MAX_BYTES = 1_000_000_000
"""Of a file."""
MAX_LINE = 100_000
MAX_PODS_OF_A_JOB = 10_000
_MAX_QUEUES, _NAME_LENGTH, _MAX_CARDS = 1000, 120, 100_000
_FIRST_YEAR, _LAST_YEAR = 1971, 9000
_NO_NAME = re.compile(r"[\x00-\x1f\x7f]")
GPU = "nvidia.com/gpu"


class InvalidTrace(ValueError):
    """The file is not in this format, or too large."""


class NothingFits(InvalidTrace):
    """No job of the file fits on the nodes."""


@dataclass(slots=True)
class TraceNotes:
    """What was assumed while a file was read, with how often.

    `line`: the line, or number of the job, that is being read. `first_unreadable`: the first that was left out; 0:
    none.
    """

    counts: dict[WorkloadNote, int] = field(default_factory=dict)
    line: int = 0
    first_unreadable: int = 0

    def add(self, note: WorkloadNote, count: int = 1) -> None:
        """Count something."""
        self.counts[note] = self.counts.get(note, 0) + count
        if note is WorkloadNote.UNREADABLE and not self.first_unreadable:
            self.first_unreadable = self.line


@dataclass(frozen=True, slots=True)
class TraceAttempt:
    """One attempt of a whole job: when it began and ended (None: it runs still), and on which nodes, if known."""

    start: int
    end: int | None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a file: `pods` equal pods, each with this request. `ended`: when it ended without any attempt."""

    name: str
    queue: str
    tenant: str
    person: str
    submitted: int
    pods: int
    request: Resources
    attempts: tuple[TraceAttempt, ...] = ()
    ended: int | None = None
    priority: int = 0


def table(file: BinaryIO, delimiter: str, needed: Sequence[str], notes: TraceNotes) -> Iterator[Mapping[str, str]]:
    """The rows of a table with a header. Rows of another width are counted and left out. Raises InvalidTrace."""
    rows = csv.reader(
        _text(file), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    )
    try:
        heads = [name.strip() for name in next(rows, [])]
        if missing := [name for name in needed if name not in heads]:
            raise InvalidTrace(translate("Line 1: the file has no column {name}.", name=missing[0]))
        for row in rows:
            notes.line = rows.line_num
            if len(row) == len(heads):
                yield dict(zip(heads, row, strict=True))
            elif row:
                notes.add(WorkloadNote.UNREADABLE)
    except csv.Error as error:
        sentence = translate("Line {n}: this is no table: {error}", n=rows.line_num, error=error)
        raise InvalidTrace(sentence) from error


def _text(file: BinaryIO) -> Iterator[str]:
    """The lines of a file, bounded in length and number."""
    left, number = MAX_BYTES, 0
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
    while line := text.readline(MAX_LINE):
        left, number = left - len(line), number + 1
        if left < 0:
            raise InvalidTrace(translate("The file is too large."))
        if len(line) == MAX_LINE:
            raise InvalidTrace(translate("Line {n} is too long.", n=number))
        yield line.replace("\0", "")


def name_of(text: object) -> str:
    """A name of a file as a short line."""
    return _NO_NAME.sub(" ", str(text)).strip()[:_NAME_LENGTH]


def time_of(text: str, notes: TraceNotes) -> int | None:
    """A time of a file in milliseconds; None if it is missing. Without a zone it is read as UTC. Raises ValueError."""
    text = text.strip()
    if text.lower() in ("", "unknown", "none", "null", "nan", "n/a", "-"):
        return None
    found = datetime.fromisoformat(text.replace("/", "-"))
    if found.tzinfo is None:
        notes.add(WorkloadNote.NO_ZONE)
        found = found.replace(tzinfo=UTC)
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise ValueError(text[:40])
    return round(found.timestamp() * SECOND)


def number_of(text: str, most: float = _MAX_CARDS) -> float:
    """A number of a file from 0 to `most`. Raises ValueError."""
    found = float(text or 0)
    if not (math.isfinite(found) and 0 <= found <= most):
        raise ValueError(text[:40])
    return found


def per_pod(pods: int, *, cards: float, cores: float, memory: float) -> Resources:
    """The request of each of these pods, of amounts of the whole job: cards, cores and bytes."""
    amounts = {GPU: cards * 1000 / pods, "cpu": cores * 1000 / pods, "memory": memory / pods}
    return Resources({name: float(round(amount)) for name, amount in amounts.items()} | {"pods": 1.0})


def trace_workload(jobs: Sequence[TraceJob], nodes: Sequence[NodeSpec], notes: TraceNotes) -> Workload:
    """The workload of these jobs on these nodes; the period is that of their submissions. Raises InvalidTrace."""
    queues = checked_queues(jobs, notes)
    fitting = _fitting(jobs, nodes)
    if not fitting:
        raise NothingFits(translate("No job of the file fits on these nodes."))
    if len(fitting) < len(jobs):
        notes.add(WorkloadNote.TOO_LARGE, len(jobs) - len(fitting))
    notes.counts |= {WorkloadNote.NODES_FROM_FILE: 1, WorkloadNote.EQUAL_PODS: 1}
    made = in_order([_job(f"{at}", job, notes) for at, job in enumerate(fitting)])
    starts, ends = made[0].submitted, max(job.submitted for job in made) + SECOND
    state = ClusterState(tuple(nodes), tuple(QueueSpec(name) for name in queues), ())
    return Workload(starts, ends, state, made, (), notes.counts)


def checked_queues(jobs: Sequence[TraceJob], notes: TraceNotes) -> list[str]:
    """The queues of the jobs of a file. Raises InvalidTrace if it has no jobs, or too many of something."""
    if not jobs and notes.first_unreadable:
        sentence = gettext_noop("No job of the file can be read. The first problem is in line {n}.")
        raise InvalidTrace(translate(sentence, n=notes.first_unreadable))
    if not jobs:
        raise InvalidTrace(translate("The file has no job that can be read."))
    if len(jobs) > MAX_JOBS or sum(job.pods for job in jobs) > MAX_PODS:
        sentence = gettext_noop("The file has more than {jobs} jobs or {pods} pods.")
        raise InvalidTrace(translate(sentence, jobs=MAX_JOBS, pods=MAX_PODS))
    queues = dict.fromkeys(job.queue for job in jobs)
    if len(queues) > _MAX_QUEUES:
        raise InvalidTrace(translate("The file has more than {n} queues.", n=_MAX_QUEUES))
    return [*queues]


def too_many_jobs() -> InvalidTrace:
    """The error of a file with more than `MAX_JOBS` jobs."""
    return InvalidTrace(translate("The file has more than {n} jobs.", n=MAX_JOBS))


def _fitting(jobs: Sequence[TraceJob], nodes: Sequence[NodeSpec]) -> list[TraceJob]:
    """The jobs with a node that is large enough. Most of them request the same as others."""
    known: dict[tuple[tuple[str, float], ...], bool] = {}
    found = []
    for job in jobs:
        key = tuple(job.request.items())
        if key not in known:
            known[key] = any(_fits(job.request, node.allocatable) for node in nodes)
        if known[key]:
            found.append(job)
    return found


def _fits(request: Resources, room: Resources) -> bool:
    return all(amount <= room.amount(name) for name, amount in request.items())


def _job(uid: str, job: TraceJob, notes: TraceNotes) -> WorkloadJob:
    group = PodGroupSpec(
        uid=uid,
        name=job.name,
        queue=job.queue,
        namespace=job.tenant,
        owner=job.person,
        priority=job.priority,
        min_available=job.pods,
        min_task_member={"worker": job.pods},
        min_resources=job.request * job.pods,
        phase=GangPhase.PENDING,
        created_at=job.submitted / SECOND,
        pods=tuple(
            PodSpec(f"{uid}/{at}", f"{job.name}-{at}", "worker", job.request, priority=job.priority)
            for at in range(job.pods)
        ),
    )
    attempts = [one for one in job.attempts if _is_possible(one, notes)]
    runs = tuple(None if one.end is None else one.end - one.start for one in attempts)
    return WorkloadJob(
        group,
        job.submitted,
        (runs,) * job.pods,
        job.tenant,
        job.person,
        leaves=None if attempts else job.ended,
        on_eviction=EvictionEffect.JOB,
        history=_history(job, attempts),
    )


def _is_possible(attempt: TraceAttempt, notes: TraceNotes) -> bool:
    if attempt.end is None:
        notes.add(WorkloadNote.NO_END)
    elif attempt.end < attempt.start:
        notes.add(WorkloadNote.ENDED_BEFORE_START)
        return False
    return True


def _history(job: TraceJob, attempts: Sequence[TraceAttempt]) -> History:
    if not attempts:
        return History()
    binds = [
        RecordedBind(pod, number, one.nodes[pod], one.start, one.end)
        for number, one in enumerate(attempts)
        if len(one.nodes) == job.pods
        for pod in range(job.pods)
    ]
    started = max(job.submitted, attempts[0].start)
    end = attempts[-1].end
    return History(started, None if end is None else max(started, end), tuple(binds))
