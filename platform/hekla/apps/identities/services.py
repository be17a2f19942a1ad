"""Sign-in with a provider: for known people, for invited people, and for people of an allowed domain."""

import re
from contextlib import suppress
from datetime import datetime

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import TenantRole
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.identities.claims import Claims, Provider
from hekla.apps.identities.models import Identity
from hekla.apps.invitations import services as invitations
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.domain import events
from hekla.domain.errors import HeklaError, NotFound, Refused

_LONGEST_NAME = 120


class NotInvited(Refused):
    """The provider knows this person, but they may not sign in here."""


def arrive(provider: Provider, claims: Claims, *, invitation: str, now: datetime) -> User:
    """The user of an identity, created if they may join. Raises NotInvited, NotFound, Refused.

    Accounts are never matched by address or name: otherwise a provider, or anybody who registers there, could take
    over an account.
    """
    with unit_of_work():
        user = _known(claims, now)
        if user is not None:
            if invitation:
                with suppress(HeklaError):  # a member already, or it has expired: they sign in anyway
                    invitations.accept(invitation, user, now=now)
            return user
        user = _join(provider, claims, invitation, now)
        _keep(provider, claims, user, now)
    return user


def connect(provider: Provider, claims: Claims, user: User, *, now: datetime) -> None:
    """Link an identity to a signed-in person. Raises Refused if it is linked already."""
    try:
        with unit_of_work():
            _keep(provider, claims, user, now)
    except IntegrityError as error:
        raise Refused(_("This %s account is already linked to another person.") % provider.label) from error


def disconnect(user: User, identity_id: int, *, now: datetime) -> None:
    """Unlink an identity. Raises NotFound; Refused if it is the person's only sign-in method."""
    with unit_of_work():
        identity = Identity.objects.select_for_update().filter(user=user, pk=identity_id).first()
        if identity is None:
            raise NotFound(_("Unknown linked account."))
        if not user.has_usable_password() and not user.identities.exclude(pk=identity_id).exists():
            raise Refused(_("This is your only sign-in method. Set a password first."))
        identity.delete()
        event = events.IdentityDisconnected(provider=identity.provider)
        record(event, subject=f"user:{user.pk}", actor=actor_of(user), at=now)


def _known(claims: Claims, now: datetime) -> User | None:
    identity = Identity.objects.select_related("user").filter(issuer=claims.issuer, subject=claims.subject).first()
    if identity is None:
        return None
    if not identity.user.is_active:
        raise NotInvited(_("Your account is disabled. Ask a platform admin."))
    Identity.objects.filter(pk=identity.pk).update(last_used_at=now)
    return identity.user


def _join(provider: Provider, claims: Claims, invitation: str, now: datetime) -> User:
    facts = {"username": _free_name(claims), "display_name": claims.name[:_LONGEST_NAME].strip()}
    if invitation:
        return invitations.sign_up(invitation, **facts, password=None, now=now)
    if claims.domain not in {domain.lower() for domain in provider.domains} - {""}:
        raise NotInvited(_("You have no tenant yet. Ask a tenant admin for an invitation."))
    user = account_services.create_user(**facts, password=None, actor=Actor(None, provider.name), now=now)
    tenant = tenancy.all_tenants().filter(slug=provider.tenant, is_active=True).first()
    if tenant is not None:
        tenancy_services.add_member(tenant, user, TenantRole.MEMBER, actor=Actor(None, provider.name), now=now)
    return user


def _keep(provider: Provider, claims: Claims, user: User, now: datetime) -> None:
    Identity.objects.create(
        user=user,
        issuer=claims.issuer,
        subject=claims.subject,
        provider=provider.name,
        created_at=now,
        last_used_at=now,
    )
    event = events.IdentityConnected(provider=provider.name)
    record(event, subject=f"user:{user.pk}", actor=actor_of(user), at=now)


def _free_name(claims: Claims) -> str:
    """The user name from the provider, with a number if it is in use."""
    base = re.sub(r"[^\w.@+-]", "", claims.username)[:100] or "person"
    in_use = set(accounts.everybody().filter(username__istartswith=base).values_list("username", flat=True))
    folded = {name.lower() for name in in_use}
    names = (base if number == 1 else f"{base}{number}" for number in range(1, len(in_use) + 2))
    return next(name for name in names if name.lower() not in folded)
