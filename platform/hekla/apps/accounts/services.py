"""Changes to people, their sign-in links and API tokens."""

import hashlib
import secrets
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps import limits
from hekla.apps.accounts import selectors
from hekla.apps.accounts.models import ApiToken, SignInLink, User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import SESSION, Scope
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.domain import events
from hekla.domain.errors import Forbidden, Invalid, NotFound, Problem, Refused

LINK_LIFETIME = timedelta(hours=12)
MAX_PROOFS_A_MINUTE = 10
MAX_TOKEN_LIFETIME = timedelta(days=366)
SESSION_TOKEN_PREFIX = "hks_"  # noqa: S105
_OWN_FIELDS = frozenset({"display_name", "time_zone"})
"""What people change about themselves, besides their password."""


def actor_of(user: User) -> Actor:
    """The person as an actor in the event log."""
    return Actor(user.pk, user.username)


def create_user(
    *, username: str, password: str | None, display_name: str = "", platform_role: str = "", actor: Actor, now: datetime
) -> User:
    """Create a person. Without a password they can only sign in by link.

    Raises Forbidden, Invalid, Refused (name in use).
    """
    require_actor(actor, Permission.MANAGE_PEOPLE)
    user = User(username=username, display_name=display_name, platform_role=platform_role, date_joined=now)
    _set_password(user, password)
    try:
        with unit_of_work():
            user.save(force_insert=True)
            record(events.UserCreated(username=username), subject=_subject(user), actor=actor, at=now)
    except IntegrityError as error:
        message = _("The name “%(name)s” is taken. Choose another name.") % {"name": username}
        raise Refused(message, "username") from error
    return user


def change_user(
    user: User,
    values: Mapping[str, Any],
    *,
    password: str | None,
    actor: Actor,
    now: datetime,
    revokes_tokens: bool = False,
) -> None:
    """Change a person's fields, and the password if not empty. People may change their own name and password.

    A new password ends the person's sessions, because each depends on it, and deletes unused sign-in links.
    `revokes_tokens`: revoke all tokens as well. Raises Forbidden, Invalid; Refused for the last platform admin.
    """
    _require_change(actor, user, values)
    with unit_of_work():
        admins = User.objects.select_for_update().filter(platform_role="admin", is_active=True).order_by("pk")
        others = {admin.pk for admin in admins} - {user.pk}
        changes.lock(user)
        _keep_one_admin(user, values, others)
        changed = changes.apply(user, values)
        if password:
            _set_password(user, password)
        user.save(update_fields=[*changed, *(["password"] if password else [])])
        if password:
            SignInLink.objects.filter(user=user, used_at=None).delete()
            record(events.PasswordChanged(username=user.username), subject=_subject(user), actor=actor, at=now)
        record(events.UserChanged(username=user.username, changes=changed), subject=_subject(user), actor=actor, at=now)
        if revokes_tokens:
            for token in selectors.tokens_of(user):
                _revoke(user, now, actor=actor, pk=token.pk)


def prove_password(user: User, password: str) -> None:
    """Check that a request comes from the person, and not from somebody who has only their session.

    People without a password sign in by other means; for them the session is enough. Raises Invalid for a wrong
    password, Refused after too many attempts.
    """
    if not user.has_usable_password():
        return
    if not limits.allows(f"proof:{user.pk}", most=MAX_PROOFS_A_MINUTE, seconds=60):
        raise Refused(_("Too many attempts. Try again in a minute."), "current_password")
    if not user.check_password(password):
        raise Invalid([Problem("current_password", _("Enter your current password."))])


def issue_link(user: User, *, actor: Actor, now: datetime) -> str:
    """Create the secret of a sign-in link: valid once, for twelve hours. Older unused links are deleted.

    Raises Forbidden.
    """
    require_actor(actor, Permission.MANAGE_PEOPLE)
    secret = secrets.token_urlsafe(32)
    with unit_of_work():
        record(events.SignInLinkCreated(username=user.username), subject=_subject(user), actor=actor, at=now)
        SignInLink.objects.filter(user=user, used_at=None).delete()
        SignInLink.objects.create(user=user, digest=_digest(secret), expires_at=now + LINK_LIFETIME)
    return secret


def use_link(secret: str, *, now: datetime) -> User:
    """Use up a sign-in link and return its person. Raises NotFound."""
    with unit_of_work():
        used = SignInLink.objects.filter(digest=_digest(secret), used_at=None, expires_at__gt=now).update(used_at=now)
        if not used:
            raise NotFound(_("This sign-in link was used already or has expired."))
        return User.objects.get(sign_in_links__digest=_digest(secret), is_active=True)


def note_sign_in(user: User, *, method: str, address: str, now: datetime) -> None:
    """Record a sign-in in the event log."""
    with unit_of_work():
        event = events.SignedIn(username=user.username, method=method, address=address)
        record(event, subject=_subject(user), actor=actor_of(user), at=now)


