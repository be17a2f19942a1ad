"""The jobs of a run as its page shows them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hekla.apps.demonstrations import selectors
from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import PodPhase
from hekla.pages.jobs import context
from hekla.pages.jobs.context import TaskStrip


@dataclass(frozen=True, slots=True)
class JobView:
    """One job of a run. `number`: from 1. `nodes`: the nodes of its newest attempts, with the number of pods on each;
    `pods`: all attempts; `current`: the newest ones.
    """

    number: int
    job: Job
    strips: Sequence[TaskStrip]
    least: int
    running: int
    done: int
    evictions: int
    actions: tuple[str, ...]
    nodes: tuple[tuple[str, int], ...]
    pods: tuple[Pod, ...]
    current: tuple[Pod, ...]


def job_views(run: DemoRun) -> list[JobView]:
    """The current views of the jobs of a run."""
    found = selectors.jobs_of(run)
    pods: dict[int, list[Pod]] = {job.pk: [] for job in found}
    for pod in jobs.pods_of(list(pods)):
        pods[pod.job_id].append(pod)
    return [_view(number, job, pods[job.pk]) for number, job in enumerate(found, start=1)]


def _view(number: int, job: Job, pods: Sequence[Pod]) -> JobView:
    current = list({(pod.task, pod.index): pod for pod in pods}.values())
    phases = Counter(pod.phase for pod in current)
    evicted = [pod for pod in pods if pod.evicted]
    return JobView(
        number=number,
        job=job,
        strips=context.strips(job, current),
        least=job.spec.get("min_available", job.replicas),
        running=phases[PodPhase.RUNNING],
        done=phases[PodPhase.SUCCEEDED],
        evictions=len(evicted),
        actions=tuple(sorted({pod.stop_reason for pod in evicted})),
        nodes=tuple(sorted(Counter(pod.node for pod in current if pod.node).items())),
        pods=tuple(pods),
        current=tuple(current),
    )
