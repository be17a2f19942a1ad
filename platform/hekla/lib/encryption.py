"""Encryption of stored texts (Fernet: AES-128-CBC with HMAC-SHA256)."""

import base64
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class DecryptionError(Exception):
    """The token was encrypted with another key, or was changed."""


class Cipher:
    """Keys for one purpose, derived from secrets: the first one encrypts, all of them decrypt."""

    def __init__(self, secrets: Sequence[str], purpose: str) -> None:
        keys = [Fernet(_key(secret, purpose)) for secret in secrets]
        self._first, self._keys = keys[0], MultiFernet(keys)

    def encrypt(self, text: str) -> bytes:
        """Encrypt a text."""
        return self._keys.encrypt(text.encode())

    def decrypt(self, token: bytes) -> str:
        """Decrypt a token. Raises DecryptionError."""
        try:
            return self._keys.decrypt(token).decode()
        except InvalidToken as error:
            raise DecryptionError("Encrypted with another key, or damaged") from error

    def rotate(self, token: bytes) -> bytes | None:
        """The token encrypted with the first key; None if it already is. Raises DecryptionError."""
        try:
            self._first.decrypt(token)
        except InvalidToken:
            return self.encrypt(self.decrypt(token))
        return None


def derive(secret: str, purpose: str) -> bytes:
    """32 bytes for one purpose, the same each time."""
    return HKDF(SHA256(), 32, salt=None, info=purpose.encode()).derive(secret.encode())


def _key(secret: str, purpose: str) -> bytes:
    return base64.urlsafe_b64encode(derive(secret, purpose))
