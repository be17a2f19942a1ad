"""Encryption with keys derived from the console's own secret, for columns of the database and fields of forms."""

from django.conf import settings

from hekla.lib.encryption import Cipher


def cipher(purpose: str) -> Cipher:
    """The keys for one purpose. Secrets from before, in `SECRET_KEY_FALLBACKS`, decrypt too."""
    return Cipher([str(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)], purpose)
