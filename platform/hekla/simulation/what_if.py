"""Predictions by the engine: what happens to a job if it is submitted, and why a job waits. Nothing is written."""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import quota
from hekla.apps.jobs.services.submission import new_row, route_for, too_large
from hekla.apps.priorities import selectors as priorities
from hekla.apps.priorities.selectors import Offering
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.quotas import selectors as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import Resources
from hekla.domain.spec_changes import SpecChange, SpecField
from hekla.lib import clock
from hekla.scheduling import reasons
from hekla.simulation import eta, holders, suggestions
from hekla.simulation.eta import Eta
from hekla.simulation.holders import NONE, Holders
from hekla.simulation.simulator import Simulator
from hekla.simulation.snapshot_cache import Outlook, looking_at
from hekla.simulation.suggestions import Changes, Suggestion, Trial

_DRAFT = -1
"""The row id of an unsubmitted job; every row in the database has a greater one."""

_TYPING_SECONDS, _TRYING_SECONDS, _WAITING_SECONDS = 0.06, 0.04, 5.0
"""While a person types: the time for the whole answer, and for trials within it. Otherwise: the time for trials."""


class StartVerdict(StrEnum):
    """Whether a job starts now, later, or never in the present state."""

    NOW = "now"
    WAITS = "waits"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job that the reader may see, and how many of its pods are meant."""

    uid: str
    name: str
    pods: int = 0


@dataclass(frozen=True, slots=True)
class OtherJobs:
    """Other jobs: those of the reader's tenants by name, the rest as a number."""

    known: tuple[KnownJob, ...] = ()
    unknown: int = 0
    unknown_pods: int = 0

    @property
    def pods(self) -> int:
        """The number of their pods."""
        return self.unknown_pods + sum(job.pods for job in self.known)


@dataclass(frozen=True, slots=True)
class WhatIfResult:
    """The prediction for a job.

    `nodes`: pods by node, if it starts; `evicts`: jobs whose pods would be evicted for it. `reasons`: why it waits;
    `holders`: the jobs that hold what it lacks; `admitted`: those that were admitted before and wait for it;
    `problems`: why it is too large, in sentences. `place`: its position among the `line` waiting jobs of its queue.
    `eta`: None if unknown; `after`: the jobs that must end before. `offers`: changes with which it would start now;
    `is_cut_short`: there was no time to try them, or not all.
    """

    verdict: StartVerdict
    nodes: dict[str, int] = field(default_factory=dict)
    evicts: OtherJobs = OtherJobs()
    reasons: tuple[dict[str, Any], ...] = ()
    holders: Holders = NONE
    admitted: Holders = NONE
    problems: tuple[str, ...] = ()
    place: int = 0
    line: int = 0
    eta: Eta | None = None
    after: OtherJobs = OtherJobs()
    offers: tuple[Suggestion, ...] = ()
    is_cut_short: bool = False


class NoForecast(Refused):
    """Volcano schedules the jobs of this cluster, so Hekla's predictions would be wrong."""

    code = "not_foretold"


def predict_draft(
    spec: JobSpec,
    *,
    tenant: Tenant,
    user: User,
    queue: Queue | None = None,
    with_eta: bool = True,
    with_offers: bool = True,
) -> WhatIfResult:
    """Predict a submission now. `queue`: its queue, if known.

    Raises as a submission does: NotFound, Forbidden, Refused, QuotaExceeded; and NotForetold.

    The start time takes longest to predict, and suggestions most of the rest: both are optional. Without the start
    time, a person is typing: few changes are tried, or none for a very large job.
    """
    began = time.monotonic()
    queue = queue or route_for(spec=spec, tenant=tenant, user=user).queue
    bounds = quotas.binding(tenant, user, is_dry=True)
    quota.require([spec], [queue], tenant=tenant, user=user, now=clock.now(), is_dry=True, bounds=bounds)
    require_predictions(queue.cluster)
    offer = priorities.offer_to(tenant)

    def row(spec: JobSpec, queue: Queue, outlook: Outlook) -> Job:
        return _draft(spec, offer, queue, user, outlook)

    with looking_at(queue.cluster, is_long=with_eta) as outlook:
        problems = _too_much(spec, offer, queue, user, outlook, bounds)
        started, draft = time.monotonic(), row(spec, queue, outlook)
        placement = _placement(draft)
        simulations = 1 if outlook.knows(("alone", *placement)) else 2  # here, and alone
        answer = _answer(outlook, draft, user, problems, with_eta=with_eta)
        took = (time.monotonic() - started) / simulations
        if answer.verdict is StartVerdict.NOW or not with_offers:
            return answer
        others = _open_queues(tenant, queue)
        trial = _trial_of_drafts(outlook, queue, others, row)
        near = [one.name for one in others if one.cluster_id == queue.cluster_id]
        takes = 0.0 if with_eta else outlook.once(("takes", *placement), lambda: took)  # as long as the first time
        found = suggestions.offers(spec, near, trial, until=_until(began, is_typing=not with_eta), takes=takes)
    offers = [*_elsewhere(spec, queue, others, row), *found.offers][: suggestions.MOST]
    return replace(answer, offers=tuple(offers), is_cut_short=found.is_cut_short)


