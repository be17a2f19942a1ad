"""Invitations to the terminal or session of another person: offered, accepted, declined, revoked, expired."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import PLATFORM, Actor, unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing import selectors
from hekla.apps.sharing.models import Guest, GuestState, OpenTerminal
from hekla.apps.sharing.selectors import Target
from hekla.apps.sharing.services.telling import place, tell
from hekla.apps.workbench import services as workbench
from hekla.domain import events
from hekla.domain.errors import Forbidden, Invalid, NotFound, Problem, Refused
from hekla.domain.phases import FINAL_POD_PHASES
from hekla.domain.sharing import GuestEnd, GuestRole

MAX_HOURS = 24
MAX_OF_TARGET = 15
_BATCH = 500


def invite(target: Target, username: str, role: GuestRole, *, hours: int, user: User, now: datetime) -> Guest:
    """Invite a person to a terminal or session. Nothing opens before they accept.

    An invited co-owner invites for no longer than their own invitation lasts. Raises Forbidden, Refused, Invalid.
    """
    if not 1 <= hours <= MAX_HOURS:
        raise Invalid([Problem("hours", _("From 1 to %(n)s hours.") % {"n": MAX_HOURS})])
    if role is GuestRole.OBSERVER and not isinstance(target, OpenTerminal):
        raise Refused(_("A tool cannot keep an observer from typing. Invite a peer, or share a terminal."), "role")
    with unit_of_work():
        Pod.objects.select_for_update(of=("self",), no_key=True).get(pk=target.pod_id)  # one at a time
        if not selectors.may_invite(target, user, now=now):
            raise Forbidden(_("Only the person who opened it, and co-owners, can invite others."))
        if not type(target).objects.filter(pk=target.pk, ended_at=None).exists() or not _runs(target.pod):
            raise Refused(_("It has ended. Open a new one, then invite others."))
        person = _require_person(target, username)
        _end_expired(target, now)
        _require_room(target, person)
        until = now + timedelta(hours=hours)
        if (own := selectors.co_ownership(target, user, now=now)) is not None and target.owner_id != user.pk:
            until = min(until, own.expires_at)
        one = {"terminal": target} if isinstance(target, OpenTerminal) else {"session": target}
        guest = Guest.objects.create(
            pod=target.pod, inviter=user, person=person, role=role, created_at=now, expires_at=until, **one
        )
        facts = {**_facts(guest), "person": person.username, "role": role, "expires_at": until}
        tell(target.pod, events.GuestInvited.model_validate(facts), actor=actor_of(user), now=now)
    return guest


def accept(guest: Guest, *, user: User, now: datetime) -> None:
    """Accept one's own invitation. Raises NotFound for that of another person, Refused if it has ended."""
    require_own(guest, user)
    with unit_of_work():
        locked = Guest.objects.select_for_update(of=("self",)).get(pk=guest.pk)
        guest.ended_at, guest.accepted_at = locked.ended_at, locked.accepted_at
        if guest.state(now) is GuestState.ENDED:
            raise Refused(_("This invitation has ended. Ask for a new one."))
        if guest.accepted_at is None:
            guest.accepted_at = now
            guest.save(update_fields=["accepted_at"])
            facts = {**_facts(guest), "owner": guest.target.owner.username, "role": guest.role}
            tell(guest.pod, events.GuestAccepted.model_validate(facts), actor=actor_of(user), now=now)


def decline(guest: Guest, *, user: User, now: datetime) -> None:
    """Decline one's own invitation, or give it back. Raises NotFound for that of another person."""
    require_own(guest, user)
    reason = GuestEnd.DECLINED if guest.accepted_at is None else GuestEnd.LEFT
    with unit_of_work():
        _end(guest, reason, actor=actor_of(user), now=now)


def revoke(guest: Guest, *, user: User, now: datetime) -> None:
    """End the invitation of another person. Who may: the inviter, who may invite now, and who may act on the job.

    Raises Forbidden.
    """
    may = user.pk == guest.inviter_id or selectors.may_invite(guest.target, user, now=now)
    if not may and not jobs.may_act(user, guest.pod.job):
        raise Forbidden(_("Only the person who opened it, and co-owners, can end this invitation."))
    with unit_of_work():
        _end(guest, GuestEnd.REVOKED, actor=actor_of(user), now=now)


def end_shared_session(guest: Guest, *, user: User, now: datetime) -> None:
    """End the session of another person, as an invited co-owner. Raises NotFound, Forbidden."""
    require_own(guest, user)
    if guest.session is None or selectors.co_ownership(guest.session, user, now=now) is None:
        raise Forbidden(_("Only the person who opened it, and co-owners, can end it."))
    with unit_of_work():
        guest.session.pod = guest.pod
        workbench.close_session(guest.session, actor=actor_of(user), now=now)
        end_guests_of(guest.session, actor=actor_of(user), now=now)


