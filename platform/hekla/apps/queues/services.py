"""Changes to queues."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.outbox import changes
from hekla.apps.outbox.services import Actor, record, unit_of_work
from hekla.apps.queues import checks
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Refused


def create(
    *,
    cluster: Cluster,
    name: str,
    values: Mapping[str, Any] | None = None,
    tenants: Iterable[Tenant] = (),
    actor: Actor,
    now: datetime,
) -> Queue:
    """A new queue, which is open unless its values say otherwise.

    Raises Refused when the name is taken, Invalid when its settings contradict each other.
    """
    try:
        with unit_of_work():
            queue = Queue(cluster=cluster, name=name, created_at=now, changed_at=now, **(values or {}))
            queue.state_at = None if queue.is_open else now
            checks.require(queue)
            queue.save(force_insert=True)
            queue.tenants.set(tenants)
            _tell(queue, events.QueueCreated(name=name, cluster=cluster.name), actor, now)
    except IntegrityError as error:
        raise Refused(_("A queue is called “%s” already; choose another name.") % name, "name") from error
    return queue


def change(
    queue: Queue,
    values: Mapping[str, Any],
    *,
    tenants: Iterable[Tenant] | None = None,
    by: User,
    actor: Actor,
    now: datetime,
) -> None:
    """Change a queue's fields, and who may submit where `tenants` is given. Raises Invalid."""
    with unit_of_work():
        list(
            Queue.objects.select_for_update().filter(cluster=queue.cluster_id).order_by("pk")
        )  # no circle of two edits
        changed = changes.apply(queue, {name: value for name, value in values.items() if name != "parent"})
        if "parent" in values:
            changed |= _set_parent(queue, values["parent"])
        checks.require(queue)
        if tenants is not None:
            changed |= _set_tenants(queue, list(tenants))
        _save(queue, by, now)
        _tell(queue, events.QueueChanged(name=queue.name, changes=changed), actor, now)


def set_state(queue: Queue, state: str, *, by: User, actor: Actor, now: datetime) -> None:
    """Open a queue for submissions, close it (jobs that are in go on), or drain it (those that wait stay out)."""
    if queue.state == state:
        return
    with unit_of_work():
        queue.state, queue.state_at, queue.state_by = state, now, by
        queue.save()
        _tell(queue, _CHANGED_TO[Queue.State(state)](name=queue.name), actor, now)


_CHANGED_TO = {
    Queue.State.OPEN: events.QueueOpened,
    Queue.State.DRAINING: events.QueueDrained,
    Queue.State.CLOSED: events.QueueClosed,
}


def _set_parent(queue: Queue, parent: Queue | None) -> dict[str, events.Change]:
    old, queue.parent = queue.parent, parent
    if old == parent:
        return {}
    return {"parent": events.Change(old=old.name if old else "", new=parent.name if parent else "")}


def _set_tenants(queue: Queue, tenants: list[Tenant]) -> dict[str, events.Change]:
    old = sorted(queue.tenants.values_list("slug", flat=True))
    new = sorted(tenant.slug for tenant in tenants)
    queue.tenants.set(tenants)
    return {} if old == new else {"tenants": events.Change(old=list(old), new=list(new))}


def _save(queue: Queue, by: User, now: datetime) -> None:
    queue.changed_at, queue.changed_by = now, by
    queue.save()


def _tell(queue: Queue, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"queue:{queue.pk}", topics=["queues", f"cluster:{queue.cluster_id}"], actor=actor, at=now)
