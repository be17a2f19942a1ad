"""Django's command, but it refuses a database that this version cannot upgrade.

A newer database is accepted: it has all migrations of this version and more (decision 0029). A database from before
the initial migrations were rewritten is refused. It has unknown migrations and lacks known ones, or its tables have
other names. Django would treat migrations of the same name as applied.
"""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader

from hekla.launcher.up.tables import OTHER_VERSION_EXIT_CODE, known_changes, unknown_changes


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401
        """Refuse the database, or migrate it as Django does."""
        connection = connections[options["database"]]
        loader = MigrationLoader(connection)
        applied = [f"{app}.{name}" for app, name in loader.applied_migrations]
        unknown = unknown_changes(applied)
        if unknown and not known_changes().issubset(applied):
            raise CommandError(_describe(unknown), returncode=OTHER_VERSION_EXIT_CODE)
        if not unknown and (missing := _missing_tables(connection, loader)):
            raise CommandError(_describe(missing), returncode=OTHER_VERSION_EXIT_CODE)
        super().handle(*args, **options)


def _missing_tables(connection: BaseDatabaseWrapper, loader: MigrationLoader) -> list[str]:
    """The tables that the applied migrations of this code create and the database lacks."""
    applied = [node for node in loader.graph.nodes if node in loader.applied_migrations]
    if not applied:  # Django reads an empty list as all migrations
        return []
    models = loader.project_state(applied).apps.get_models(include_auto_created=True)
    tables = {model._meta.db_table for model in models if model._meta.managed}
    return sorted(tables.difference(connection.introspection.table_names()))


def _describe(differences: list[str]) -> str:
    more = f" and {len(differences) - 1} more" if len(differences) > 1 else ""
    return (
        "The database was created by an earlier version of Hekla, with other migrations than this version: "
        f"{differences[-1]}{more}. Nothing was changed."
    )
