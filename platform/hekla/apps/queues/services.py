"""Changes to queues."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError

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
    """A new open queue. Raises Refused when the name is taken, Invalid when its settings contradict each other."""
    try:
        with unit_of_work():
            queue = Queue(cluster=cluster, name=name, created_at=now, changed_at=now, **(values or {}))
            checks.require(queue)
            queue.save(force_insert=True)
            queue.tenants.set(tenants)
            _tell(queue, events.QueueCreated(name=name, cluster=cluster.name), actor, now)
    except IntegrityError as error:
        raise Refused(f"A queue is called “{name}” already; choose another name.", "name") from error
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


def set_open(queue: Queue, *, is_open: bool, by: User, actor: Actor, now: datetime) -> None:
    """Open a queue for submissions, or close it. Jobs that are in stay in."""
    if queue.is_open == is_open:
        return
    with unit_of_work():
        queue.is_open = is_open
        _save(queue, by, now)
        event = events.QueueOpened(name=queue.name) if is_open else events.QueueClosed(name=queue.name)
        _tell(queue, event, actor, now)


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
    record(event, subject=f"queue:{queue.pk}", topics=[f"cluster:{queue.cluster_id}"], actor=actor, at=now)
