"""Creates, resends, revokes and accepts invitations."""

import secrets
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.invitations import extras, selectors
from hekla.apps.invitations.models import Invitation, InvitationMail
from hekla.apps.tenancy import selectors as tenancy_rights
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, NotFound, Refused

LIFETIME = timedelta(days=7)
MOST_WAITING = 200


def invite(
    tenant: Tenant,
    *,
    role: str,
    email: str = "",
    username: str = "",
    display_name: str = "",
    platform_role: str = "",
    grants: extras.Values | None = None,
    by: User,
    now: datetime,
) -> tuple[Invitation, str]:
    """Create an invitation. Returns it with the secret of its link, available only now. Raises Forbidden, Refused."""
    _require(by, tenant, platform_role)
    if not extras.may_all(grants or {}, by, tenant):
        raise Forbidden(_("Your role does not allow this. Ask a platform admin or a tenant admin."))
    if selectors.waiting(tenant).count() >= MOST_WAITING:
        raise Refused(_("%(most)d invitations are open, the maximum. Revoke some first.") % {"most": MOST_WAITING})
    secret = secrets.token_urlsafe(32)
    with unit_of_work():
        invitation = Invitation.objects.create(
            tenant=tenant,
            role=role,
            email=email,
            username=username,
            display_name=display_name,
            platform_role=platform_role,
            grants=dict(grants or {}),
            digest=selectors.digest(secret),
            invited_by=by,
            created_at=now,
            expires_at=now + LIFETIME,
        )
        event = events.PersonInvited(
            email=email, username=username, role=role, platform_role=platform_role, expires_at=invitation.expires_at
        )
        _tell(invitation, event, actor_of(by), now)
    return invitation, secret


def resend(tenant: Tenant, invitation_id: int, *, by: User, now: datetime) -> tuple[Invitation, str]:
    """Replace the link by a new one, valid for one week. Returns its secret. Raises NotFound, Forbidden."""
    secret = secrets.token_urlsafe(32)
    with unit_of_work():
        invitation = _waiting(tenant, invitation_id)
        _require(by, tenant, invitation.platform_role)
        invitation.digest, invitation.expires_at = selectors.digest(secret), now + LIFETIME
        invitation.invited_by = by
        invitation.save(update_fields=["digest", "expires_at", "invited_by"])
        InvitationMail.objects.filter(invitation=invitation).delete()  # it has the old link
        event = events.InvitationResent(email=invitation.email, expires_at=invitation.expires_at)
        _tell(invitation, event, actor_of(by), now)
    return invitation, secret


def revoke(tenant: Tenant, invitation_id: int, *, by: User, now: datetime) -> None:
    """Revoke an invitation. Raises NotFound, Forbidden."""
    _require(by, tenant, "")
    with unit_of_work():
        invitation = _waiting(tenant, invitation_id)
        invitation.revoked_at = now
        invitation.save(update_fields=["revoked_at"])
        _tell(invitation, events.InvitationRevoked(email=invitation.email), actor_of(by), now)


def accept(secret: str, user: User, *, now: datetime) -> Tenant:
    """Accept an invitation with an existing account. Raises NotFound; Refused for members of the tenant."""
    with unit_of_work():
        invitation = _claim(secret, now)
        _join(invitation, user, now)
    return invitation.tenant


def sign_up(secret: str, *, username: str, password: str | None, display_name: str, now: datetime) -> User:
    """Accept an invitation with a new account. Raises NotFound, Invalid, Refused."""
    with unit_of_work():
        invitation = _claim(secret, now)
        user = accounts.create_user(
            username=username,
            password=password,
            display_name=display_name,
            actor=_part(invitation),
            now=now,
        )
        _join(invitation, user, now)
    return user


def _claim(secret: str, now: datetime) -> Invitation:
    """The open invitation, locked, so that two people with its link cannot both join."""
    found = selectors.by_secret(secret, now=now)
    Invitation.objects.select_for_update().get(pk=found.pk)
    with tenancy_rights.rights_read_once({}):  # the inviter's rights too, as they are behind the lock
        return selectors.by_secret(secret, now=now)


def _join(invitation: Invitation, user: User, now: datetime) -> None:
    inviter = _part(invitation)
    tenancy.add_member(invitation.tenant, user, invitation.role, actor=inviter, now=now)
    extras.give(invitation.grants, invitation.tenant, user, actor=inviter, now=now)
    if invitation.platform_role and not user.platform_role:
        accounts.change_user(user, {"platform_role": invitation.platform_role}, password=None, actor=inviter, now=now)
    invitation.accepted_by, invitation.accepted_at = user, now
    invitation.save(update_fields=["accepted_by", "accepted_at"])
    _tell(invitation, events.InvitationAccepted(username=user.username), actor_of(user), now)


def _part(invitation: Invitation) -> Actor:
    """The invitation as an actor: those who accept it have no rights yet; its sender had them."""
    return Actor(None, f"invitation {invitation.pk}")


def _waiting(tenant: Tenant, invitation_id: int) -> Invitation:
    invitation = selectors.waiting(tenant).select_for_update(of=("self",)).filter(pk=invitation_id).first()
    if invitation is None:
        raise NotFound(_("Unknown invitation."))
    return invitation


def _require(by: User, tenant: Tenant, platform_role: str) -> None:
    tenancy.require(by, tenant, Permission.MANAGE_MEMBERS)
    if platform_role:
        accounts.require(by, Permission.MANAGE_PEOPLE)


def _tell(invitation: Invitation, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"invitation:{invitation.pk}", tenant=invitation.tenant_id, actor=actor, at=now)
