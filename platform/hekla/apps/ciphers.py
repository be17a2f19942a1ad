"""Encryption with keys derived from the console's secret key, for database columns and form fields."""

from django.conf import settings

from hekla.lib.encryption import Cipher


def cipher(purpose: str) -> Cipher:
    """The cipher for one purpose. It can also decrypt with the former keys in `SECRET_KEY_FALLBACKS`."""
    return Cipher([str(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)], purpose)
