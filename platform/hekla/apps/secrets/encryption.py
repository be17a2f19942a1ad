"""Encryption of job secrets."""

import json
from collections.abc import Mapping

from django.utils.translation import gettext as _

from hekla.apps.ciphers import EncryptedColumn, cipher
from hekla.domain.errors import NotFound
from hekla.lib.encryption import DecryptionError

_PURPOSE = "hekla: secrets of jobs"
COLUMN = EncryptedColumn("secrets.JobSecrets", "values", _PURPOSE)


def encrypt(values: Mapping[str, str]) -> bytes:
    """The secrets as the database stores them."""
    return cipher(_PURPOSE).encrypt(json.dumps(dict(values)))


def decrypt(stored: bytes | memoryview) -> dict[str, str]:
    """Stored secrets. Raises NotFound if the console's secret has changed and the old one is not in
    `SECRET_KEY_FALLBACKS`.
    """
    try:
        values: dict[str, str] = json.loads(cipher(_PURPOSE).decrypt(bytes(stored)))
    except DecryptionError as error:
        sentence = _(
            "The secrets of this job cannot be decrypted: the secret key of this console has changed. Submit "
            "the job again."
        )
        raise NotFound(sentence) from error
    return values
