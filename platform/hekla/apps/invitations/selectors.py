"""Queries for invitations."""

import hashlib
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.selectors import may as may_on_platform
from hekla.apps.invitations import extras
from hekla.apps.invitations.models import Invitation, InvitationMail
from hekla.apps.outboxes import OutboxFacts, outbox_facts
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound


def waiting(tenant: Tenant) -> QuerySet[Invitation]:
    """The invitations that were neither accepted nor revoked, newest first; some may have expired."""
    found = Invitation.objects.filter(tenant=tenant, accepted_at=None, revoked_at=None)
    return found.select_related("invited_by", "letter").order_by("-created_at", "-pk")


def next_letter() -> datetime | None:
    """When the next letter is due, possibly in the past; None if there is none."""
    return (
        InvitationMail.objects.filter(due_at__isnull=False).order_by("due_at").values_list("due_at", flat=True).first()
    )


def outbox_counts(now: datetime) -> OutboxFacts:
    """The letters that wait to be sent; `abandoned` counts those of open invitations without further attempts."""
    letters = InvitationMail.objects
    return outbox_facts(letters.filter(due_at__isnull=False), letters.filter(due_at=None), now)


def by_secret(secret: str, *, now: datetime) -> Invitation:
    """The open invitation with this secret. Raises NotFound, without the reason why it is not open."""
    found = Invitation.objects.filter(digest=digest(secret), accepted_at=None, revoked_at=None, expires_at__gt=now)
    invitation = found.select_related("tenant", "invited_by").first()
    if invitation is None or not is_still_meant(invitation):
        raise NotFound(_("This invitation was accepted, was revoked or has expired."))
    return invitation


def is_open(invitation: Invitation, *, now: datetime) -> bool:
    """Whether the invitation can be accepted."""
    is_over = invitation.accepted_at or invitation.revoked_at or invitation.expires_at <= now
    return not is_over and is_still_meant(invitation)


def is_still_meant(invitation: Invitation) -> bool:
    """Whether the inviter still has the permissions for it: no invitation outlives them. The tenant must be active."""
    inviter = invitation.invited_by
    if invitation.platform_role and not may_on_platform(inviter, Permission.MANAGE_PEOPLE):
        return False
    if not extras.may_all(invitation.grants, inviter, invitation.tenant):
        return False
    return invitation.tenant.is_active and tenancy.may(inviter, invitation.tenant_id, Permission.MANAGE_MEMBERS)


def may_give_platform_roles(user: User) -> bool:
    """Whether this person's invitations may include a platform role."""
    return may_on_platform(user, Permission.MANAGE_PEOPLE)


def digest(secret: str) -> str:
    """The SHA-256 digest of a link's secret, as stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def send_work() -> list[QuerySet[Any, Any]]:
    """Letters that are due now or soon (see `due_work`)."""
    return [InvitationMail.objects.filter(due_at__lte=due_work.horizon())]
