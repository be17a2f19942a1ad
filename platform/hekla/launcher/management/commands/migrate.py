"""Django's `migrate`, but refuses a database that this version cannot upgrade.

A newer database has all migrations of this version and more; it is accepted unchanged (decision 0029). A database from
before the migrations were rewritten has unknown migrations and lacks known ones: Django would treat migrations with
the same name as applied.
"""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from hekla.launcher.up.tables import OTHER_VERSION_EXIT_CODE, known_changes, unknown_changes


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401
        """Refuse the database, or migrate it as Django does."""
        recorder = MigrationRecorder(connections[options["database"]])
        applied = [f"{app}.{name}" for app, name in recorder.applied_migrations()]
        if (unknown := unknown_changes(applied)) and not known_changes().issubset(applied):
            raise CommandError(_describe(unknown), returncode=OTHER_VERSION_EXIT_CODE)
        super().handle(*args, **options)


def _describe(unknown: list[str]) -> str:
    more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return (
        "The database was made by an earlier version of Hekla, with changes that this version does not have: "
        f"{unknown[-1]}{more}. Nothing was changed."
    )
