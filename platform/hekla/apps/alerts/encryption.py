"""Encryption of the secrets that sign the webhooks of rules."""

from hekla.apps.ciphers import EncryptedColumn

COLUMN = EncryptedColumn("alerts.AlertRule", "webhook_secret", "hekla: secrets of alert webhooks")
