"""Events of jobs and pods in the event log."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache

from django.db.models import QuerySet

from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job, Pod

MOST_OF_COURSE = 400
MOST_EVICTIONS = 500
MOST_OF_TIMELINE = 200
_COURSE = ("JobUnschedulable", "JobPhaseChanged", "GangPhaseChanged")

_SUBJECT = Parameter("subject", LoggedEvent._meta.get_field("subject"))
_COURSE_OF = CompiledQuery(lambda: event_log.about(_SUBJECT).filter(kind__in=_COURSE).order_by("-id")[:MOST_OF_COURSE])


@cache
def _newest(most: int) -> CompiledQuery[LoggedEvent]:
    return CompiledQuery(lambda: event_log.about(_SUBJECT).order_by("-id")[:most])


def history(job: Job) -> QuerySet[LoggedEvent]:
    """All events of the job, oldest first."""
    return event_log.about(f"job:{job.uid}")


def pod_history(pod: Pod) -> list[LoggedEvent]:
    """The newest events of one attempt, oldest first; at most `MOST_OF_TIMELINE`."""
    facts = {"payload__task": pod.task, "payload__index": pod.index, "payload__attempt": pod.attempt}
    return list(history(pod.job).filter(**facts).order_by("-id")[:MOST_OF_TIMELINE])[::-1]


def newest_of_kinds(job: Job, kinds: Collection[str]) -> list[LoggedEvent]:
    """The newest events of the job of these kinds, oldest first; at most `MOST_OF_TIMELINE`."""
    return list(history(job).filter(kind__in=kinds).order_by("-id")[:MOST_OF_TIMELINE])[::-1]


def course(job: Job) -> list[LoggedEvent]:
    """The job's changes of phase and reasons to wait, oldest first: the newest events, at most `MOST_OF_COURSE`."""
    return _COURSE_OF.rows(subject=f"job:{job.uid}")[::-1]


def newest_events(job: Job, most: int) -> list[LoggedEvent]:
    """The newest events of the job, newest first, at most `most`: one of a few numbers."""
    return _newest(most).rows(subject=f"job:{job.uid}")


def evictions_of(job: Job) -> list[LoggedEvent]:
    """The newest evictions of its pods, newest first; at most `MOST_EVICTIONS`."""
    return list(history(job).filter(kind="PodEvicted").order_by("-id")[:MOST_EVICTIONS])


def evictions_for(job: Job) -> list[LoggedEvent]:
    """The newest evictions of other jobs' pods for this job, newest first; at most `MOST_EVICTIONS`."""
    return event_log.gains(str(job.uid), limit=MOST_EVICTIONS)


def waiting_since(jobs: Sequence[Job]) -> dict[int, datetime]:
    """When each job (by row id) began to wait: at its last change of phase, or else at its submission."""
    began = event_log.last_of_kind([f"job:{job.uid}" for job in jobs], "JobPhaseChanged")
    return {job.pk: began.get(f"job:{job.uid}", job.submitted_at) for job in jobs}
