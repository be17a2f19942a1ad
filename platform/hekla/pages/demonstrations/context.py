"""The template context of demonstration pages, shared by the full page and its live parts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.demonstrations import catalogue, selectors
from hekla.apps.demonstrations.catalogue import Demonstration
from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.job_history import history
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import JobPhase, PodPhase
from hekla.pages.jobs import context
from hekla.pages.jobs.context import TaskStrip

_TIMELINE_KINDS = ("JobSubmitted", "JobPhaseChanged", "JobUnschedulable", "PodEvicted")


@dataclass(frozen=True, slots=True)
class JobView:
    """One job of a run. `nodes`: the nodes of its newest attempts, with the number of pods on each."""

    job: Job
    strips: Sequence[TaskStrip]
    least: int
    running: int
    done: int
    evictions: int
    actions: tuple[str, ...]
    nodes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class JobTimelineEntry:
    """An entry of the timeline, with its job."""

    job: Job
    line: history.TimelineEntry


def detail(name: str, user: User) -> dict[str, Any]:
    """Everything about a demonstration and its newest run. Raises NotFound."""
    demonstration = catalogue.get(name)
    run = selectors.latest(name, user)
    views = job_views(run) if run else []
    return {
        "demonstration": demonstration,
        "run": run,
        "views": views,
        "timeline": timeline([view.job for view in views]),
        "coming": len(demonstration.acts) - len(views) if run and run.ended_at is None else 0,
        "as_announced": as_announced(demonstration, views),
    }


def job_views(run: DemoRun) -> list[JobView]:
    """The current views of the jobs of a run."""
    found = selectors.jobs_of(run)
    pods: dict[int, list[Pod]] = {job.pk: [] for job in found}
    for pod in jobs.pods_of(list(pods)):
        pods[pod.job_id].append(pod)
    return [_view(job, pods[job.pk]) for job in found]


def _view(job: Job, pods: Sequence[Pod]) -> JobView:
    current = list({(pod.task, pod.index): pod for pod in pods}.values())
    phases = Counter(pod.phase for pod in current)
    evicted = [pod for pod in pods if pod.evicted]
    return JobView(
        job=job,
        strips=context.strips(job, current),
        least=job.spec.get("min_available", job.replicas),
        running=phases[PodPhase.RUNNING],
        done=phases[PodPhase.SUCCEEDED],
        evictions=len(evicted),
        actions=tuple(sorted({pod.stop_reason for pod in evicted})),
        nodes=tuple(sorted(Counter(pod.node for pod in current if pod.node).items())),
    )


def timeline(about: Sequence[Job]) -> list[JobTimelineEntry]:
    """The newest events of these jobs in one timeline, newest first."""
    events = {job: jobs.newest_of_kinds(job, _TIMELINE_KINDS) for job in about}
    entries = [JobTimelineEntry(job, line) for job, own in events.items() for line in history.lines(own)]
    return sorted(entries, key=lambda entry: -entry.line.number)


def as_announced(demonstration: Demonstration, views: Sequence[JobView]) -> bool:
    """Whether the run matches its announcement: all jobs completed, with its evictions, action, order and nodes."""
    return (
        len(views) == len(demonstration.acts)
        and all(view.job.phase == JobPhase.COMPLETED for view in views)
        and [view.evictions for view in views] == [act.evicted for act in demonstration.acts]
        and {action for view in views for action in view.actions} <= {demonstration.action}
        and (not demonstration.one_by_one or _one_by_one(views))
        and (not demonstration.one_node or all(len(view.nodes) == 1 for view in views))
    )


def _one_by_one(views: Sequence[JobView]) -> bool:
    """Whether each job began only after the one before it ended."""
    times = [(view.job.started_at, view.job.finished_at) for view in views]
    return all(end is not None and begin is not None and end <= begin for (_, end), (begin, _) in pairwise(times))
