"""Queries about shared terminals and sessions. What belongs to jobs outside the person's tenants does not exist."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.sharing.models import Guest, JobFork, OpenTerminal, Recording
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.workbench import selectors as workbench
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import NotFound
from hekla.domain.phases import PodPhase
from hekla.domain.sharing import GuestRole

MOST_LISTED = 100
_NEW = timedelta(minutes=5)
Target = OpenTerminal | ToolSession
_JOB = ("pod__job__cluster", "pod__job__tenant", "pod__job__queue", "owner")


def terminal(uid: UUID, user: User) -> OpenTerminal:
    """One terminal, also one that has ended. Raises NotFound if the person may not see its job."""
    found = OpenTerminal.objects.select_related(*_JOB).filter(uid=uid).first()
    if found is None or not jobs.known_to(user).filter(pk=found.pod.job_id).exists():
        raise NotFound(_("Unknown terminal."))
    return found


def terminals_of(job: Job) -> Sequence[OpenTerminal]:
    """The open terminals of a job, the newest first. The caller has checked that the person may act on the job."""
    found = OpenTerminal.objects.filter(pod__job=job, ended_at=None, pod__phase=PodPhase.RUNNING)
    return list(found.select_related(*_JOB).order_by("-opened_at", "-pk")[:MOST_LISTED])


def guest(uid: UUID, user: User) -> Guest:
    """One invitation. Raises NotFound if the person may not see its job, or has nothing to do with it."""
    found = _guests().filter(uid=uid).first()
    if found is None or not jobs.known_to(user).filter(pk=found.pod.job_id).exists():
        raise NotFound(_("Unknown invitation."))
    is_concerned = user.pk in (found.person_id, found.inviter_id, found.target.owner_id)
    if not is_concerned and not jobs.may_act(user, found.pod.job):
        raise NotFound(_("Unknown invitation."))
    return found


def invitations_of(user: User, *, now: datetime) -> Sequence[Guest]:
    """The open invitations of a person, offered and accepted, the newest first."""
    found = _open(now).filter(person=user, pod__job__in=jobs.visible_to(user).order_by().values("pk"))
    return list(found.order_by("-created_at", "-pk")[:MOST_LISTED])


def guests_of(target: Target, *, now: datetime) -> Sequence[Guest]:
    """The open invitations to a terminal or session."""
    return list(_open(now).filter(_to(target)).order_by("created_at", "pk")[:MOST_LISTED])


def guests_of_job(job: Job, *, now: datetime) -> Sequence[Guest]:
    """The open invitations to terminals and sessions of a job. The caller has checked the right."""
    return list(_open(now).filter(pod__job=job).order_by("created_at", "pk")[:MOST_LISTED])


def guest_of_terminal(uid: str, pod_id: int, user: User, *, now: datetime) -> Guest | None:
    """The accepted invitation of this person to the terminal with this id (hexadecimal) in this pod, in force now."""
    try:
        wanted = UUID(hex=uid)
    except ValueError:
        return None
    found = _in_force(now).filter(terminal__uid=wanted, pod_id=pod_id, person=user).first()
    return found if found is not None and _inviters_may(found, now) else None


def may_enter(found: OpenTerminal, user: User, *, types: bool, now: datetime) -> bool:
    """Whether the person may be in this terminal; with `types`, whether they may type there."""
    if jobs.may_act(user, found.pod.job):
        return True
    guest = guest_of_terminal(found.uid.hex, found.pod_id, user, now=now)
    return guest is not None and (GuestRole(guest.role).may_type or not types)


def guest_of_session(slug: str, share_id: int, user: User, *, now: datetime) -> Guest:
    """This accepted invitation of the person to the session at this host name. Raises NotFound without its force."""
    found = _in_force(now).filter(pk=share_id, session__slug=slug, person=user).first()
    if found is None or not jobs.visible_to(user).filter(pk=found.pod.job_id).exists():
        raise NotFound(_("Unknown session."))
    if not _owner_may(found) or not _inviters_may(found, now):
        raise NotFound(_("Unknown session."))
    return found


def in_force(guest_ids: Collection[int], *, now: datetime) -> frozenset[int]:
    """Those of these invitations that let a person in now. Sockets ask every two seconds."""
    if not guest_ids:
        return frozenset()
    with tenancy.rights_read_once({}):  # most are of few owners
        found = _in_force(now).filter(pk__in=guest_ids)
        return frozenset(one.pk for one in found if _owner_may(one) and _inviters_may(one, now))


def may_invite(target: Target, user: User, *, now: datetime) -> bool:
    """Whether the person may invite others: who opened it and may still act on the job, and invited co-owners."""
    if target.owner_id == user.pk:
        return jobs.may_act(user, target.pod.job)
    return co_ownership(target, user, now=now) is not None


def co_ownership(target: Target, user: User, *, now: datetime) -> Guest | None:
    """The invitation that makes this person a co-owner of the terminal or session."""
    return _in_force(now).filter(_to(target), person=user, role=GuestRole.OWNER).first()


def is_in(session: ToolSession, user: User, *, now: datetime) -> bool:
    """Whether the person has accepted an invitation to the session that is in force."""
    found = _in_force(now).filter(session=session, person=user)
    return any(_owner_may(one) and _inviters_may(one, now) for one in found)


def lost_right(guest: Guest, *, now: datetime) -> str:
    """Why an open invitation has no effect now, as a sentence; empty if it has."""
    if not _owner_may(guest):
        return _("%s opened it, and may no longer act on the job.") % guest.target.owner
    if not _inviters_may(guest, now):
        return _("%s invited you, and may no longer share it.") % guest.inviter
    return ""


def session_of(uid: UUID, user: User) -> ToolSession:
    """One session. Raises NotFound if the person may not see its job."""
    return workbench.get(uid, user)


def recording(uid: UUID, user: User) -> Recording:
    """One recording. Raises NotFound if the person may not see its job."""
    found = Recording.objects.select_related(*_JOB, "source").filter(uid=uid).first()
    if found is None or not jobs.known_to(user).filter(pk=found.pod.job_id).exists():
        raise NotFound(_("Unknown recording."))
    return found


def recordings_of(job: Job) -> Sequence[Recording]:
    """The recordings of a job, the newest first. The caller has checked that the person may act on the job."""
    found = Recording.objects.select_related("pod", "owner").filter(pod__job=job)
    return list(found.order_by("-started_at", "-pk")[:MOST_LISTED])


def fork_of(job: Job) -> JobFork | None:
    """How this job began as a fork, if it did. The caller has checked that the person may see the job."""
    return JobFork.objects.select_related("source__job").filter(job=job).first()


def any_new_fork(*, now: datetime) -> bool:
    """Whether a fork of the last minutes waits for its files. Its job may start any moment."""
    return JobFork.objects.filter(ended_at=None, created_at__gt=now - _NEW).exists()


def copy_work() -> list[QuerySet[Any, Any]]:
    """Forks that wait for their files (see `due_work`)."""
    return [JobFork.objects.filter(ended_at=None)]


def _guests() -> QuerySet[Guest]:
    return Guest.objects.select_related(
        *("person", "inviter", "terminal__owner", "session__owner"),
        *("pod__job__cluster", "pod__job__tenant", "pod__job__queue"),
    )


def _to(target: Target) -> Q:
    return Q(terminal=target) if isinstance(target, OpenTerminal) else Q(session=target)


def _open(now: datetime) -> QuerySet[Guest]:
    """Neither ended nor expired, and so is what they are for."""
    is_open = Q(terminal__ended_at=None, terminal__isnull=False) | Q(session__ended_at=None, session__isnull=False)
    return _guests().filter(is_open, ended_at=None, expires_at__gt=now, pod__phase=PodPhase.RUNNING)


def _in_force(now: datetime) -> QuerySet[Guest]:
    return _open(now).filter(accepted_at__isnull=False)


def _owner_may(guest: Guest) -> bool:
    """Whether who opened it may still act on the job. Terminals end themselves without that right, sessions go on."""
    owner = guest.target.owner
    return guest.session_id is None or (owner.is_active and jobs.may_act(owner, guest.pod.job))


def _inviters_may(guest: Guest, now: datetime) -> bool:
    """Whether the co-owners who invited this person, one by the other, are so still, may sign in and see the job."""
    passed: set[int] = set()
    while guest.inviter_id != guest.target.owner_id:
        own = co_ownership(guest.target, guest.inviter, now=now)
        if own is None or own.pk in passed or not guest.inviter.is_active:
            return False
        if not jobs.visible_to(guest.inviter).filter(pk=guest.pod.job_id).exists():
            return False
        passed.add(own.pk)
        guest = own
    return True
