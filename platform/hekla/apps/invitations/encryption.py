"""Encryption of invitation links that are still to be mailed."""

from hekla.apps.ciphers import EncryptedColumn, cipher

_PURPOSE = "hekla: links of invitations"
COLUMN = EncryptedColumn("invitations.InvitationMail", "link", _PURPOSE)


def encrypt_link(link: str) -> bytes:
    """The link as the database stores it."""
    return cipher(_PURPOSE).encrypt(link)


def decrypt_link(stored: bytes | memoryview) -> str:
    """A stored link, decrypted. Raises DecryptionError."""
    return cipher(_PURPOSE).decrypt(bytes(stored))
