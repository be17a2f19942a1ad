"""Changes to queues."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.queues import checks
from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Refused


def create(
    *,
    cluster: Cluster,
    name: str,
    values: Mapping[str, Any] | None = None,
    tenants: Iterable[Tenant] = (),
    allow_unknown_resources: bool = False,
    actor: Actor,
    now: datetime,
) -> Queue:
    """A new queue, open unless `values` set another state.

    Raises Forbidden, Refused (name taken), Invalid if its settings contradict each other or name an unknown resource.
    """
    accounts.require_actor(actor, Permission.MANAGE_QUEUES)
    try:
        with unit_of_work():
            queue = Queue(cluster=cluster, name=name, created_at=now, changed_at=now, **(values or {}))
            queue.state_at = None if queue.is_open else now
            _require_free(name, FederatedQueue)
            checks.require(queue, allow_unknown_resources=allow_unknown_resources)
            queue.save(force_insert=True)
            queue.tenants.set(tenants)
            _tell(queue, events.QueueCreated(name=name, cluster=cluster.name), actor, now)
    except IntegrityError as error:
        raise _name_conflict(name) from error
    return queue


def change(
    queue: Queue,
    values: Mapping[str, Any],
    *,
    tenants: Iterable[Tenant] | None = None,
    allow_unknown_resources: bool = False,
    by: User,
    actor: Actor,
    now: datetime,
) -> None:
    """Change a queue's fields, and its tenants if given. Raises Forbidden, Invalid."""
    accounts.require_actor(actor, Permission.MANAGE_QUEUES)
    with unit_of_work():
        list(
            Queue.objects.select_for_update().filter(cluster=queue.cluster_id).order_by("pk")
        )  # two concurrent edits must not form a cycle
        changes.lock(queue)
        changed = changes.apply(queue, {name: value for name, value in values.items() if name != "parent"})
        if "parent" in values:
            changed |= _set_parent(queue, values["parent"])
        checks.require(queue, allow_unknown_resources=allow_unknown_resources)
        queue.changed_at, queue.changed_by = now, by
        queue.save(update_fields=[*changed, "changed_at", "changed_by"])
        if tenants is not None:
            changed |= _set_tenants(queue, list(tenants))
        _tell(queue, events.QueueChanged(name=queue.name, changes=changed), actor, now)


def set_state(queue: Queue, state: str, *, by: User, actor: Actor, now: datetime) -> None:
    """Open a queue, close it (its jobs continue), or drain it (its waiting jobs are not admitted).

    Raises Forbidden.
    """
    accounts.require_actor(actor, Permission.MANAGE_QUEUES)
    with unit_of_work():
        changes.lock(queue)
        if queue.state == state:
            return
        queue.state, queue.state_at, queue.state_by = state, now, by
        queue.save(update_fields=["state", "state_at", "state_by"])
        _tell(queue, _CHANGED_TO[Queue.State(state)](name=queue.name), actor, now)


_CHANGED_TO = {
    Queue.State.OPEN: events.QueueOpened,
    Queue.State.DRAINING: events.QueueDrained,
    Queue.State.CLOSED: events.QueueClosed,
}


def create_federated(
    *,
    name: str,
    description: str = "",
    members: Iterable[Queue],
    tenants: Iterable[Tenant] = (),
    actor: Actor,
    now: datetime,
) -> FederatedQueue:
    """A new federated queue. Raises Forbidden, Refused (name taken), Invalid if the queues cannot be combined."""
    accounts.require_actor(actor, Permission.MANAGE_QUEUES)
    queues = list(members)
    checks.require_members(queues)
    try:
        with unit_of_work():
            _require_free(name, Queue)
            federated = FederatedQueue.objects.create(
                name=name, description=description, created_at=now, changed_at=now
            )
            federated.members.set(queues)
            federated.tenants.set(tenants)
            _record_federated(
                federated,
                events.FederatedQueueCreated(name=name, queues=sorted(str(one) for one in queues)),
                actor,
                now,
            )
    except IntegrityError as error:
        raise _name_conflict(name) from error
    return federated


def change_federated(
    federated: FederatedQueue,
    *,
    description: str | None = None,
    members: Iterable[Queue] | None = None,
    tenants: Iterable[Tenant] | None = None,
    by: User,
    actor: Actor,
    now: datetime,
) -> None:
    """Change the given fields. Waiting jobs can then move only to the new members. Raises Forbidden, Invalid."""
    accounts.require_actor(actor, Permission.MANAGE_QUEUES)
    with unit_of_work():
        changes.lock(federated)
        changed = {} if description is None else changes.apply(federated, {"description": description})
        if members is not None:
            queues = list(members)
            checks.require_members(queues)
            changed |= _set_names("queues", federated.members, queues)
        if tenants is not None:
            changed |= _set_names("tenants", federated.tenants, list(tenants))
        federated.changed_at, federated.changed_by = now, by
        federated.save(update_fields=[*changed.keys() & {"description"}, "changed_at", "changed_by"])
        _record_federated(federated, events.FederatedQueueChanged(name=federated.name, changes=changed), actor, now)


def delete_federated(federated: FederatedQueue, *, actor: Actor, now: datetime) -> None:
    """Delete a federated queue; its queues, and the jobs in them, stay. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_QUEUES)
    with unit_of_work():
        changes.lock(federated)
        _record_federated(federated, events.FederatedQueueDeleted(name=federated.name), actor, now)
        FederatedQueue.objects.get(pk=federated.pk).delete()


def _require_free(name: str, other: type[Queue] | type[FederatedQueue]) -> None:
    """Raises Refused if the name is in use: queues and federated queues share their names."""
    if other.objects.filter(name=name).exists():
        raise _name_conflict(name)


def _name_conflict(name: str) -> Refused:
    return Refused(_("A queue “%s” exists already. Choose another name.") % name, "name")


def _set_names(field: str, manager: Any, wanted: list[Any]) -> dict[str, events.FieldChange]:  # noqa: ANN401  (a related manager)
    key = "slug" if field == "tenants" else "name"
    old, new = sorted(manager.values_list(key, flat=True)), sorted(getattr(one, key) for one in wanted)
    manager.set(wanted)
    return {} if old == new else {field: events.FieldChange(old=list(old), new=list(new))}


def _record_federated(federated: FederatedQueue, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"federated-queue:{federated.pk}", topics=["queues"], actor=actor, at=now)


def _set_parent(queue: Queue, parent: Queue | None) -> dict[str, events.FieldChange]:
    old, queue.parent = queue.parent, parent
    if old == parent:
        return {}
    return {"parent": events.FieldChange(old=old.name if old else "", new=parent.name if parent else "")}


def _set_tenants(queue: Queue, tenants: list[Tenant]) -> dict[str, events.FieldChange]:
    return _set_names("tenants", queue.tenants, tenants)


def _tell(queue: Queue, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"queue:{queue.pk}", topics=["queues", f"cluster:{queue.cluster_id}"], actor=actor, at=now)
