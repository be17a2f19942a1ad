"""The controller's lease of a cluster. Its epoch is a fencing token: a holder that slept too long can write nothing.

The clock of the database decides when a lease expires, because the clocks of two hosts may differ by more than its
lifetime.
"""

from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import CharField, DateTimeField, ExpressionWrapper, Func, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from hekla.apps.clusters.models import MAX_LEASE_FAULT, Cluster, Lease
from hekla.apps.event_log.services import CONTROLLER, record, unit_of_work
from hekla.domain import events
from hekla.domain.errors import Refused

LIFETIME = timedelta(seconds=5)
FROZEN_AFTER = timedelta(seconds=20)
"""A transaction that idles longer than this is ended by PostgreSQL: it would block the lease for all controllers."""
SILENT_AFTER = timedelta(seconds=60)
"""A controller without a renewal for this long hangs or is gone: idle controllers renew every two seconds."""
_NOBODY = ""
_RENEW = """
    UPDATE clusters_lease SET expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE cluster_id = %(cluster)s AND holder = %(holder)s RETURNING epoch
"""
"""The time is read after the row is locked: the lease must not begin to run while this waits."""
_EXTEND = """
    UPDATE clusters_lease SET expires_at = statement_timestamp() + make_interval(secs => %(seconds)s)
    WHERE cluster_id = %(cluster)s AND epoch = %(epoch)s AND holder <> %(nobody)s
"""

_LAST_SHUFFLE = "SELECT last_shuffle_at FROM clusters_lease WHERE cluster_id = %s"
_PATIENCE = str(int(FROZEN_AFTER.total_seconds() * 1000))
_ASSERT = """
    SELECT set_config('idle_in_transaction_session_timeout', %(patience)s, true)
    FROM clusters_lease WHERE cluster_id = %(cluster)s AND epoch = %(epoch)s FOR UPDATE
"""
"""As `_locked`. Written out, because each change of a job begins with it: Django takes longer to build it."""


class LeaseLost(Refused):
    """Another controller has the lease now; this holder's write is rejected."""

    code = "lease_lost"


def take(cluster: Cluster, holder: str, *, now: datetime) -> int | None:
    """Acquire or renew the lease. Returns the epoch for writes, or None while another holder has it.

    `now`: of the event, on the clock of this host.
    """
    if (epoch := _renewed(cluster.pk, holder)) is not None:
        return epoch
    with unit_of_work():
        lease, _ = Lease.objects.get_or_create(cluster=cluster, defaults={"holder": _NOBODY, "expires_at": Now()})
        lease = _locked().get(pk=lease.pk)
        if lease.holder != holder and held(cluster) is not None:
            return None
        if lease.holder != holder:
            lease.holder, lease.epoch, lease.fault = holder, lease.epoch + 1, ""
            event = events.LeaseAcquired(epoch=lease.epoch, holder=holder)
            record(event, subject=f"cluster:{cluster.pk}", actor=CONTROLLER, at=now)
        Lease.objects.filter(pk=lease.pk).update(
            holder=holder, epoch=lease.epoch, fault=lease.fault, expires_at=_in_a_lifetime()
        )
        return lease.epoch


def _renewed(cluster_id: int, holder: str) -> int | None:
    """Renew the lease of its holder in one statement, as nearly every reconcile does. Returns its epoch, or None."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, {"cluster": cluster_id, "holder": holder, "seconds": LIFETIME.total_seconds()})
        found: tuple[int] | None = cursor.fetchone()
    return found[0] if found else None


def release(holder: str) -> None:
    """Release every lease of this holder, so that the next one need not wait."""
    Lease.objects.filter(holder=holder).update(holder=_NOBODY, expires_at=Now())


def revoke(cluster: Cluster) -> None:
    """End the lease: its holder can write nothing more. Any controller can acquire it after this transaction."""
    with unit_of_work():
        Lease.objects.get_or_create(cluster=cluster, defaults={"holder": _NOBODY, "expires_at": Now()})
        lease = _locked().get(cluster=cluster)
        Lease.objects.filter(pk=lease.pk).update(holder=_NOBODY, epoch=lease.epoch + 1, expires_at=Now())


def renew(cluster_id: int, epoch: int) -> None:
    """Extend the lease before work that no transaction covers. Raises LeaseLost, also after a release."""
    seconds = LIFETIME.total_seconds()
    with connection.cursor() as cursor:
        cursor.execute(_EXTEND, {"cluster": cluster_id, "epoch": epoch, "nobody": _NOBODY, "seconds": seconds})
        if not cursor.rowcount:
            raise LeaseLost("Another controller has taken over this cluster.")


def report_fault(cluster_id: int, holder: str, fault: str) -> None:
    """Record the unexpected error that the holder meets; empty: none any more. No effect for others."""
    fault = "".join(letter if letter.isprintable() else " " for letter in fault)[:MAX_LEASE_FAULT]
    Lease.objects.filter(cluster_id=cluster_id, holder=holder).exclude(fault=fault).update(fault=fault)


def record_shuffle(cluster_id: int, *, now: datetime) -> None:
    """Record that the action shuffle evicted pods, in the transaction of these evictions."""
    Lease.objects.filter(cluster_id=cluster_id).update(last_shuffle_at=now)


def last_shuffle_at(cluster_id: int) -> datetime | None:
    """When the action shuffle last evicted pods; None: never."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_SHUFFLE, [cluster_id])
        found: tuple[datetime | None] | None = cursor.fetchone()
    return found[0] if found else None


def held(cluster: Cluster) -> Lease | None:
    """The lease of a cluster, if a controller holds it now."""
    return Lease.objects.filter(cluster=cluster, expires_at__gt=Now()).first()


def is_held(lease: Lease | None, *, now: datetime) -> bool:
    """Whether a controller holds the lease, for people: by the clock of this host. Nothing is decided by this."""
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
    with connection.cursor() as cursor:
        cursor.execute(_ASSERT, {"cluster": cluster_id, "epoch": epoch, "patience": _PATIENCE})
        if cursor.fetchone() is None:
            raise LeaseLost("Another controller has taken over this cluster.")


def _in_a_lifetime() -> Combinable:
    return ExpressionWrapper(Now() + LIFETIME, output_field=DateTimeField())


def _locked() -> QuerySet[Lease]:
    """Leases with locked rows: until the transaction ends, at the latest when it has idled for `FROZEN_AFTER`."""
    limit = Func(
        Value("idle_in_transaction_session_timeout"),
        Value(_PATIENCE),
        Value(True),  # until the end of the transaction
        function="set_config",
        output_field=CharField(),
    )
    return Lease.objects.select_for_update().annotate(limit=limit)
