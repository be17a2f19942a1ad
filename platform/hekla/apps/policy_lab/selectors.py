"""Experiments of the policy lab, for operators: they show the jobs of all tenants."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.selectors import may
from hekla.apps.policy_lab.models import LabRun, LabTrace
from hekla.domain.errors import NotFound

TO_DO = (LabRun.State.WAITING, LabRun.State.RUNNING)


def runs(user: User) -> QuerySet[LabRun]:
    """All experiments without their results, the newest first. Raises Forbidden."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    return LabRun.objects.select_related("cluster", "created_by").defer("result", "policy").order_by("-pk")


def get(user: User, uid: UUID) -> LabRun:
    """One experiment. Raises Forbidden and NotFound."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    found = LabRun.objects.select_related("cluster", "created_by").filter(uid=uid).first()
    if found is None:
        raise NotFound(_("Unknown experiment. Old ones are deleted."))
    return found


def by_uid(uid: UUID) -> LabRun | None:
    """One experiment, for the process that runs it; None if it was deleted."""
    return LabRun.objects.select_related("cluster").filter(uid=uid).first()


def traces(user: User) -> QuerySet[LabTrace]:
    """All uploaded workloads without their files, the newest first. Raises Forbidden."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    return LabTrace.objects.select_related("owner").defer("content").order_by("-pk")


def trace(user: User, uid: UUID) -> LabTrace:
    """One uploaded workload without its file. Raises Forbidden and NotFound."""
    found = traces(user).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("Unknown trace. Maybe it was deleted."))
    return found


def may_delete(user: User, row: LabTrace) -> bool:
    """Whether this person may delete the trace: its owner, and platform admins."""
    return row.owner_id == user.pk or may(user, Permission.MANAGE_TENANTS)


def trace_file(pk: int) -> tuple[str, bytes] | None:
    """The format and the packed file of a trace, for the process that runs it; None if it was deleted."""
    found = LabTrace.objects.filter(pk=pk).values_list("format", "content").first()
    return found and (found[0], bytes(found[1]))


def run_work() -> Iterable[QuerySet[Any, Any]]:
    """The experiments that are to be run, or whose process may be gone."""
    return [LabRun.objects.filter(state__in=TO_DO)]
