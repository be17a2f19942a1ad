"""Encryption of cluster keys: for the database, and for a form that is handed back with the key in it."""

import json
from datetime import datetime, timedelta

from hekla.apps.ciphers import cipher
from hekla.lib.encryption import DecryptionError

FORM_LIFETIME = timedelta(hours=1)
_STORED, _IN_FORMS = "hekla: keys to clusters", "hekla: keys in forms"


def encrypt_key(key: str) -> bytes:
    """The key as the database stores it."""
    return cipher(_STORED).encrypt(key)


def decrypt_key(stored: bytes | memoryview) -> str:
    """A stored key. Raises DecryptionError."""
    return cipher(_STORED).decrypt(bytes(stored))


def encrypt_for_form(key: str, *, by: int, now: datetime) -> str:
    """The key as a hidden field, so that a corrected form need not ask for it again. This person's, for an hour."""
    return cipher(_IN_FORMS).encrypt(json.dumps([key, by, now.timestamp()])).decode()


def decrypt_from_form(text: str, *, by: int, now: datetime) -> str | None:
    """The key of a hidden field; None if the field is of another person, expired or changed."""
    try:
        key, person, at = json.loads(cipher(_IN_FORMS).decrypt(text.encode()))
    except DecryptionError:
        return None
    is_fresh = now.timestamp() - at <= FORM_LIFETIME.total_seconds()
    return str(key) if person == by and is_fresh else None
