"""The queue of a job: the one that it names, or the queue of a federated queue that can start it first.

The engine estimates the start in each cluster. This package does not import it: `settings.ASK_CLUSTERS` names the
function that asks it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import Actor
from hekla.apps.jobs.models import Job, Placement
from hekla.apps.jobs.services.telling import tell
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.routing import Feasibility, PlacementCandidate, rank_candidates

Ask = Callable[..., list[PlacementCandidate]]


class AllClosed(Refused):
    """No queue of the federated queue accepts submissions now."""

    code = "queue_closed"


@dataclass(frozen=True, slots=True)
class Route:
    """The queue of a job. `federated`: the federated queue that the job named, if any. `candidates`: the estimates of
    its clusters, best first.
    """

    queue: Queue
    federated: FederatedQueue | None = None
    candidates: tuple[PlacementCandidate, ...] = ()


def through(federated: FederatedQueue, spec: JobSpec, *, tenant: Tenant, user: User, is_timed: bool = True) -> Route:
    """The best route through a federated queue. Raises AllClosed.

    `is_timed`: also estimate how long the job would wait, which takes longest.
    """
    members = queues.members_open_to(federated, tenant)
    candidates = rank_candidates(prospects(spec, members, tenant=tenant, user=user, is_timed=is_timed))
    best = next((one for one in candidates if one.chance is not Feasibility.CLOSED), None)
    if best is None:
        raise AllClosed(_("All queues of %(name)s are closed. Ask a queue admin.") % {"name": federated}, "queue")
    return Route(next(queue for queue in members if queue.name == best.queue), federated, tuple(candidates))


def prospects(
    spec: JobSpec, members: Sequence[Queue], *, tenant: Tenant, user: User, is_timed: bool = True
) -> list[PlacementCandidate]:
    """The estimate for the job in each of these queues; how long it would wait, if `is_timed`.

    Clusters that cannot accept it, or are not reachable, are not asked.
    """
    known = {queue.pk: _without_asking(queue) for queue in members}
    ask: Ask = import_string(settings.ASK_CLUSTERS)
    answers = ask(
        spec, [queue for queue in members if known[queue.pk] is None], tenant=tenant, user=user, is_timed=is_timed
    )
    return [*(one for one in known.values() if one), *answers]


def _without_asking(queue: Queue) -> PlacementCandidate | None:
    if not queue.is_open:
        chance = Feasibility.CLOSED
    elif queue.cluster.is_paused:
        chance = Feasibility.PAUSED
    elif not getattr(getattr(queue.cluster, "health", None), "is_reachable", True):
        chance = Feasibility.AWAY
    elif queue.cluster.leads_jobs:
        chance = Feasibility.DELEGATED
    else:
        return None
    return PlacementCandidate(queue.cluster.name, queue.name, chance)


def note(job: Job, route: Route, *, actor: Actor, now: datetime) -> None:
    """Record where a new job was placed, and why; nothing if it did not name a federated queue."""
    if route.federated is None:
        return
    candidates = tuple(one.as_data() for one in route.candidates)
    Placement.objects.create(job=job, federated_queue=route.federated, candidates=list(candidates), at=now)
    event = events.JobPlaced(
        federated_queue=route.federated.name,
        queue=route.queue.name,
        cluster=route.queue.cluster.name,
        candidates=candidates,
    )
    tell(job, event, actor=actor, now=now)
