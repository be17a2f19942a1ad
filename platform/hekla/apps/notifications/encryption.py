"""Encryption of the secrets that sign webhooks."""

import secrets

from hekla.apps.ciphers import EncryptedColumn

_BYTES = 32
COLUMN = EncryptedColumn("notifications.Preference", "webhook_secret", "hekla: secrets of webhooks")


def make_secret() -> tuple[str, bytes]:
    """A new secret, and its encrypted form for the database."""
    secret = f"whs_{secrets.token_urlsafe(_BYTES)}"
    return secret, COLUMN.encrypt(secret)
