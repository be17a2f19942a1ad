"""The secrets of apps as they lie in the database: sealed with a key that is made from the console's own secret."""

from django.conf import settings

from hekla.lib.encryption import Cipher


def seal() -> Cipher:
    """The key for second factors alone."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return Cipher([str(key) for key in keys], "hekla: second factors")