def create_token(
    user: User,
    *,
    name: str,
    lifetime: timedelta,
    now: datetime,
    scopes: Collection[Scope] = (Scope.ADMIN,),
    actor: Actor | None = None,
    is_sign_in: bool = False,
) -> str:
    """Create an API token and return its secret, which is never shown again. Raises Forbidden, Invalid.

    `actor`: by default the person. `is_sign_in`: a program gets it for the password.
    """
    _require_change(actor or actor_of(user), user, {})
    if not name.strip() or not timedelta(0) < lifetime <= MAX_TOKEN_LIFETIME:
        raise Invalid([Problem("name", _("A token needs a name and expires after at most one year."))])
    if not scopes:
        raise Invalid([Problem("scopes", _("Select at least one scope."))])
    values = [scope.value for scope in Scope if scope in scopes]
    secret = f"hk_{secrets.token_urlsafe(32)}"
    with unit_of_work():
        token = ApiToken.objects.create(
            user=user,
            name=name.strip()[:80],
            prefix=secret[:8],
            digest=_digest(secret),
            scopes=values,
            created_at=now,
            expires_at=now + lifetime,
        )
        event = events.TokenCreated(
            name=token.name, scopes=tuple(values), expires_at=token.expires_at, is_sign_in=is_sign_in
        )
        record(event, subject=_subject(user), actor=actor or actor_of(user), at=now)
    return secret


def issue_session_token(user: User, *, name: str, lifetime: timedelta, now: datetime) -> tuple[ApiToken, str]:
    """Create the token of a session that the person opens, and return it with its secret.

    Its digest has a form of its own, so `token_in_force` never finds it. No event: that of the session says it.
    """
    secret = f"{SESSION_TOKEN_PREFIX}{secrets.token_urlsafe(32)}"
    token = ApiToken.objects.create(
        user=user,
        name=name[:80],
        prefix=secret[:9],
        digest=_session_digest(secret),
        scopes=[SESSION],
        created_at=now,
        expires_at=now + lifetime,
    )
    return token, secret


def end_session_token(token_id: int, *, now: datetime) -> None:
    """Revoke the token of a session that ends."""
    ApiToken.objects.filter(pk=token_id, scopes=[SESSION], revoked_at=None).update(revoked_at=now)


def session_token_in_force(secret: str, *, now: datetime) -> ApiToken | None:
    """As `token_in_force`, for tokens of sessions. The caller checks the session."""
    return _in_force(_session_digest(secret), now)


def revoke_token(user: User, token_id: int, *, now: datetime) -> None:
    """Revoke one of a person's tokens. Raises NotFound."""
    _revoke(user, now, actor=actor_of(user), pk=token_id)


def revoke_secret(user: User, secret: str, *, now: datetime) -> None:
    """Revoke the person's token with this secret. Raises NotFound."""
    _revoke(user, now, actor=actor_of(user), digest=_digest(secret))


def _revoke(user: User, now: datetime, *, actor: Actor, **which: object) -> None:
    with unit_of_work():
        token = ApiToken.objects.select_for_update().filter(user=user, revoked_at=None, **which).first()
        if token is None:
            raise NotFound(_("Unknown token."))
        token.revoked_at = now
        token.save(update_fields=["revoked_at"])
        record(events.TokenRevoked(name=token.name), subject=_subject(user), actor=actor, at=now)


def token_in_force(secret: str, *, now: datetime) -> ApiToken | None:
    """The token with this secret, and its person; None if it is unknown, expired, revoked, or the person inactive."""
    return _in_force(_digest(secret), now)


def _in_force(digest: str, now: datetime) -> ApiToken | None:
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=digest, revoked_at=None, expires_at__gt=now, user__is_active=True)
        .first()
    )
    if token is not None and _is_stale(token, now):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def _is_stale(token: ApiToken, now: datetime) -> bool:
    """Whether `last_used_at` is more than a minute old, so that not every request writes it."""
    return token.last_used_at is None or now - token.last_used_at > timedelta(minutes=1)


def require(user: User, permission: Permission) -> None:
    """Raises Forbidden unless the person's platform role has the permission."""
    if not selectors.may(user, permission):
        raise Forbidden(_("Your role does not allow this. Ask a platform admin."))


def person_of(actor: Actor) -> User | None:
    """The person behind an actor, as stored now; None for a part of the platform. Raises Forbidden if inactive."""
    if actor.id is None:
        return None
    user = User.objects.filter(pk=actor.id, is_active=True).first()
    if user is None:
        raise Forbidden(_("Your account is disabled. Ask a platform admin."))
    return user


def require_actor(actor: Actor, permission: Permission) -> None:
    """Raises Forbidden for a person whose platform role lacks the permission; parts of the platform may do anything."""
    user = person_of(actor)
    if user is not None:
        require(user, permission)


def _require_change(actor: Actor, user: User, values: Mapping[str, Any]) -> None:
    if actor.id == user.pk and values.keys() <= _OWN_FIELDS:
        person_of(actor)
    else:
        require_actor(actor, Permission.MANAGE_PEOPLE)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _session_digest(secret: str) -> str:
    return _digest(f"session:{secret}")


def _subject(user: User) -> str:
    return f"user:{user.pk}"


def _set_password(user: User, password: str | None) -> None:
    if password is not None:
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise Invalid([Problem("password", sentence) for sentence in error.messages]) from error
    user.set_password(password)


def _keep_one_admin(user: User, values: Mapping[str, Any], others: Collection[int]) -> None:
    """Raises Refused if nobody would be an active platform admin. `others`: the other ones, locked like the person."""
    is_admin = user.platform_role == "admin" and user.is_active
    stays = values.get("platform_role", "admin") == "admin" and values.get("is_active", True)
    if is_admin and not stays and not others:
        raise Refused(
            _("This is the only platform admin. Make another person a platform admin first."), "platform_role"
        )
