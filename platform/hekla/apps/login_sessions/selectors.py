"""Queries for login sessions. Django's session decides whether one is valid: the row here only describes it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db.models.functions import MD5
from django.utils.crypto import constant_time_compare

from hekla.apps.accounts.models import User
from hekla.apps.login_sessions.models import LoginSession


def of(user: User, *, now: datetime) -> Sequence[LoginSession]:
    """The browsers in which this person is signed in now, the last active first."""
    login_sessions = list(LoginSession.objects.filter(user=user).order_by("-last_active_at", "-pk"))
    sessions = Session.objects.filter(
        session_key__in=[login_session.session_key for login_session in login_sessions], expire_date__gt=now
    )
    open_keys = {session.session_key for session in sessions if _is_of(session, user)}
    return [login_session for login_session in login_sessions if login_session.session_key in open_keys]


def session_data(session_key: str, user: User, *, now: datetime) -> dict[str, Any] | None:
    """The data of the session in which this person is signed in; None if it is no longer valid."""
    session = Session.objects.filter(session_key=session_key, expire_date__gt=now).first()
    return session.get_decoded() if session is not None and _is_of(session, user) else None


def session_fingerprints(sessions: Mapping[str, int], *, known: Mapping[str, str], now: datetime) -> dict[str, str]:
    """A proof of validity for each valid session. `sessions`: the person's id by session key.

    The proof is a digest of the session's data and the password. `known`: the proofs of the last call; sessions with
    an unchanged proof are not read again.
    """
    passwords = dict(User.objects.filter(pk__in=set(sessions.values())).values_list("pk", MD5("password")))
    lasting = Session.objects.filter(session_key__in=sessions, expire_date__gt=now)
    marks = lasting.values_list("session_key", MD5("session_data"))
    found = {key: mark + passwords.get(sessions[key], "") for key, mark in marks}
    changed = {key for key, proof in found.items() if known.get(key) != proof}
    users = User.objects.in_bulk({sessions[key] for key in changed})
    read = {session.session_key: session for session in lasting.filter(session_key__in=changed)}
    theirs = {key for key in read if (user := users.get(sessions[key])) and _is_of(read[key], user)}
    return {key: proof for key, proof in found.items() if key not in changed or key in theirs}


def user_of(session_data: Mapping[str, Any]) -> User | None:
    """The person who is signed in by a session with these data; None if nobody is any more."""
    user = User.objects.filter(pk=session_data.get(SESSION_KEY) or 0, is_active=True).first()
    return user if user is not None and _proves(session_data, user) else None


def _is_of(session: Session, user: User) -> bool:
    session_data = session.get_decoded()
    return session_data.get(SESSION_KEY) == str(user.pk) and _proves(session_data, user)


def _proves(session_data: Mapping[str, Any], user: User) -> bool:
    """Whether the session was made with the person's present password, with the present or a former secret key."""
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return any(constant_time_compare(session_data.get(HASH_SESSION_KEY, ""), one) for one in hashes)
