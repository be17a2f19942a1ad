"""What a recorded cycle did, action by action, and how it judged one job: found by running the engine on it again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.cycle_records.models import CycleRecord
from hekla.domain.errors import NotFound, Refused
from hekla.engine.cycle_trace import PodExamination, VictimVerdict
from hekla.engine.decisions import Bind, Decisions, Eviction
from hekla.engine.model import ClusterState, PodGroupSpec, PodStatus
from hekla.scheduling import cycle_records
from hekla.scheduling.cycle_document import RecordedCycle
from hekla.scheduling.cycle_replay import CycleReplay, replay
from hekla.scheduling.reasons import as_data, distinct

MAX_PODS = 30_000
"""Larger cycles take the engine many seconds: they are replayed from their file, on the command line."""
MAX_JOBS = 200
"""Jobs listed of an action, and waiting jobs."""
Reasons = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class CycleJob:
    """A job of a recorded cycle, as it was then. `pending`: how many of its pods had no node."""

    uid: str
    name: str
    queue: str
    pods: int
    pending: int
    priority: int


@dataclass(frozen=True, slots=True)
class JobStep:
    """What an action did to a job: whether it admitted it, and how many pods it tried to place, placed, promised room
    that is being released, and evicted.
    """

    job: CycleJob
    is_admitted: bool
    tried: int
    placed: int
    promised: int
    evicted: int


@dataclass(frozen=True, slots=True)
class ActionReport:
    """An action with the jobs that it considered, `MAX_JOBS` at most; `hidden`: how many more there were."""

    name: str
    steps: tuple[JobStep, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits after the cycle, with the reasons."""

    job: CycleJob
    reasons: Reasons


@dataclass(frozen=True, slots=True)
class CycleReport:
    """A replayed cycle. `waiting`: `MAX_JOBS` at most; `hidden`: how many more wait."""

    replay: CycleReplay
    actions: tuple[ActionReport, ...]
    waiting: tuple[WaitingJob, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class NamedEviction:
    """An eviction with the names of the victim and of the job that gains."""

    eviction: Eviction
    pod: str
    job: str
    gainer: str


@dataclass(frozen=True, slots=True)
class CycleJobReport:
    """How a cycle judged one job. `binds`: node by name of the pod; `evictions`: for the job, and of its pods."""

    replay: CycleReplay
    job: CycleJob
    steps: tuple[tuple[str, JobStep], ...]
    reasons: Reasons
    binds: Mapping[str, str]
    promised: Mapping[str, str]
    evictions: tuple[NamedEviction, ...]
    examinations: tuple[PodExamination, ...]
    victims: tuple[VictimVerdict, ...]


def report_of(row: CycleRecord) -> CycleReport:
    """Replay this cycle. Raises NotFound, Refused if it is too large or damaged, and Invalid for its policy."""
    _refuse_large(row)
    with cycle_records.one_at_a_time():
        return _report(cycle_records.load(row))


def job_report_of(row: CycleRecord, uid: str) -> CycleJobReport:
    """Replay this cycle and explain a job. Raises as `report_of`."""
    _refuse_large(row)
    with cycle_records.one_at_a_time():
        return _job_report(cycle_records.load(row), uid)


def _refuse_large(row: CycleRecord) -> None:
    if row.pods > MAX_PODS:
        raise Refused(_("This cycle is too large to replay here. Download it and run `hekla decisions replay FILE`."))


def _report(cycle: RecordedCycle) -> CycleReport:
    found = replay(cycle)
    jobs = {job.uid: job for job in cycle.state.jobs}
    waiting = [uid for uid in found.decisions.reasons if uid in jobs]
    return CycleReport(
        found,
        tuple(_actions(found, jobs)),
        tuple(WaitingJob(_job(jobs[uid]), _reasons(found.decisions, uid)) for uid in waiting[:MAX_JOBS]),
        max(0, len(waiting) - MAX_JOBS),
    )


def _job_report(cycle: RecordedCycle, uid: str) -> CycleJobReport:
    group = next((job for job in cycle.state.jobs if job.uid == uid), None)
    if group is None:
        raise NotFound(_("This job was not part of the cycle."))
    found = replay(cycle, traced=[uid])
    names, decided = {pod.uid: pod.name for pod in group.pods}, found.decisions
    binds: list[Bind] = [one for one in decided.binds if one.job == uid]
    steps = ((action, _step(group, counts)) for (action, job), counts in found.trace.steps.items() if job == uid)
    return CycleJobReport(
        found,
        _job(group),
        tuple(steps),
        _reasons(decided, uid),
        {names[one.pod]: one.node for one in binds},
        {names[pod]: node for pod, node in decided.pipelined.items() if pod in names},
        tuple(_evictions(cycle.state, [one for one in decided.evictions if uid in (one.job, one.for_job)])),
        tuple(found.trace.examinations.get(uid, ())),
        tuple(found.trace.victims.get(uid, ())),
    )


def _actions(found: CycleReplay, jobs: Mapping[str, PodGroupSpec]) -> Iterator[ActionReport]:
    """The actions of the policy in order, also those that did nothing."""
    by_action: dict[str, list[JobStep]] = {}
    for (action, uid), counts in found.trace.steps.items():
        by_action.setdefault(action, []).append(_step(jobs[uid], counts))
    for name in dict.fromkeys((*found.policy.actions, *by_action)):
        steps = by_action.get(name, [])
        yield ActionReport(name, tuple(steps[:MAX_JOBS]), max(0, len(steps) - MAX_JOBS))


def _step(group: PodGroupSpec, counts: Mapping[str, int]) -> JobStep:
    numbers = (counts.get(name, 0) for name in ("tried", "placed", "promised", "evicted"))
    return JobStep(_job(group), counts.get("admitted", 0) > 0, *numbers)


def _job(group: PodGroupSpec) -> CycleJob:
    pending = sum(pod.status is PodStatus.PENDING for pod in group.pods)
    return CycleJob(group.uid, group.name, group.queue, len(group.pods), pending, group.priority)


def _reasons(decided: Decisions, uid: str) -> Reasons:
    return tuple(map(as_data, distinct(decided.reasons.get(uid, ()))))


def _evictions(state: ClusterState, evictions: Sequence[Eviction]) -> Iterator[NamedEviction]:
    jobs = {job.uid: job for job in state.jobs} if evictions else {}
    for one in evictions:
        victim, gainer = jobs[one.job], jobs.get(one.for_job)
        name = next(pod.name for pod in victim.pods if pod.uid == one.pod)
        yield NamedEviction(one, name, victim.name, gainer.name if gainer else "")
