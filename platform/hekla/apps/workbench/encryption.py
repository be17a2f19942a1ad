"""Encryption of the secrets that tools demand of the proxy, and of the cookies of their origins."""

import secrets

from hekla.apps.ciphers import EncryptedColumn

_BYTES = 32
COLUMN = EncryptedColumn("workbench.ToolSession", "secret", "hekla: secrets of tools")


def make_secret() -> tuple[str, bytes]:
    """A new secret, and its encrypted form for the database."""
    secret = secrets.token_hex(_BYTES)
    return secret, COLUMN.encrypt(secret)
