"""Queries about sessions. Sessions of jobs outside the person's tenants do not exist."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.workbench.encryption import COLUMN
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import NotFound
from hekla.domain.phases import PodPhase

MOST_LISTED = 50


def open_sessions() -> QuerySet[ToolSession]:
    """The sessions that have not ended, nor their pods."""
    found = ToolSession.objects.filter(ended_at=None, pod__phase=PodPhase.RUNNING)
    return found.select_related("owner", "pod__job__cluster", "pod__job__tenant").order_by("-created_at", "-pk")


def of_job(job: Job) -> Sequence[ToolSession]:
    """The open sessions of a job, the newest first. The caller has checked that the person may see the job."""
    return list(open_sessions().filter(pod__job=job)[:MOST_LISTED])


def get(uid: UUID, user: User) -> ToolSession:
    """One session, also one that has ended. Raises NotFound if the person may not see its job."""
    found = _whole().filter(uid=uid).first()
    if found is None or not jobs.known_to(user).filter(pk=found.pod.job_id).exists():
        raise NotFound(_("Unknown session."))
    return found


def of_slug(slug: str, user: User) -> ToolSession:
    """The open session at this host name. Raises NotFound unless it is the person's own, and they may act on its job.

    The proxy reads it for each check of rights.
    """
    found = open_sessions().filter(slug=slug, owner=user).first()
    if found is None or not jobs.may_act(user, found.pod.job):
        raise NotFound(_("Unknown session."))
    return found


def starting_since(latest: datetime) -> Sequence[ToolSession]:
    """Open sessions of this time or before whose tools have never answered. Some of them, if there are many."""
    return list(open_sessions().filter(ready_at=None, created_at__lte=latest).order_by("?")[:MOST_LISTED])


def open_of_slug(slug: str) -> ToolSession | None:
    """The open session at this host name, whoever may enter it."""
    return open_sessions().filter(slug=slug).first()


def of_token(token: ApiToken) -> ToolSession | None:
    """The open session of this token; None if it has ended, or its owner may no longer act on its job."""
    found = open_sessions().filter(token=token).first()
    return found if found is not None and jobs.may_act(token.user, found.pod.job) else None


def still_open(slugs: Collection[str]) -> set[str]:
    """Those of these host names whose sessions are open."""
    found = ToolSession.objects.filter(slug__in=slugs, ended_at=None, pod__phase=PodPhase.RUNNING)
    return set(found.values_list("slug", flat=True))


def secret_of(session: ToolSession) -> str:
    """What its tool demands; empty for a port. Raises DecryptionError if the secret key of the console has changed."""
    return COLUMN.decrypt(session.secret) if session.secret else ""


def _whole() -> QuerySet[ToolSession]:
    return ToolSession.objects.select_related("owner", "pod__job__cluster", "pod__job__tenant", "pod__job__queue")


def session_work() -> list[QuerySet[Any, Any]]:
    """Sessions whose end is not recorded: their pods may have ended, their tools may not start (see `due_work`)."""
    return [ToolSession.objects.filter(ended_at=None)]
