"""Encryption of the secrets of authenticator apps."""

from hekla.apps.ciphers import EncryptedColumn, cipher

_PURPOSE = "hekla: second factors"
COLUMN = EncryptedColumn("signin.SecondFactor", "secret", _PURPOSE)


def encrypt_secret(secret: str) -> bytes:
    """The secret as the database stores it."""
    return cipher(_PURPOSE).encrypt(secret)


def decrypt_secret(stored: bytes | memoryview) -> str:
    """A stored secret, decrypted. Raises DecryptionError."""
    return cipher(_PURPOSE).decrypt(bytes(stored))
