"""Which jobs hold the resources that a pending job lacks, as far as the reader may see them, and until when.

Admitted jobs that hold nothing yet also keep later jobs from admission: they wait for the same resources.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import PodGroupSpec, PodStatus
from hekla.simulation.runtimes import RuntimeAssumption, RunTimes
from hekla.simulation.simulator import Simulator, started_at

HOLDING = frozenset({PodStatus.BOUND, PodStatus.RUNNING, PodStatus.RELEASING})

MOST_NAMED = 3
"""Sentences name so many holders, and count the others."""
_Sharer = Callable[[PodGroupSpec, Job], bool]


@dataclass(frozen=True, slots=True)
class Holder:
    """What a job holds of scarce resources. `job`: the key of its row. `ends_at`: its expected end, at the latest its
    time limit; None: unknown, or the job is not among the first `MOST_NAMED`. `is_limit`: only the time limit is known.
    """

    job: int
    name: str
    amount: Resources
    ends_at: datetime | None = None
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Holders:
    """The holders of scarce resources: those of the reader's tenants by name, most first; the rest together."""

    known: tuple[Holder, ...] = ()
    unknown: int = 0
    unknown_amount: Resources = field(default_factory=Resources)


NONE = Holders()


def held_for(simulator: Simulator, row: Job, reasons: Iterable[Mapping[str, Any]]) -> dict[str, Resources]:
    """What each job, by uid, holds of what this one lacks, by the first reason that names scarce resources."""
    for reason in reasons:
        scarce, code = labels.scarce_resources(reason), reason["code"]
        if not scarce or not (code in _SHARERS or code == _PARENT):
            continue
        shares_with = _below(simulator, reason.get("queue", "")) if code == _PARENT else _SHARERS[code]
        nodes = simulator.usable_nodes(str(row.pk)) if code == _NODES else None
        return _held(simulator, row, shares_with, scarce, nodes)
    return {}


def admitted_before(simulator: Simulator, row: Job, reasons: Iterable[Mapping[str, Any]]) -> dict[str, Resources]:
    """What each admitted job that holds nothing yet, by uid, waits for, if that is why this one is not admitted."""
    for reason in reasons:
        if reason["code"] == _CLUSTER and (scarce := labels.scarce_resources(reason)):
            others = {*simulator.placed(), str(row.pk)}
            claims = {
                job.uid: Resources({name: job.min_resources.amount(name) for name in scarce})
                for job in simulator.jobs()
                if job.phase is GangPhase.INQUEUE and job.min_resources and job.uid not in others
            }
            return {uid: amount for uid, amount in claims.items() if amount}
    return {}


def visible(simulator: Simulator, held: Mapping[str, Resources], user: User, run_times: RunTimes) -> Holders:
    """The jobs, by uid, with their amounts, as this person may see them."""
    rows = {uid: found for uid in held if (found := simulator.row(uid))}
    tenants = tenancy.visible_ids(user) if rows else frozenset[int]()
    named = [(uid, one) for uid, one in rows.items() if one.tenant_id in tenants]
    hidden = [held[uid] for uid, one in rows.items() if one.tenant_id not in tenants]
    named.sort(key=lambda pair: (-max(held[pair[0]].values()), pair[1].name))
    first = [_holder(simulator, uid, one, held[uid], run_times) for uid, one in named[:MOST_NAMED]]
    others = [Holder(one.pk, one.name, held[uid]) for uid, one in named[MOST_NAMED:]]
    return Holders((*first, *others), len(hidden), total(hidden))


def total(amounts: Iterable[Resources]) -> Resources:
    """The sum of these amounts. There may be thousands, so no sum is an object but the last."""
    found = defaultdict[str, float](float)
    for one in amounts:
        for name, amount in one.items():
            found[name] += amount
    return Resources(found)


def _holder(simulator: Simulator, uid: str, row: Job, amount: Resources, run_times: RunTimes) -> Holder:
    job = simulator.job(uid)
    began = started_at(job) if job else None
    if began is None:
        return Holder(row.pk, row.name, amount)
    ends_at = run_times.end(row, began, simulator.now, RuntimeAssumption.USUAL)
    return Holder(row.pk, row.name, amount, ends_at, is_limit=not run_times.cases(row))


def _held(
    simulator: Simulator, row: Job, shares_with: _Sharer, names: list[str], nodes: frozenset[str] | None
) -> dict[str, Resources]:
    """What each job that shares with this one holds of the resources, by uid. `nodes`: only what it holds there."""
    held = {}
    for uid in simulator.placed():
        job = simulator.job(uid)
        if job is None or uid == str(row.pk) or not shares_with(job, row):
            continue
        requests = [pod.request for pod in job.pods if pod.status in HOLDING and (not nodes or pod.node in nodes)]
        held[uid] = Resources({name: sum(_amount(request, name) for request in requests) for name in names})
    return {uid: amount for uid, amount in held.items() if amount}


def _amount(request: Resources, name: str) -> float:
    """How much a pod with this request holds. Each is at least one pod."""
    return request.amount(name) or float(name == "pods")


def _same_queue(job: PodGroupSpec, row: Job) -> bool:
    return job.queue == row.queue.name


def _same_tenant(job: PodGroupSpec, row: Job) -> bool:
    return job.namespace == str(row.tenant_id)


def _below(simulator: Simulator, queue: str) -> _Sharer:
    """Whether a job is in a queue below this one."""
    names = simulator.queues_below(queue)
    return lambda job, _row: job.queue in names


_CLUSTER, _NODES, _PARENT = "cluster_is_full", "no_node_fits", "parent_queue_is_full"
_SHARERS: dict[str, _Sharer] = {
    _CLUSTER: lambda _job, _row: True,
    _NODES: lambda _job, _row: True,
    "queue_is_full": _same_queue,
    "queue_share_used": _same_queue,
    "queue_overused": _same_queue,
    "tenant_quota": _same_tenant,
    "namespace_quota": _same_tenant,
    "member_quota": lambda job, row: _same_tenant(job, row) and job.owner == str(row.owner_id),
}
"""By the code of a reason: whether a job uses the same share as the pending one."""
