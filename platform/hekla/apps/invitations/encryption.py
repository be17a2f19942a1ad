"""Encryption of invitation links that are still to be mailed."""

from hekla.apps.ciphers import EncryptedColumn

COLUMN = EncryptedColumn("invitations.InvitationMail", "link", "hekla: links of invitations")
