"""Encrypts all stored secrets with the present secret key, after `HEKLA_SECRET_KEY` was changed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hekla.apps.alerts import encryption as alerts
from hekla.apps.ciphers import reencrypt
from hekla.apps.clusters import encryption as clusters
from hekla.apps.invitations import encryption as invitations
from hekla.apps.login_sessions import services as login_sessions
from hekla.apps.notifications import encryption as notifications
from hekla.apps.secrets import encryption as secrets
from hekla.apps.signin import encryption as signin
from hekla.apps.workbench import encryption as workbench

COLUMNS = {
    "Cluster credentials": clusters.COLUMN,
    "Metrics tokens of clusters": clusters.METRICS_TOKENS,
    "Job secrets": secrets.COLUMN,
    "Authenticator apps": signin.COLUMN,
    "Webhook secrets": notifications.COLUMN,
    "Secrets of alert webhooks": alerts.COLUMN,
    "Invitation links": invitations.COLUMN,
    "Secrets of tools": workbench.COLUMN,
}


class Command(BaseCommand):
    help = (
        "Encrypt all stored secrets, and sign all sessions, with HEKLA_SECRET_KEY. "
        "Former keys must be in HEKLA_SECRET_KEY_FALLBACKS; afterwards they can be removed."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
        """Print the number of rows of each kind. Raises CommandError if a secret cannot be decrypted."""
        unreadable = []
        for label, column in COLUMNS.items():
            done = reencrypt(column)
            facts = f"{done.changed} re-encrypted, {done.unchanged} up to date, {len(done.unreadable)} unreadable"
            self.stdout.write(f"{label}: {facts}")
            unreadable += [f"{column.model} {pk}" for pk in done.unreadable]
        self.stdout.write(f"Sessions: {login_sessions.renew_signatures()} signed again")
        if unreadable:
            raise CommandError(
                f"Unreadable with the keys in the settings: {', '.join(unreadable[:20])}. "
                "Add the key that encrypted them to HEKLA_SECRET_KEY_FALLBACKS, or set these secrets again."
            )
