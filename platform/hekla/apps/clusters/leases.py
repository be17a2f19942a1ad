"""Who controls a cluster. A lease with a fencing epoch, so that a holder who slept too long can write nothing."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import CharField, Func, QuerySet, Value

from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.event_log.services import CONTROLLER, record, unit_of_work
from hekla.domain import events
from hekla.domain.errors import Refused

LIFETIME = timedelta(seconds=5)
FROZEN_AFTER = timedelta(seconds=20)
"""Who does nothing for so long in the middle of a transaction loses it: it would keep the lease from everybody."""
_NOBODY = ""


class LeaseLost(Refused):
    """Somebody else controls the cluster now; what this holder was about to write is void."""

    code = "lease_lost"


def take(cluster: Cluster, holder: str, *, now: datetime) -> int | None:
    """Take or renew the lease. Returns the epoch to write under, or None while somebody else holds it."""
    with unit_of_work():
        lease, _ = Lease.objects.get_or_create(cluster=cluster, defaults={"holder": _NOBODY, "expires_at": now})
        lease = _locked().get(pk=lease.pk)
        if lease.holder != holder and lease.expires_at > now:
            return None
        if lease.holder != holder:
            lease.holder, lease.epoch = holder, lease.epoch + 1
            event = events.LeaseAcquired(epoch=lease.epoch, holder=holder)
            record(event, subject=f"cluster:{cluster.pk}", actor=CONTROLLER, at=now)
        lease.expires_at = now + LIFETIME
        lease.save()
        return lease.epoch


def release(holder: str, *, now: datetime) -> None:
    """Give up every lease of this holder, so that the next one need not wait."""
    Lease.objects.filter(holder=holder).update(holder=_NOBODY, expires_at=now)


def revoke(cluster: Cluster, *, now: datetime) -> None:
    """Whoever controls it writes nothing more from now on. Anybody may take it, once this transaction is over."""
    with unit_of_work():
        Lease.objects.get_or_create(cluster=cluster, defaults={"holder": _NOBODY, "expires_at": now})
        lease = _locked().get(cluster=cluster)
        lease.holder, lease.epoch, lease.expires_at = _NOBODY, lease.epoch + 1, now
        lease.save()


def renew(cluster_id: int, epoch: int, *, now: datetime) -> None:
    """Hold on to it before something that no transaction covers. Raises LeaseLost, also where it was given up."""
    held = Lease.objects.filter(cluster_id=cluster_id, epoch=epoch).exclude(holder=_NOBODY)
    if not held.update(expires_at=now + LIFETIME):
        raise LeaseLost("Another controller has taken over this cluster.")


def of(cluster: Cluster) -> Lease | None:
    """The lease of a cluster; None: nobody ever took it."""
    return Lease.objects.filter(cluster=cluster).first()


def is_held(lease: Lease | None, *, now: datetime) -> bool:
    """Whether somebody controls the cluster."""
    return lease is not None and lease.expires_at > now


def renewed_at(lease: Lease) -> datetime:
    """When its holder last began a turn of the cluster, if it did not give the lease up."""
    return lease.expires_at - LIFETIME


def unrenewed_for(cluster: Cluster, lease: Lease | None, *, now: datetime) -> timedelta:
    """Since when nobody renewed it; where nobody ever took it, since the cluster was made."""
    return now - (renewed_at(lease) if lease else cluster.created_at)


def assert_held(cluster_id: int, epoch: int) -> None:
    """Inside a transaction: hold the lease's row so that no other epoch can begin before it ends. Raises LeaseLost."""
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("A lease can only be asserted inside a transaction")
    if _locked().filter(cluster_id=cluster_id, epoch=epoch).first() is None:
        raise LeaseLost("Another controller has taken over this cluster.")


def _locked() -> QuerySet[Lease]:
    """Rows that nobody else may change until this transaction is over, or its process has stood still for too long."""
    patience = Value(str(int(FROZEN_AFTER.total_seconds() * 1000)))
    limit = Func(
        Value("idle_in_transaction_session_timeout"),
        patience,
        Value(True),  # until the end of the transaction
        function="set_config",
        output_field=CharField(),
    )
    return Lease.objects.select_for_update().annotate(limit=limit)
