"""Audit of the rows: rebuilds every job and pod from the event log alone, and compares.

After any kill, restart or race, the log and the rows must agree. Both are read from one snapshot of the database. Each
finding is a sentence that stays the same in the next audit if nothing changed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import JobPhase, PodPhase

Ref = tuple[str, int, int]
_ONCE = ("JobSubmitted", "JobDeleted", "JobCleanedUp")
_OF_JOBS = ("phase", "gang_phase", "version", "retry_count", "finished_at")
_OF_PODS = ("phase", "node", "exit_code", "started_at", "finished_at")


@dataclass
class ReplayedPod:
    """A pod according to the log."""

    phase: str = "pending"
    node: str = ""
    exit_code: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass
class ReplayedJob:
    """A job according to the log; `wrong`: contradictions within the log."""

    phase: str = "pending"
    gang_phase: str = "pending"
    version: int = 1
    retry_count: int = 0
    finished_at: datetime | None = None
    pods: dict[Ref, ReplayedPod] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def findings() -> list[str]:
    """All contradictions, each as a sentence; empty if log and rows agree."""
    is_within = connection.in_atomic_block
    with transaction.atomic():
        if not is_within:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return list(_find())


def _find() -> Iterator[str]:
    if lost := event_log.lost():
        yield f"The log: {lost} numbers stand for no event, and nobody purged them."
    stories = tell()
    for job in Job.objects.prefetch_related("pods").order_by("pk").iterator(chunk_size=500):
        story = stories.pop(f"job:{job.uid}", ReplayedJob())
        for sentence in (*story.wrong, *_compare(job, story), *_twice(job)):
            yield f"Job {job.name} ({job.uid}): {sentence}"
    yield from (f"The log tells of {subject}, and there is no such row." for subject in stories)


def tell() -> dict[str, ReplayedJob]:
    """All jobs by subject, rebuilt from the log alone."""
    stories: dict[str, ReplayedJob] = {}
    for event in LoggedEvent.objects.filter(subject__startswith="job:").order_by("id").iterator(chunk_size=2000):
        story = stories.setdefault(event.subject, ReplayedJob())
        story.kinds[event.kind] += 1
        teller = _TELLERS.get(event.kind)
        if teller:
            teller(story, event.payload, event)
    return stories


# The log against itself.


def _job_phase(story: ReplayedJob, facts: Mapping[str, Any], event: LoggedEvent) -> None:
    if facts["old"] != story.phase:
        story.wrong.append(f"event {event.pk} takes it from {facts['old']} to {facts['new']}; it was {story.phase}.")
    story.phase, story.version, story.retry_count = facts["new"], facts["version"], facts["retry_count"]
    story.finished_at = event.at if JobPhase(story.phase).is_final else None


def _gang_phase(story: ReplayedJob, facts: Mapping[str, Any], event: LoggedEvent) -> None:
    if facts["old"] != story.gang_phase:
        story.wrong.append(f"event {event.pk} takes its gang from {facts['old']}; that was {story.gang_phase}.")
    story.gang_phase = facts["new"]


def _created(story: ReplayedJob, facts: Mapping[str, Any], event: LoggedEvent) -> None:
    if _ref(facts) in story.pods:
        story.wrong.append(f"event {event.pk} creates {_name(_ref(facts))} once more.")
    story.pods[_ref(facts)] = ReplayedPod()


def _bound(story: ReplayedJob, facts: Mapping[str, Any], event: LoggedEvent) -> None:
    ref, pod = _ref(facts), _pod(story, _ref(facts), event)
    if pod.phase != PodPhase.PENDING:
        story.wrong.append(f"event {event.pk} binds {_name(ref)}, which was {pod.phase}.")
    others = [o for o, other in story.pods.items() if o[:2] == ref[:2] and o != ref and PodPhase(other.phase).is_placed]
    if others:
        story.wrong.append(f"event {event.pk} binds {_name(ref)} while {_name(others[0])} still has its place.")
    pod.phase, pod.node = PodPhase.BOUND, facts["node"]


def _pod_phase(story: ReplayedJob, facts: Mapping[str, Any], event: LoggedEvent) -> None:
    ref, pod = _ref(facts), _pod(story, _ref(facts), event)
    if facts["old"] != pod.phase:
        story.wrong.append(
            f"event {event.pk} takes {_name(ref)} from {facts['old']} to {facts['new']}; it was {pod.phase}."
        )
    pod.phase, pod.exit_code = facts["new"], facts["exit_code"]
    if pod.phase == PodPhase.PENDING:
        pod.node = ""
    if pod.phase == PodPhase.RUNNING:
        pod.started_at = pod.started_at or event.at
    if PodPhase(pod.phase).is_final:
        pod.finished_at = event.at


def _pod(story: ReplayedJob, ref: Ref, event: LoggedEvent) -> ReplayedPod:
    if ref not in story.pods:
        story.wrong.append(f"event {event.pk} is about {_name(ref)}, which was never created.")
    return story.pods.setdefault(ref, ReplayedPod())


def _check_cluster_change(story: ReplayedJob, _facts: Mapping[str, Any], event: LoggedEvent) -> None:
    """The pods of the old cluster no longer exist; none of them may have had a node."""
    if any(pod.phase != PodPhase.PENDING for pod in story.pods.values()):
        story.wrong.append(f"event {event.pk} moves it while a pod of it has a place, or had one.")
    story.pods.clear()


_TELLERS: dict[str, Callable[[ReplayedJob, Mapping[str, Any], LoggedEvent], None]] = {
    "JobPhaseChanged": _job_phase,
    "GangPhaseChanged": _gang_phase,
    "JobReassigned": _check_cluster_change,
    "PodCreated": _created,
    "PodBound": _bound,
    "PodPhaseChanged": _pod_phase,
}


# The log against the rows.


def _compare(job: Job, story: ReplayedJob) -> Iterator[str]:
    yield from _differences("it", job, story, _OF_JOBS)
    expected = (1, int(job.deleted_at is not None), int(job.cleaned_at is not None))
    for kind, count in zip(_ONCE, expected, strict=True):
        if story.kinds[kind] != count:
            yield f"by its row the log should hold {count} {kind}, and it holds {story.kinds[kind]}."
    stories = dict(story.pods)
    for pod in job.pods.all():
        ref = (pod.task, pod.index, pod.attempt)
        if ref in stories:
            yield from _differences(_name(ref), pod, stories.pop(ref), _OF_PODS)
        else:
            yield f"{_name(ref)} has a row, and the log does not know it."
    yield from (f"the log tells of {_name(ref)}, which has no row." for ref in stories)


def _differences(what: str, row: Job | Pod, story: ReplayedJob | ReplayedPod, fields: tuple[str, ...]) -> Iterator[str]:
    for name in fields:
        of_row, of_log = getattr(row, name), getattr(story, name)
        if of_row != of_log:
            yield f"{name} of {what} is {_text(of_row)} in the row, {_text(of_log)} by the log."


def _twice(job: Job) -> Iterator[str]:
    placed = Counter((pod.task, pod.index) for pod in job.pods.all() if PodPhase(pod.phase).is_placed)
    for (task, index), count in placed.items():
        if count > 1:
            yield f"{task}-{index} has {count} places at one time."


def _ref(facts: Mapping[str, Any]) -> Ref:
    return facts["task"], facts["index"], facts["attempt"]


def _name(ref: Ref) -> str:
    task, index, attempt = ref
    return f"{task}-{index} (attempt {attempt})"


def _text(value: object) -> str:
    return "nothing" if value is None or value == "" else str(value)
