"""Which pods held something at an instant of a run, and which instant shows a run best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hekla.apps.demonstrations.scenes import Demonstration
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Pod
from hekla.domain.resources import Resources
from hekla.pages.demonstrations.job_views import JobView


@dataclass(frozen=True, slots=True)
class HeldPod:
    """A pod on a node. `number`: of its job in the run. `cards`: as in its row."""

    number: int
    node: str
    request: Resources
    cards: Sequence[Mapping[str, Any]]


def held_at(views: Sequence[JobView], at: datetime | None) -> list[HeldPod]:
    """The pods that held something at this instant (None: that hold something now), in the order of their binds."""
    found = [(view, pod) for view in views for pod in view.pods if _holds(pod, at)]
    requests = {(view.number, task.name): task.request for view, _pod in found for task in spec_of(view.job).tasks}
    found.sort(key=lambda one: (one[1].bound_at or one[1].created_at, one[1].pk))
    return [HeldPod(view.number, pod.node, requests[view.number, pod.task], pod.cards) for view, pod in found]


def _holds(pod: Pod, at: datetime | None) -> bool:
    if at is None:
        return bool(pod.node) and not pod.is_final
    is_bound = bool(pod.node) and pod.bound_at is not None and pod.bound_at <= at
    return is_bound and (pod.finished_at is None or pod.finished_at > at)


def best(demonstration: Demonstration, views: Sequence[JobView]) -> datetime | None:
    """The instant to draw of a run that has ended; None if no pod ever had a node.

    It is the first with the most jobs on nodes, and of these the one with the most pods, unless the demonstration is
    about who is next when the first job has ended.
    """
    binds = sorted({pod.bound_at for view in views for pod in view.pods if pod.node and pod.bound_at})
    ends = [view.job.finished_at for view in views if view.job.finished_at]
    later = [at for at in binds if at >= min(ends)] if demonstration.after_first and ends else []
    return later[0] if later else max(binds, key=lambda at: _fullness(views, at), default=None)


def _fullness(views: Sequence[JobView], at: datetime) -> tuple[int, int]:
    held = [sum(_holds(pod, at) for pod in view.pods) for view in views]
    return sum(map(bool, held)), sum(held)