def predict_start(
    spec: JobSpec, queue: Queue, *, tenant: Tenant, user: User, with_eta: bool
) -> tuple[WhatIfResult, float]:
    """Predict the job in this queue, without suggestions, and the load of its cluster.

    The load: how much of the resources that the job requests is in use, 1 for all. Raises NotForetold.
    """
    require_predictions(queue.cluster)
    offer = priorities.offer_to(tenant)
    with looking_at(queue.cluster, is_long=with_eta) as outlook:
        problems = _too_much(spec, offer, queue, user, outlook)
        row = _draft(spec, offer, queue, user, outlook)
        return _answer(outlook, row, user, problems, with_eta=with_eta), _load(spec, outlook)


def starts_here(job: Job) -> bool:
    """Whether a waiting job starts at the next reconcile of its own cluster."""
    with looking_at(job.cluster) as outlook:
        uid = str(job.pk)
        return uid in outlook.snapshot.jobs and outlook.simulator().settle(until=uid)


def predict_job(job: Job, *, user: User, with_offers: bool = True) -> WhatIfResult:
    """Why a job waits, until when, and optional suggestions. For a started job: where it runs.

    Raises NotForetold.
    """
    require_predictions(job.cluster)
    with looking_at(job.cluster, is_long=True) as outlook:
        row = outlook.snapshot.jobs.get(str(job.pk))
        if row is None:
            return WhatIfResult(StartVerdict.NEVER)
        answer = _answer(outlook, row, user, (), is_new=False)
        if answer.verdict is StartVerdict.NOW or not with_offers:
            return answer
        spec, others = spec_of(row), _open_queues(job.tenant, job.queue)
        offer = priorities.offer_to(job.tenant)

        def draft(spec: JobSpec, queue: Queue, outlook: Outlook) -> Job:
            return _draft(spec, offer, queue, user, outlook)

        anew = _trial_of_drafts(outlook, job.queue, others, draft)

        def trial(changed: JobSpec, changes: Changes) -> int | None:
            if any(not change.is_of_size for change in changes):
                return anew(changed, changes)
            return evicted_for(outlook.simulator(), resized(row, changed))

        near = [one.name for one in others if one.cluster_id == job.cluster_id]
        found = suggestions.offers(spec, near, trial, until=_until(0.0, is_typing=False))
    offers = [*_elsewhere(spec, job.queue, others, draft), *found.offers][: suggestions.MOST]
    return replace(answer, offers=tuple(offers), is_cut_short=found.is_cut_short)


def require_predictions(cluster: Cluster) -> None:
    """Raises NoForecast for clusters that Volcano schedules."""
    if cluster.leads_jobs:
        raise NoForecast(_("Volcano schedules this cluster. Start times cannot be predicted."))


def _too_much(
    spec: JobSpec, offer: Offering, queue: Queue, user: User, outlook: Outlook, bounds: Sequence[Quota] | None = None
) -> tuple[str, ...]:
    """Why the job could never be admitted, in sentences. `bounds`: the quotas, if already read."""
    sizes = [node.allocatable for node in outlook.snapshot.state.nodes]
    problems = [
        *offer.problems(spec),
        *too_large(spec, queue, sizes),
        *quota.never_fitting(spec, tenant=offer.tenant, user=user, bounds=bounds),
    ]
    return tuple(problem.message for problem in problems)


