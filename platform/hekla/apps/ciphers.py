"""Encryption with keys derived from the console's secret key, for database columns and form fields."""

from dataclasses import dataclass, field

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Model

from hekla.lib.encryption import Cipher, DecryptionError

_BATCH = 200


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column with texts that are encrypted for one purpose. `model`: as in `apps.get_model`."""

    model: str
    name: str
    purpose: str

    def encrypt(self, text: str) -> bytes:
        """The text as the database stores it."""
        return cipher(self.purpose).encrypt(text)

    def decrypt(self, stored: bytes | memoryview) -> str:
        """A stored text, decrypted. Raises DecryptionError."""
        return cipher(self.purpose).decrypt(bytes(stored))


@dataclass(slots=True)
class Rotation:
    """The numbers of rows that were re-encrypted, that needed nothing, and that no key decrypts (by primary key)."""

    changed: int = 0
    unchanged: int = 0
    unreadable: list[int] = field(default_factory=list)


def cipher(purpose: str) -> Cipher:
    """The cipher for one purpose. It can also decrypt with the former keys in `SECRET_KEY_FALLBACKS`."""
    return Cipher([str(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)], purpose)


def reencrypt(column: EncryptedColumn) -> Rotation:
    """Encrypt all texts of a column with the present key. Rows are locked in batches; repeated runs change nothing."""
    result, model = Rotation(), apps.get_model(column.model)
    last: int | None = 0
    while last is not None:
        last = _reencrypt_batch(model, column, last, result)
    return result


def _reencrypt_batch(model: type[Model], column: EncryptedColumn, after: int, result: Rotation) -> int | None:
    """Re-encrypt the next rows. Returns the last primary key; None after the last batch."""
    key = cipher(column.purpose)
    with transaction.atomic():
        rows = list(model._default_manager.select_for_update().filter(pk__gt=after).order_by("pk")[:_BATCH])
        for row in rows:
            token = bytes(getattr(row, column.name))
            try:
                rotated = key.rotate(token) if token else None
            except DecryptionError:
                result.unreadable.append(row.pk)
                continue
            if rotated is None:
                result.unchanged += 1
            else:
                setattr(row, column.name, rotated)
                row.save(update_fields=[column.name])
                result.changed += 1
    return rows[-1].pk if rows else None
