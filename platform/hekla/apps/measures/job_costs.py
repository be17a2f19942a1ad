"""What a job will cost, from what it requests and how long it may run; and what a job has cost so far."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_low
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.job_history.labels import about
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.measures.holdings import requests_of
from hekla.apps.measures.models import GpuCapacity, GpuHolding
from hekla.apps.measures.pod_costs import PriceMeter, holding_costs
from hekla.apps.prices import selectors as prices
from hekla.apps.queues.models import Queue
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.prices import PricedResource, in_words

ENOUGH, _NEWEST, _ALIKE = 5, 2000, 200
"""How many earlier jobs an estimated run time needs; how many completed jobs of a cluster are looked through, and how
many of these of the person."""
_HOUR = timedelta(hours=1)
_ANY = ""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a job costs if it begins now, in millionths of the currency; `high` differs if the model of GPUs is open.

    `seconds`: how long it runs: the median of `cases` earlier jobs, or its limit if there are too few (`cases` 0).
    None: neither is known, and the costs are those of an hour.
    """

    low: int
    high: int
    currency: str
    seconds: int | None
    cases: int

    def sentence(self) -> str:
        """The estimate in words, with what it is from."""
        cost = in_words(self.high, self.currency)
        if self.low != self.high:
            cost = _("%(low)s to %(high)s") % {"low": in_words(self.low, self.currency), "high": cost}
        if self.seconds is None:
            return _("About %(cost)s for each hour. It has no time limit and no earlier runs.") % {"cost": cost}
        facts = {"cost": cost, "time": about(self.seconds), "cases": self.cases}
        if self.cases:
            return _("About %(cost)s for %(time)s, the usual run time of %(cases)d earlier jobs.") % facts
        return _("About %(cost)s for %(time)s, its time limit. It costs less if it ends sooner.") % facts


def estimate(spec: JobSpec, *, queue: Queue, owner_id: int, now: datetime) -> CostEstimate | None:
    """What a job would cost in this queue; None without prices."""
    if not prices.has_lists():
        return None
    known = _run_times(spec, queue, owner_id)
    seconds = median_low(known) if len(known) >= ENOUGH else None
    limit = spec.active_deadline_seconds
    cases = 0 if seconds is None or (limit is not None and limit < seconds) else len(known)
    seconds = limit if seconds is None or not cases else seconds
    end = now + (_HOUR if seconds is None else timedelta(seconds=seconds))
    meter = PriceMeter(now, end)
    if not meter.has_prices:
        return None
    costs = [_cost(meter, spec, queue, models, (now, end)) for models in _choices(spec, queue)]
    return CostEstimate(min(costs), max(costs), prices.currency(), seconds, cases)


def _run_times(spec: JobSpec, queue: Queue, owner_id: int) -> list[int]:
    """Seconds that completed jobs with the same commands and images took: of this person, kind and queue."""
    completed = Job.objects.filter(cluster_id=queue.cluster_id, phase=JobPhase.COMPLETED).order_by("-id")
    alike = Job.objects.filter(pk__in=list(completed.values_list("pk", flat=True)[:_NEWEST]), owner_id=owner_id)
    alike = alike.filter(kind=spec.kind, queue_id=queue.pk).order_by("-id")
    rows = alike.values_list("spec__tasks", "started_at", "finished_at")[:_ALIKE]  # specifications can be long
    wanted = _commands(spec.document().get("tasks", ()))
    return [
        round((ended - began).total_seconds())
        for tasks, began, ended in rows
        if began and ended and _commands(tasks or ()) == wanted
    ]


def _commands(tasks: Any) -> list[list[Any]]:  # noqa: ANN401  (of a JSON document)
    return [[task.get(name) or None for name in ("name", "command", "args", "image")] for task in tasks]


def _choices(spec: JobSpec, queue: Queue) -> Iterator[Mapping[str, str]]:
    """The models that GPUs of each requested resource may have: first all of the first model, then of the next ones."""
    names = {one.resource for task in spec.tasks for one in requests_of(task.request) if one.gpus}
    rows = GpuCapacity.objects.filter(cluster_id=queue.cluster_id, resource__in=names, end_at=None)
    models: dict[str, list[str]] = {name: [] for name in names}
    for resource, model in rows.order_by("model").values_list("resource", "model").distinct():
        models[resource].append(model)
    most = max((len(found) for found in models.values()), default=0)
    for number in range(max(most, 1)):
        yield {name: found[min(number, len(found) - 1)] if found else name for name, found in models.items()}


def _cost(
    meter: PriceMeter, spec: JobSpec, queue: Queue, models: Mapping[str, str], span: tuple[datetime, datetime]
) -> int:
    parts = [
        (what, amount * task.replicas)
        for task in spec.tasks
        for one in requests_of(task.request)
        for what, amount in (
            ((PricedResource.GPU, models.get(one.resource, _ANY)), one.gpus),
            ((PricedResource.CPU, _ANY), one.cpu),
            ((PricedResource.MEMORY, _ANY), one.memory),
        )
        if amount
    ]
    return sum(meter.cost(what, queue.pk, amount, span) for what, amount in parts)


@dataclass(frozen=True, slots=True)
class JobCost:
    """What a job has cost so far, in millionths of the currency, and what it will cost in all (None: it has ended)."""

    spent: int
    currency: str
    estimate: CostEstimate | None

    def sentences(self) -> list[str]:
        """Both in words."""
        found = [_("So far %s.") % in_words(self.spent, self.currency)] if self.spent else []
        return [*found, *([self.estimate.sentence()] if self.estimate else [])]


def cost_of(job: Job, *, now: datetime) -> JobCost | None:
    """The costs of a job; None without prices."""
    if not prices.has_lists():
        return None
    rows = list(GpuHolding.objects.filter(job_id=job.pk))
    coming = None
    if not job.is_final:
        coming = estimate(spec_of(job), queue=job.queue, owner_id=job.owner_id, now=job.started_at or now)
    return JobCost(sum(holding_costs(rows, now=now)), prices.currency(), coming)