def _load(spec: JobSpec, outlook: Outlook) -> float:
    state = outlook.snapshot.state
    held = [task.request for job in state.jobs for task in job.pods if task.status in holders.HOLDING]
    parts = [0.0]
    for name in spec.minimum_resources():
        whole = sum(node.allocatable.amount(name) for node in state.nodes)
        parts.append(sum(request.amount(name) for request in held) / whole if whole else 0.0)
    return max(parts)


def _until(began: float, *, is_typing: bool) -> float:
    """The deadline for trials, on the monotonic clock."""
    now = time.monotonic()
    return min(began + _TYPING_SECONDS, now + _TRYING_SECONDS) if is_typing else now + _WAITING_SECONDS


RowOf = Callable[[JobSpec, Queue, Outlook], Job]


@dataclass(frozen=True, slots=True)
class _Obstacles:
    """Why a job waits, whoever asks. `held`, `admitted`: what other jobs, by uid, hold of what it lacks, or wait for.

    `place`, `line`: as of `WhatIfResult`.
    """

    held: Mapping[str, Resources]
    admitted: Mapping[str, Resources]
    place: int
    line: int


def _answer(
    outlook: Outlook, row: Job, user: User, problems: tuple[str, ...], *, is_new: bool = True, with_eta: bool = True
) -> WhatIfResult:
    uid, placement = str(row.pk), _placement(row)
    simulator, is_started = (
        (outlook.simulator(), False) if problems else _settled(outlook, row, placement, is_new=is_new)
    )
    if is_started:
        return WhatIfResult(StartVerdict.NOW, simulator.nodes(uid), _victims(simulator, uid, user))
    found = tuple(map(reasons.as_data, reasons.distinct(simulator.decided.reasons.get(uid, ()))))
    if problems or any(not reason["ever"] for reason in found) or not _fits_alone(outlook, row, placement):
        return WhatIfResult(StartVerdict.NEVER, reasons=found, problems=problems)
    why = outlook.once_lately(("why", uid, *placement), lambda: _obstacles(simulator, row, found))
    when = _when(outlook, row, is_new=is_new) if with_eta else None
    after = _others(simulator, Counter(when.after), user) if when else OtherJobs()
    return WhatIfResult(
        StartVerdict.WAITS,
        reasons=found,
        holders=holders.visible(simulator, why.held, user, outlook.run_times),
        admitted=holders.visible(simulator, why.admitted, user, outlook.run_times),
        place=why.place,
        line=why.line,
        eta=when,
        after=after,
    )


def _obstacles(simulator: Simulator, row: Job, reasons: Sequence[Mapping[str, Any]]) -> _Obstacles:
    held, admitted = (claims(simulator, row, reasons) for claims in (holders.held_for, holders.admitted_before))
    return _Obstacles(held, admitted, *_place(simulator, row))


def _settled(outlook: Outlook, row: Job, placement: tuple[Hashable, ...], *, is_new: bool) -> tuple[Simulator, bool]:
    """The cluster as it goes on with the job, only to be read, and whether the job starts."""
    uid = str(row.pk)

    def settled() -> tuple[Simulator, bool]:
        simulator = outlook.simulator()
        if is_new:
            simulator.put(row)
        return simulator, simulator.settle(until=uid)

    return outlook.once_lately((uid, *placement), settled)


def _draft(spec: JobSpec, offer: Offering, queue: Queue, user: User, outlook: Outlook) -> Job:
    """A row that is never saved."""
    row = new_row(spec, offer.requested(spec), tenant=offer.tenant, queue=queue, user=user, at=outlook.now)
    row.pk, row.spec_in_hand = _DRAFT, spec
    return row


def resized(row: Job, spec: JobSpec) -> Job:
    """The row as it would be with another size, never saved."""
    changed = copy(row)
    changed.spec_in_hand = spec
    return changed


def _fits_alone(outlook: Outlook, row: Job, placement: tuple[Hashable, ...]) -> bool:
    """Whether the job starts in an otherwise empty cluster. True if it needs to be near pods of other jobs."""
    if any(task.affinity.needs_other_pods for task in spec_of(row).tasks):
        return True

    def starts() -> bool:
        simulator = outlook.empty()
        simulator.put(row)
        return simulator.settle(until=str(row.pk))

    return outlook.once(("alone", *placement), starts)


