"""The secrets that sign webhooks, as they lie in the database."""

import secrets

from django.conf import settings

from hekla.lib.encryption import Cipher

_BYTES = 32


def make() -> tuple[str, bytes]:
    """A new secret, and what of it is kept."""
    secret = f"whs_{secrets.token_urlsafe(_BYTES)}"
    return secret, _seal().encrypt(secret)


def opened(kept: bytes | memoryview) -> str:
    """The secret. Raises Unreadable."""
    return _seal().decrypt(bytes(kept))


def _seal() -> Cipher:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return Cipher([str(key) for key in keys], "hekla: secrets of webhooks")
