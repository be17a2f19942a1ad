"""Links of invitations that are still to be mailed, as they lie in the database until then."""

from django.conf import settings

from hekla.lib.encryption import Cipher


def closed(link: str) -> bytes:
    """To be kept."""
    return _seal().encrypt(link)


def opened(kept: bytes | memoryview) -> str:
    """The link. Raises Unreadable."""
    return _seal().decrypt(bytes(kept))


def _seal() -> Cipher:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return Cipher([str(key) for key in keys], "hekla: links of invitations")
