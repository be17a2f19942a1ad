"""Which jobs hold the resources that a pending job lacks, as far as the reader may see them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.resources import Resources
from hekla.engine.model import PodGroupSpec, PodStatus
from hekla.simulation.simulator import Simulator

HOLDING = frozenset({PodStatus.BOUND, PodStatus.RUNNING, PodStatus.RELEASING})

_Sharer = Callable[[PodGroupSpec, Job], bool]


@dataclass(frozen=True, slots=True)
class Holders:
    """What jobs hold of scarce resources: those of the reader's tenants by name, most first; the rest together."""

    known: tuple[tuple[str, Resources], ...] = ()
    unknown: int = 0
    unknown_amount: Resources = field(default_factory=Resources)


NONE = Holders()


def find(simulator: Simulator, row: Job, reasons: Iterable[Mapping[str, Any]], user: User) -> Holders:
    """The holders for the first reason that names scarce resources; none if no job holds any."""
    for reason in reasons:
        scarce = labels.scarce_resources(Resources.parse(reason["need"]), Resources.parse(reason["have"]))
        shares_with = _SHARERS.get(reason["code"])
        if scarce and shares_with:
            return _visible(simulator, _held(simulator, row, shares_with, scarce), user)
    return NONE


def _held(simulator: Simulator, row: Job, shares_with: _Sharer, names: list[str]) -> dict[str, Resources]:
    """What each job that shares with this one holds of the resources, by uid."""
    held = {}
    for uid in simulator.started():
        job = simulator.job(uid)
        if job is None or not shares_with(job, row):
            continue
        requests = [pod.request for pod in job.pods if pod.status in HOLDING]
        held[uid] = Resources({name: sum(request.amount(name) for request in requests) for name in names})
    return {uid: amount for uid, amount in held.items() if amount}


def _visible(simulator: Simulator, held: Mapping[str, Resources], user: User) -> Holders:
    rows = {uid: row for uid in held if (row := simulator.row(uid))}
    tenants = set(tenancy.visible_to(user).values_list("pk", flat=True)) if rows else set()
    known = [(row.name, held[uid]) for uid, row in rows.items() if row.tenant_id in tenants]
    hidden = [held[uid] for uid, row in rows.items() if row.tenant_id not in tenants]
    known.sort(key=lambda one: (-max(one[1].values()), one[0]))
    return Holders(tuple(known), len(hidden), sum(hidden, Resources()))


def _same_queue(job: PodGroupSpec, row: Job) -> bool:
    return job.queue == row.queue.name


def _same_tenant(job: PodGroupSpec, row: Job) -> bool:
    return job.namespace == str(row.tenant_id)


_SHARERS: dict[str, _Sharer] = {
    "cluster_is_full": lambda _job, _row: True,
    "no_node_fits": lambda _job, _row: True,
    "queue_is_full": _same_queue,
    "queue_share_used": _same_queue,
    "queue_overused": _same_queue,
    "tenant_quota": _same_tenant,
    "member_quota": lambda job, row: _same_tenant(job, row) and job.owner == str(row.owner_id),
}
"""By the code of a reason: whether a job uses the same share as the pending one."""