def end_guests_of(target: Target, *, actor: Actor, now: datetime) -> None:
    """End all invitations to a terminal or session that has ended."""
    with unit_of_work():
        of_it = Q(terminal=target) if isinstance(target, OpenTerminal) else Q(session=target)
        for guest in Guest.objects.select_related("pod__job", "person").filter(of_it, ended_at=None).order_by("pk"):
            reason = GuestEnd.EXPIRED if guest.expires_at <= now else GuestEnd.CLOSED
            _end_one(guest, reason, actor=actor, now=now)


def tidy_guests(*, now: datetime) -> int:
    """Record the ends of what has expired, or ended with its pod. It has no effect by then. Returns their number."""
    final = [str(phase) for phase in FINAL_POD_PHASES]
    with unit_of_work():
        OpenTerminal.objects.filter(ended_at=None, pod__phase__in=final).update(ended_at=now)
        over = Q(expires_at__lte=now) | Q(pod__phase__in=final)
        over |= Q(terminal__ended_at__isnull=False) | Q(session__ended_at__isnull=False)
        found = Guest.objects.select_related("pod__job", "person").filter(over, ended_at=None).order_by("pk")[:_BATCH]
        for guest in found:
            reason = GuestEnd.EXPIRED if guest.expires_at <= now else GuestEnd.CLOSED
            _end_one(guest, reason, actor=PLATFORM, now=now)
    return len(found) + _end_of_those_who_left(now)


def _end_of_those_who_left(now: datetime) -> int:
    """End the invitations of people who cannot see the job any more, and those that they made as co-owners.

    These have no effect by then. Otherwise they would come back with the person.
    """
    with unit_of_work():
        opened = Guest.objects.select_related("pod__job", "person").filter(ended_at=None).order_by("pk")
        by_person: dict[int, list[Guest]] = {}
        for guest in opened[:_BATCH]:
            by_person.setdefault(guest.person_id, []).append(guest)
        left: list[Guest] = []
        for guests in by_person.values():
            jobs_of = {guest.pod.job_id for guest in guests}
            visible = jobs.visible_to(guests[0].person).filter(pk__in=jobs_of).order_by().values_list("pk", flat=True)
            known = set(visible)
            left += [guest for guest in guests if guest.pod.job_id not in known]
        for guest in left:
            _end(guest, GuestEnd.REVOKED, actor=PLATFORM, now=now)
        return len(left)


def require_own(guest: Guest, user: User) -> None:
    """Raises NotFound for the invitation of another person."""
    if guest.person_id != user.pk:
        raise NotFound(_("Unknown invitation."))


def _require_person(target: Target, username: str) -> User:
    """The person to invite. One answer for the unknown and those outside of the tenant. Raises Refused."""
    person = accounts.by_username(username)
    if person is None or not person.is_active or not jobs.visible_to(person).filter(pk=target.pod.job_id).exists():
        raise Refused(_("No person of this name can see the job. Invite members of its tenant."), "person")
    if person.pk == target.owner_id:
        raise Refused(_("This person has opened it."), "person")
    return person


def _require_room(target: Target, person: User) -> None:
    of_it = Q(terminal=target) if isinstance(target, OpenTerminal) else Q(session=target)
    opened = Guest.objects.filter(of_it, ended_at=None)
    if opened.filter(person=person).exists():
        raise Refused(_("This person is invited already. End that invitation to change it."), "person")
    if opened.count() >= MAX_OF_TARGET:
        raise Refused(_("%(n)s people are invited, which is the most. End an invitation first.") % {"n": MAX_OF_TARGET})


def _end_expired(target: Target, now: datetime) -> None:
    of_it = Q(terminal=target) if isinstance(target, OpenTerminal) else Q(session=target)
    for guest in Guest.objects.select_related("pod__job", "person").filter(of_it, ended_at=None, expires_at__lte=now):
        _end_one(guest, GuestEnd.EXPIRED, actor=PLATFORM, now=now)


def _end(guest: Guest, reason: GuestEnd, *, actor: Actor, now: datetime) -> None:
    """End an invitation, and those that its person made: nobody comes back by a second name."""
    if not _end_one(guest, reason, actor=actor, now=now):
        return
    of_it = Q(terminal=guest.terminal_id) if guest.terminal_id else Q(session=guest.session_id)
    made = Guest.objects.select_related("pod__job", "person").filter(of_it, inviter=guest.person_id, ended_at=None)
    for other in made:
        _end(other, GuestEnd.REVOKED, actor=actor, now=now)


def _end_one(guest: Guest, reason: GuestEnd, *, actor: Actor, now: datetime) -> bool:
    if not Guest.objects.filter(pk=guest.pk, ended_at=None).update(ended_at=now, end_reason=reason):
        return False
    guest.ended_at, guest.end_reason = now, reason
    facts = {**_facts(guest), "person": guest.person.username, "reason": reason}
    tell(guest.pod, events.GuestEnded.model_validate(facts), actor=actor, now=now)
    return True


def _facts(guest: Guest) -> dict[str, object]:
    return {**place(guest.pod), "guest": guest.uid.hex, "tool": guest.target.tool}


def _runs(pod: Pod) -> bool:
    return not pod.is_final
