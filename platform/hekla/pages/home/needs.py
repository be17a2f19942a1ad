"""A part of the home page that loads after it: what needs attention, and the use of quotas and GPU-hours."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.usage import quota_usage
from hekla.domain.phases import JobPhase
from hekla.lib import clock
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person

_RECENT = timedelta(days=1)
_MOST = 5
_LOOKED_AT = 100
"""At most this many of the person's newest pending jobs are examined."""


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The part of the home page; empty if there is nothing to report."""
    user, now = person(request), clock.now()
    tenant = current_tenant.tenant(request)
    rows = quota_usage.visible_rows(user, tenant, now) if tenant else []
    limits = [row for row in rows if row.user in (None, user) and row.quota]
    mine = next((row for row in rows if row.user == user), None)
    hours = mine if mine and mine.gpu_hours else None
    facts = {"limits": limits, "hours": hours, "tenant": tenant, "nodes": _nodes(user)}
    return render(request, "_needs.html", {**facts, **_needs(user, now)})


def _nodes(user: User) -> list[Node]:
    """Nodes that are not ready, for people who may do something about it."""
    if not accounts.may(user, Permission.MANAGE_CLUSTERS):
        return []
    return list(clusters.nodes().filter(is_ready=False)[:_MOST])


def _needs(user: User, now: datetime) -> dict[str, Any]:
    mine = jobs.visible_to(user).filter(owner=user).order_by("-id")
    failed = mine.filter(phase=JobPhase.FAILED, finished_at__gte=now - _RECENT)
    waiting = mine.filter(phase=JobPhase.PENDING)[:_LOOKED_AT]
    return {"failed": list(failed[:_MOST]), "stuck": [job for job in waiting if _can_never_start(job)][:_MOST]}


def _can_never_start(job: Job) -> bool:
    """Whether the job cannot start even on an empty cluster."""
    return any(not reason.get("ever", True) for reason in job.waiting)
