"""Encryption of the secrets that sign webhooks."""

import secrets

from hekla.apps.ciphers import EncryptedColumn, cipher

_BYTES = 32
_PURPOSE = "hekla: secrets of webhooks"
COLUMN = EncryptedColumn("notifications.Preference", "webhook_secret", _PURPOSE)


def make_secret() -> tuple[str, bytes]:
    """A new secret, and its encrypted form for the database."""
    secret = f"whs_{secrets.token_urlsafe(_BYTES)}"
    return secret, cipher(_PURPOSE).encrypt(secret)


def decrypt_secret(stored: bytes | memoryview) -> str:
    """A stored secret, decrypted. Raises DecryptionError."""
    return cipher(_PURPOSE).decrypt(bytes(stored))
