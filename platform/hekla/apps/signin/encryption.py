"""Encryption of the secrets of authenticator apps."""

from hekla.apps.ciphers import EncryptedColumn

COLUMN = EncryptedColumn("signin.SecondFactor", "secret", "hekla: second factors")
