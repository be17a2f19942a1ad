"""Keys to clusters as they lie in the database, and as a form carries one on: sealed by the console's own secret."""

import json
from datetime import datetime, timedelta

from django.conf import settings

from hekla.lib.encryption import Cipher, DecryptionError

CARRIED_FOR = timedelta(hours=1)


def closed(key: str) -> bytes:
    """To be kept."""
    return _seal("hekla: keys to clusters").encrypt(key)


def opened(kept: bytes | memoryview) -> str:
    """The key. Raises Unreadable."""
    return _seal("hekla: keys to clusters").decrypt(bytes(kept))


def carried(key: str, *, by: int, now: datetime) -> str:
    """For a form that is handed back, so that nobody need give it again: of use to this person only, for an hour."""
    return _seal("hekla: keys in forms").encrypt(json.dumps([key, by, now.timestamp()])).decode()


def taken_up(text: str, *, by: int, now: datetime) -> str | None:
    """What `carried` made; None where it was not for this person, is too old, or was changed."""
    try:
        key, person, at = json.loads(_seal("hekla: keys in forms").decrypt(text.encode()))
    except DecryptionError:
        return None
    is_fresh = now.timestamp() - at <= CARRIED_FOR.total_seconds()
    return str(key) if person == by and is_fresh else None


def _seal(purpose: str) -> Cipher:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return Cipher([str(key) for key in keys], purpose)
