"""Secrets as they lie in the database: sealed with a key that is made from the console's own secret."""

import json
from collections.abc import Mapping

from django.conf import settings
from django.utils.translation import gettext as _

from hekla.domain.errors import NotFound
from hekla.lib.encryption import Cipher, DecryptionError


def closed(values: Mapping[str, str]) -> bytes:
    """To be kept."""
    return _seal().encrypt(json.dumps(dict(values)))


def opened(kept: bytes | memoryview) -> dict[str, str]:
    """What was kept. Raises NotFound where the console's secret is another by now, and the old one is not among
    `SECRET_KEY_FALLBACKS`.
    """
    try:
        values: dict[str, str] = json.loads(_seal().decrypt(bytes(kept)))
    except DecryptionError as error:
        sentence = _(
            "The secrets of this job cannot be decrypted: the secret key of this console has changed. Submit "
            "the job again."
        )
        raise NotFound(sentence) from error
    return values


def _seal() -> Cipher:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return Cipher([str(key) for key in keys], "hekla: secrets of jobs")
