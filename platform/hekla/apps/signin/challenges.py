"""What a key is to sign: made for a page, kept in the session, good once, for one person and a few minutes."""

import secrets
from datetime import timedelta
from enum import StrEnum

from django.http import HttpRequest

from hekla.apps.accounts.models import User
from hekla.lib import clock

LASTS = timedelta(minutes=5)
_BYTES = 32


class Purpose(StrEnum):
    """An answer to one is none to the other."""

    ADD = "key_to_add"
    USE = "key_to_use"


def hand_out(request: HttpRequest, purpose: Purpose, user: User) -> bytes:
    """A new one; the last for this purpose ends."""
    challenge = secrets.token_bytes(_BYTES)
    facts = {"challenge": challenge.hex(), "user": user.pk, "at": clock.now().timestamp()}
    request.session[purpose.value] = facts
    return challenge


def take(request: HttpRequest, purpose: Purpose, user: User) -> bytes | None:
    """The one that was handed out, which ends by this; None where it is too old or another's."""
    facts = request.session.pop(purpose.value, None)
    if facts is None or facts["user"] != user.pk:
        return None
    age = clock.now().timestamp() - facts["at"]
    return bytes.fromhex(facts["challenge"]) if age <= LASTS.total_seconds() else None
