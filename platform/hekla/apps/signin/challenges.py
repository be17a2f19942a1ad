"""Challenges for security keys: created for a page, stored in the session, valid once, for one person and 5 minutes."""

import secrets
from datetime import timedelta
from enum import StrEnum

from django.http import HttpRequest

from hekla.apps.accounts.models import User
from hekla.lib import clock

LASTS = timedelta(minutes=5)
_BYTES = 32


class Purpose(StrEnum):
    """The purpose of a challenge: an answer for one is not valid for the other."""

    ADD = "key_to_add"
    USE = "key_to_use"


def hand_out(request: HttpRequest, purpose: Purpose, user: User) -> bytes:
    """A new challenge, which replaces the last one for this purpose."""
    challenge = secrets.token_bytes(_BYTES)
    facts = {"challenge": challenge.hex(), "user": user.pk, "at": clock.now().timestamp()}
    request.session[purpose.value] = facts
    return challenge


def take(request: HttpRequest, purpose: Purpose, user: User) -> bytes | None:
    """The stored challenge, which this removes; None if there is none, or it is too old or another person's."""
    facts = request.session.pop(purpose.value, None)
    if facts is None or facts["user"] != user.pk:
        return None
    age = clock.now().timestamp() - facts["at"]
    return bytes.fromhex(facts["challenge"]) if age <= LASTS.total_seconds() else None
