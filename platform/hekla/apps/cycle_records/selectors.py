"""Recorded cycles, for operators: they show the jobs of all tenants."""

from django.db.models import Count, QuerySet, Sum
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.cycle_records.models import CycleRecord
from hekla.domain.errors import NotFound


def records(user: User, cluster: Cluster) -> QuerySet[CycleRecord]:
    """The cycles of a cluster without their documents, the newest first. Raises Forbidden."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    return CycleRecord.objects.filter(cluster=cluster).defer("data").order_by("-pk")


def record(user: User, record_id: int) -> CycleRecord:
    """One cycle, with its document. Raises Forbidden or NotFound."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    found = CycleRecord.objects.select_related("cluster").filter(pk=record_id).first()
    if found is None:
        raise NotFound(_("Unknown cycle. Old ones are deleted."))
    return found


def base_data(row: CycleRecord) -> bytes | None:
    """The document that this one refers to; None if it is whole. Raises NotFound if it was just deleted."""
    if row.base is None:
        return None
    found = CycleRecord.objects.filter(pk=row.base, cluster_id=row.cluster_id).values_list("data", flat=True).first()
    if found is None:
        raise NotFound(_("Unknown cycle. Old ones are deleted."))
    return bytes(found)


def totals(user: User, cluster: Cluster) -> dict[str, int]:
    """How many cycles of a cluster are stored, and their bytes. Raises Forbidden."""
    return records(user, cluster).aggregate(count=Count("pk"), bytes=Sum("size", default=0))


def omitted(user: User, cluster: Cluster) -> dict[str, int]:
    """How many cycles have no document, by reason. Raises Forbidden."""
    rows = records(user, cluster).exclude(omission="").order_by()
    return dict(rows.values_list("omission").annotate(count=Count("pk")))
