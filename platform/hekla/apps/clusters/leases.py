"""The controller's lease of a cluster. Its epoch is a fencing token: a holder that slept too long can write nothing."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import CharField, Func, QuerySet, Value

from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.event_log.services import CONTROLLER, record, unit_of_work
from hekla.domain import events
from hekla.domain.errors import Refused

LIFETIME = timedelta(seconds=5)
FROZEN_AFTER = timedelta(seconds=20)
"""A transaction that idles longer than this is ended by PostgreSQL: it would block the lease for all controllers."""
_NOBODY = ""


class LeaseLost(Refused):
    """Another controller has the lease now; this holder's write is rejected."""

    code = "lease_lost"


def take(cluster: Cluster, holder: str, *, now: datetime) -> int | None:
    """Acquire or renew the lease. Returns the epoch for writes, or None while another holder has it."""
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
    """Release every lease of this holder, so that the next one need not wait."""
    Lease.objects.filter(holder=holder).update(holder=_NOBODY, expires_at=now)


def revoke(cluster: Cluster, *, now: datetime) -> None:
    """End the lease: its holder can write nothing more. Any controller can acquire it after this transaction."""
    with unit_of_work():
        Lease.objects.get_or_create(cluster=cluster, defaults={"holder": _NOBODY, "expires_at": now})
        lease = _locked().get(cluster=cluster)
        lease.holder, lease.epoch, lease.expires_at = _NOBODY, lease.epoch + 1, now
        lease.save()


def renew(cluster_id: int, epoch: int, *, now: datetime) -> None:
    """Extend the lease before work that no transaction covers. Raises LeaseLost, also after a release."""
    held = Lease.objects.filter(cluster_id=cluster_id, epoch=epoch).exclude(holder=_NOBODY)
    if not held.update(expires_at=now + LIFETIME):
        raise LeaseLost("Another controller has taken over this cluster.")


def of(cluster: Cluster) -> Lease | None:
    """The lease of a cluster; None if it was never acquired."""
    return Lease.objects.filter(cluster=cluster).first()


def is_held(lease: Lease | None, *, now: datetime) -> bool:
    """Whether a controller holds the lease now."""
    return lease is not None and lease.expires_at > now


def renewed_at(lease: Lease) -> datetime:
    """When the lease was last renewed; not meaningful after it was released or revoked."""
    return lease.expires_at - LIFETIME


def unrenewed_for(cluster: Cluster, lease: Lease | None, *, now: datetime) -> timedelta:
    """The time since the last renewal; since the cluster was created if there is no lease."""
    return now - (renewed_at(lease) if lease else cluster.created_at)


def assert_held(cluster_id: int, epoch: int) -> None:
    """Lock the lease's row, so that no other epoch can begin before the transaction ends. Raises LeaseLost.

    Raises RuntimeError outside a transaction.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("A lease can only be asserted inside a transaction")
    if _locked().filter(cluster_id=cluster_id, epoch=epoch).first() is None:
        raise LeaseLost("Another controller has taken over this cluster.")


def _locked() -> QuerySet[Lease]:
    """Leases with locked rows: until the transaction ends, at the latest when it has idled for `FROZEN_AFTER`."""
    patience = Value(str(int(FROZEN_AFTER.total_seconds() * 1000)))
    limit = Func(
        Value("idle_in_transaction_session_timeout"),
        patience,
        Value(True),  # until the end of the transaction
        function="set_config",
        output_field=CharField(),
    )
    return Lease.objects.select_for_update().annotate(limit=limit)
