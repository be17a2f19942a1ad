"""The measured utilization of the cards of elastic tasks, and how many replicas it calls for.

Everything follows from stored samples, so a page finds what the controller finds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import inf

from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.selectors import TaskAllocation
from hekla.apps.quotas import selectors as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.sentences import together
from hekla.domain import scaling
from hekla.domain.autoscaling import MINUTE_SECONDS, Autoscaling, Recommendation, ScalingState, recommend
from hekla.domain.card_resources import card_counts
from hekla.domain.phases import JobPhase
from hekla.domain.resources import Resources, parse_quantity
from hekla.domain.task_spec import TaskSpec

_FULL = 100.0
_AFTER = {
    ScalingState.NO_FIGURES: gettext_lazy(
        "No utilization was measured in the last minute, so the number of replicas stays. The first minute of a pod "
        "does not count."
    ),
    ScalingState.ON_TARGET: gettext_lazy("The number of replicas fits."),
    ScalingState.GROWING: gettext_lazy("It grows to %(replicas)s replicas."),
    ScalingState.SHRINKING: gettext_lazy("It shrinks to %(replicas)s replicas."),
    ScalingState.AWAITING_REPLICAS: gettext_lazy("It can grow again when all replicas have run for a minute."),
    ScalingState.STABILIZING: gettext_lazy("It shrinks when fewer replicas were enough for %(seconds)s seconds."),
    ScalingState.AT_MAXIMUM: gettext_lazy("It has its maximum of replicas."),
    ScalingState.AT_MINIMUM: gettext_lazy("It has its minimum of replicas."),
    ScalingState.AT_LIMIT: gettext_lazy(
        "A quota or the limit of the queue has no room for another replica, so it does not grow."
    ),
}
_ONE_POD = {"pods": 1.0}


@dataclass(frozen=True, slots=True)
class TaskScaling:
    """A task with autoscaling: how far it may shrink (`least`), and what its utilization calls for.

    Without figures, and while the job does not run, nothing changes.
    """

    task: TaskSpec
    rule: Autoscaling
    least: int
    recommendation: Recommendation

    @property
    def sentence(self) -> str:
        """The utilization, and why the number of replicas changes or stays."""
        best = self.recommendation
        facts = {"replicas": best.replicas, "seconds": self.rule.stabilization_seconds}
        after = _AFTER[best.state] % facts
        if best.utilization is None:
            return after
        busy = {"busy": round(best.utilization), "target": self.rule.gpu_utilization}
        return together([_("Its GPUs are %(busy)s%% busy. The target is %(target)s%%.") % busy, after])


def of_job(job: Job, *, now: datetime) -> list[TaskScaling]:
    """The tasks of the job that autoscaling changes."""
    spec = spec_of(job)
    rules = [(task, task.autoscaling) for task in spec.tasks if task.autoscaling is not None]
    if not rules:
        return []
    minutes = _minutes(job, rules, now) if job.phase == JobPhase.RUNNING else {}
    found = []
    for task, rule in rules:
        least = scaling.least_replicas(spec, task)
        best = recommend(rule, task.replicas, least, minutes.get(task.name, []))
        found.append(TaskScaling(task, rule, least, _within_limits(job, task, best)))
    return found


def _minutes(job: Job, rules: list[tuple[TaskSpec, Autoscaling]], now: datetime) -> dict[str, list[list[float]]]:
    """By task and minute, newest first: the utilization of the cards of each measured replica, in per cent."""
    most = max(rule.minutes for _task, rule in rules)
    cards = {task.name: sum(card_counts(task.request).values()) for task, _rule in rules}
    since = now - timedelta(seconds=most * MINUTE_SECONDS)
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(most)])
    with connection.cursor() as cursor:
        cursor.execute(_BUSY, {"job": job.pk, "tasks": list(cards), "since": since, "now": now, "span": MINUTE_SECONDS})
        for name, age, busy in cursor.fetchall():
            found[name][min(age, most - 1)].append(min(_FULL * float(busy) / cards[name], _FULL))
    return found


def _within_limits(job: Job, task: TaskSpec, best: Recommendation) -> Recommendation:
    """What the quotas and the limit of the queue leave of a growth."""
    if best.state is not ScalingState.GROWING:
        return best
    room = _room(job, task.request + _ONE_POD)
    if room < 1:
        return replace(best, state=ScalingState.AT_LIMIT, replicas=task.replicas)
    return replace(best, replicas=int(min(best.replicas, task.replicas + room)))


def _room(job: Job, request: Resources) -> float:
    """How many more pods of this request fit into the quotas of the tenant and the owner, and the queue's limit."""
    held = jobs.held([job.cluster_id])
    capability = Resources.parse_limits(job.queue.capability or {})
    room = _more(capability, (one for one in held if one.job.queue_id == job.queue_id), request)
    for quota in quotas.binding(job.tenant, job.owner, is_dry=True):
        mine = [one for one in held if one.job.tenant_id == job.tenant_id]
        if quota.of != Quota.Of.TENANT:
            mine = [one for one in mine if one.job.owner_id == job.owner_id]
        limits = {name: parse_quantity(name, text) for name, text in quota.resources.items()}
        room = min(room, _more(limits, mine, request))
    return room


def _more(limits: Mapping[str, float], holders: Iterable[TaskAllocation], request: Resources) -> float:
    """How many more pods of this request the limits allow beside the holders."""
    used = sum(((one.request + _ONE_POD) * len(one.nodes) for one in holders), Resources())
    needs = {name: amount for name, amount in request.items() if amount and name in limits}
    return min(((limits[name] - used.amount(name)) // amount for name, amount in needs.items()), default=inf)


_BUSY = """
SELECT pod.task, floor(extract(epoch FROM %(now)s - at) / %(span)s)::int AS age, avg(gpu_thousandths) / 1000
FROM jobs_pod AS pod JOIN usage_sample ON usage_sample.pod_id = pod.id
WHERE pod.job_id = %(job)s AND pod.task = ANY(%(tasks)s)
    AND (pod.finished_at IS NULL OR pod.finished_at > %(since)s)
    AND at > %(since)s AND at <= %(now)s AND gpu_thousandths IS NOT NULL
    AND extract(epoch FROM %(now)s - pod.started_at)
        >= %(span)s * (floor(extract(epoch FROM %(now)s - at) / %(span)s) + 1)
GROUP BY pod.task, pod.index, age
"""
"""One row for each replica and minute; attempts of a replica are one. The minute in which a pod starts does not count:
its work is still being shared out."""
