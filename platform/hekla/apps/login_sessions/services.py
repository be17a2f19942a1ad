"""Records login sessions, and ends them."""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.login_sessions import selectors
from hekla.apps.login_sessions.models import LoginSession
from hekla.domain import events
from hekla.domain.errors import NotFound

_BATCH = 200


def note(
    login_session_id: int | None, user: User, *, session_key: str, browser: str, address: str, now: datetime
) -> int:
    """Record activity of a browser. Returns the id of its login session, created if needed. There is no event."""
    facts = {"session_key": session_key, "browser": browser[:120], "address": address[:45], "last_active_at": now}
    if login_session_id is not None and LoginSession.objects.filter(pk=login_session_id, user=user).update(**facts):
        return login_session_id
    return LoginSession.objects.create(user=user, since=now, **facts).pk


def end(user: User, login_session_id: int, *, now: datetime) -> None:
    """Sign the person out in one of their browsers. Raises NotFound."""
    chosen = [login_session for login_session in selectors.of(user, now=now) if login_session.pk == login_session_id]
    if not chosen:
        raise NotFound(_("This session has ended already."))
    _end(user, chosen, by=user, now=now)


def end_others(user: User, session_key: str, *, now: datetime) -> int:
    """Sign the person out in all browsers but the one with this session. Returns their number."""
    return _end(user, [v for v in selectors.of(user, now=now) if v.session_key != session_key], by=user, now=now)


def end_all(user: User, *, by: User, now: datetime) -> int:
    """Sign a person out in all browsers, as a platform admin. Returns their number. Raises Forbidden."""
    accounts.require(by, Permission.MANAGE_PEOPLE)
    return _end(user, selectors.of(user, now=now), by=by, now=now)


def _end(user: User, login_sessions: Sequence[LoginSession], *, by: User, now: datetime) -> int:
    """Delete the sessions, and the rows of the person's login sessions without a valid session."""
    keys = {login_session.session_key for login_session in login_sessions}
    with unit_of_work():
        Session.objects.filter(session_key__in=keys).delete()
        left = [login_session.pk for login_session in selectors.of(user, now=now)]
        LoginSession.objects.filter(user=user).exclude(pk__in=left).delete()
        if login_sessions:
            event = events.OtherSessionsRevoked(username=user.username, browsers=len(login_sessions))
            record(event, subject=f"user:{user.pk}", actor=actor_of(by), at=now)
    return len(login_sessions)


def renew_signatures() -> int:
    """Sign all valid sessions with the present secret key, so that a former one can go. Returns their number."""
    renewed, last = 0, ""
    while batch := _renew_batch(last):
        last, count = batch
        renewed += count
    return renewed


def _renew_batch(after: str) -> tuple[str, int] | None:
    """Sign the next sessions. Returns the last key and the number of renewed ones; None after the last batch."""
    store = SessionStore()
    with unit_of_work():
        found = Session.objects.select_for_update().filter(session_key__gt=after).order_by("session_key")
        sessions = list(found[:_BATCH])
        renewed = 0
        for session in sessions:
            data = session.get_decoded()
            user = selectors.user_of(data)
            if user is None or data[HASH_SESSION_KEY] == user.get_session_auth_hash():
                continue
            session.session_data = store.encode({**data, HASH_SESSION_KEY: user.get_session_auth_hash()})
            session.save(update_fields=["session_data"])
            renewed += 1
    return (sessions[-1].session_key, renewed) if sessions else None
