"""Encryption of cluster credentials: for the database, and for a form that is shown again for corrections."""

import json
from datetime import datetime, timedelta

from hekla.apps.ciphers import EncryptedColumn, cipher
from hekla.lib.encryption import DecryptionError

FORM_LIFETIME = timedelta(hours=1)
_IN_FORMS = "hekla: keys in forms"
COLUMN = EncryptedColumn("clusters.StoredClusterKey", "ciphertext", "hekla: keys to clusters")
METRICS_TOKENS = EncryptedColumn("clusters.StoredMetricsToken", "ciphertext", "hekla: tokens for metrics of clusters")


def encrypt_for_form(key: str, *, by: int, now: datetime) -> str:
    """The credentials as a hidden field, so that a corrected form does not ask again. For this person, for one hour."""
    return cipher(_IN_FORMS).encrypt(json.dumps([key, by, now.timestamp()])).decode()


def decrypt_from_form(text: str, *, by: int, now: datetime) -> str | None:
    """The credentials of a hidden field; None if it belongs to another person, has expired or was changed."""
    try:
        key, person, at = json.loads(cipher(_IN_FORMS).decrypt(text.encode()))
    except DecryptionError:
        return None
    is_fresh = now.timestamp() - at <= FORM_LIFETIME.total_seconds()
    return str(key) if person == by and is_fresh else None
