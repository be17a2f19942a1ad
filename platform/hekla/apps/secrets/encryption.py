"""Encryption of job secrets."""

import json
from collections.abc import Mapping

from django.utils.translation import gettext as _

from hekla.apps.ciphers import EncryptedColumn
from hekla.domain.errors import NotFound
from hekla.lib.encryption import DecryptionError

COLUMN = EncryptedColumn("secrets.JobSecrets", "values", "hekla: secrets of jobs")


def encrypt(values: Mapping[str, str]) -> bytes:
    """The secrets as the database stores them."""
    return COLUMN.encrypt(json.dumps(dict(values)))


def decrypt(stored: bytes | memoryview) -> dict[str, str]:
    """Stored secrets. Raises NotFound if the console's secret has changed and the old one is not in
    `SECRET_KEY_FALLBACKS`.
    """
    try:
        values: dict[str, str] = json.loads(COLUMN.decrypt(stored))
    except DecryptionError as error:
        sentence = _(
            "The secrets of this job cannot be decrypted: the secret key of this console has changed. Submit "
            "the job again."
        )
        raise NotFound(sentence) from error
    return values