def _placement(row: Job) -> tuple[Hashable, ...]:
    """All that decides where the job's pods fit: what a person types meanwhile into other fields changes nothing."""
    spec = spec_of(row)
    tasks = tuple(task.model_copy(update={"command": ()}) for task in spec.tasks)
    document = spec.model_copy(update={"name": "", "description": "", "files": {}, "tasks": tasks}).model_dump_json()
    digest = sha256(document.encode()).digest()  # results are kept for minutes, and a document may be large
    return row.tenant_id, row.owner_id, row.queue_id, row.priority, row.never_preempts, row.gang_phase, digest


def _when(outlook: Outlook, row: Job, *, is_new: bool) -> Eta | None:
    uid = str(row.pk)

    def simulator() -> Simulator:
        made = outlook.simulator()
        if is_new:
            made.put(row)
        return made

    return eta.ranges(simulator, [uid], outlook.run_times, outlook.now).get(uid)


def _place(simulator: Simulator, row: Job) -> tuple[int, int]:
    """Its position among the waiting jobs of its queue, and their number: by the queue's order, or priority and age."""
    uid = str(row.pk)
    if row.queue.job_order:
        waiting = set(simulator.waiting())
        order = [one for one in simulator.waiting_in(row.queue.name) if one in waiting]
        if uid in order:
            return order.index(uid) + 1, len(order)
    found = [(uid, row), *((one, other) for one in simulator.waiting() if one != uid and (other := simulator.row(one)))]
    line = [(-other.priority, one == str(_DRAFT), other.pk, one) for one, other in found if _same_queue(other, row)]
    return sorted(line).index((-row.priority, uid == str(_DRAFT), row.pk, uid)) + 1, len(line)


def _same_queue(one: Job, other: Job) -> bool:
    return one.queue_id == other.queue_id


def evicted_for(simulator: Simulator, row: Job) -> int | None:
    """How many pods would be evicted if this job started now; None if it would not start."""
    simulator.put(row)
    uid = str(row.pk)
    return sum(one.for_job == uid for one in simulator.evictions) if simulator.settle(until=uid) else None


def _trial_of_drafts(outlook: Outlook, queue: Queue, others: Sequence[Queue], row: RowOf) -> Trial:
    by_name = {one.name: one for one in (queue, *others)}

    def trial(spec: JobSpec, _changes: Changes) -> int | None:
        draft = row(spec, by_name.get(spec.queue, queue), outlook)
        return outlook.once(("trial", *_placement(draft)), lambda: evicted_for(outlook.simulator(), draft))

    return trial


def _open_queues(tenant: Tenant, own: Queue) -> list[Queue]:
    """Other queues that the tenant may use, in clusters that Hekla schedules; simulated only for a simulated queue."""
    usable = (one for one in queues.open_to(tenant) if one.is_open and one.pk != own.pk)
    found = (one for one in usable if not one.cluster.leads_jobs)
    return [one for one in found if one.cluster.is_simulated == own.cluster.is_simulated][: suggestions.MOST]


def _elsewhere(spec: JobSpec, own: Queue, others: Sequence[Queue], row: RowOf) -> list[Suggestion]:
    """Queues of other clusters in which it would start now; each cluster is queried by itself."""
    found: list[Suggestion] = []
    for queue in (one for one in others if one.cluster_id != own.cluster_id):
        change = SpecChange(SpecField.QUEUE, queue.name)
        with looking_at(queue.cluster) as outlook:
            evicted = evicted_for(outlook.simulator(), row(change.applied(spec), queue, outlook))
        found += [Suggestion((change,), evicted)] if evicted is not None else []
    return found


def _victims(simulator: Simulator, uid: str, user: User) -> OtherJobs:
    """The jobs whose pods are evicted for this job."""
    pods = {(one.job, one.pod) for one in simulator.evictions if one.for_job == uid}
    return _others(simulator, Counter(job for job, _task in pods), user)


def _others(simulator: Simulator, pods: Counter[str], user: User) -> OtherJobs:
    rows = {uid: simulator.row(uid) for uid in pods}
    tenants = tenancy.visible_ids(user) if pods else frozenset[int]()
    known = [
        KnownJob(str(row.uid), row.name, pods[uid]) for uid, row in rows.items() if row and row.tenant_id in tenants
    ]
    left = len(pods) - len(known)
    return OtherJobs(tuple(known), left, sum(pods.values()) - sum(job.pods for job in known))
