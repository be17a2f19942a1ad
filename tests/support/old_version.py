"""Checks that the previous version keeps working during and after a migration: expand now, contract a release later.

The rules are those of `platform/decisions/0029-migrations-without-downtime.md`. They cover Django's operations on
PostgreSQL. SQL, and operations that remove something, need a reason in the migration:

    class Migration(migrations.Migration):
        contracts = ("jobs", "0009_code_does_without")   # already released: since then nothing needs this
        harmless = "A function that no version calls."   # only for SQL: why the previous version is unaffected
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path

from django.contrib.postgres import operations as postgres
from django.db import connection, models
from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.fields import NOT_PROVIDED

LARGE = {
    ("jobs", "job"),
    ("jobs", "pod"),
    ("event_log", "loggedevent"),
    ("usage", "sample"),
    ("notifications", "notification"),
}
"""Tables of millions of rows. An operation that locks one while reading it stops the platform."""
_OF_LARGE_APPS = {app for app, _ in LARGE}
_WIDTH = re.compile(r"varchar\((\d+)\)")

Name = tuple[str, str]


def released(file: Path) -> dict[str, set[Name]]:
    """The migrations of each version, as the file lists them below its heading."""
    found: dict[str, set[Name]] = {}
    for line in file.read_text().splitlines():
        if line.startswith("## "):
            version = found.setdefault(line.removeprefix("## "), set())
        elif line and not line.startswith("#"):
            app, name = line.split(".")
            version.add((app, name))
    return found


@dataclass(frozen=True)
class Before:
    """The previous version: its migrations, and the models that they made."""

    migrations: frozenset[Name]
    state: ProjectState

    def knows(self, model: Name, *fields: str) -> bool:
        """Whether it reads and writes this table and all of these columns."""
        known = self.state.models.get(model)
        return known is not None and set(fields) <= set(known.fields)


@dataclass(frozen=True)
class Scene:
    """An operation's context: its migration, the previous version, and the state before it."""

    migration: Migration
    before: Before
    state: ProjectState

    @property
    def contracts(self) -> bool:
        """Whether the migration names the earlier one since which nothing needs what it removes."""
        return hasattr(self.migration, "contracts")

    def model(self, name: str) -> Name:
        """The key of this model of the migration's app."""
        return self.migration.app_label, name.lower()

    def is_known(self, model: str, *fields: str) -> bool:
        """Whether the previous version works with it."""
        return self.before.knows(self.model(model), *fields)

    def is_large(self, model: str) -> bool:
        """Whether the previous version has filled it with too many rows to read quickly."""
        return self.model(model) in LARGE and self.is_known(model)

    def field(self, model: str, name: str) -> models.Field:
        """The field before the operation."""
        found: models.Field = self.state.models[self.model(model)].fields[name]
        return found


def objections(migration: Migration, before: Before, state: ProjectState) -> list[str]:
    """A sentence for each operation that breaks the previous version. `state` is the state before the migration."""
    found = [*_as_a_whole(migration, before)]
    for operation in migration.operations:
        found += [f"{operation.describe()}: {why}" for why in _look(operation, Scene(migration, before, state))]
        state = state.clone()
        operation.state_forwards(migration.app_label, state)
    return found


def _as_a_whole(migration: Migration, before: Before) -> Iterator[str]:
    kinds = {type(operation) for operation in migration.operations}
    if operations.RunPython in kinds and kinds != {operations.RunPython}:
        yield "rows are changed in the same transaction as tables, which stay locked for so long: make two migrations"
    if operations.RunPython in kinds and migration.atomic and migration.app_label in _OF_LARGE_APPS:
        yield "rows of a large table are changed in one transaction: set `atomic = False`, and change them in batches"
    gave_up = getattr(migration, "contracts", None)
    if gave_up is not None and gave_up not in before.migrations:
        yield f"{'.'.join(gave_up)} is in no release yet, so what it gave up cannot be taken away"


@singledispatch
def _look(_operation: Operation, _at: Scene) -> Iterator[str]:
    yield "no rule says what this does to the version before"


@_look.register(operations.CreateModel)
@_look.register(operations.AlterModelTableComment)
@_look.register(operations.AlterModelOptions)
@_look.register(operations.AlterModelManagers)
@_look.register(operations.AlterConstraint)  # of what is said where it is broken
@_look.register(operations.RenameIndex)
@_look.register(postgres.AddIndexConcurrently)
@_look.register(postgres.RemoveIndexConcurrently)
@_look.register(postgres.ValidateConstraint)
@_look.register(postgres.CreateExtension)
def _is_harmless(_operation: Operation, _at: Scene) -> Iterator[str]:
    yield from ()


_REMOVED = (
    "the version before still uses it: give it up by SeparateDatabaseAndState(state_operations=[…]), and drop it by "
    "SQL a release later"
)
_RENAMED = "the version before knows the old name: add anew, fill both, and give up the old one a release later"


@_look.register
def _deletes_model(operation: operations.DeleteModel, at: Scene) -> Iterator[str]:
    if at.is_known(operation.name):
        yield _REMOVED


@_look.register
def _removes_field(operation: operations.RemoveField, at: Scene) -> Iterator[str]:
    if at.is_known(operation.model_name, operation.name):
        yield _REMOVED


@_look.register
def _renames_model(operation: operations.RenameModel, at: Scene) -> Iterator[str]:
    if at.is_known(operation.old_name):
        yield _RENAMED


@_look.register
def _renames_table(operation: operations.AlterModelTable, at: Scene) -> Iterator[str]:
    if at.is_known(operation.name):
        yield _RENAMED


@_look.register
def _renames_field(operation: operations.RenameField, at: Scene) -> Iterator[str]:
    if at.is_known(operation.model_name, operation.old_name):
        yield _RENAMED


@_look.register
def _adds_field(operation: operations.AddField, at: Scene) -> Iterator[str]:
    field, default = operation.field, operation.field.db_default
    if field.many_to_many or not at.is_known(operation.model_name):
        return
    if not (field.null or field.generated or default is not NOT_PROVIDED):
        yield "the version before writes rows without it: give it a `db_default`, or let it be null"
    if at.is_large(operation.model_name):
        if field.generated or (default is not NOT_PROVIDED and hasattr(default, "resolve_expression")):
            yield "each row of a large table is written anew: take a constant as `db_default`"
        if field.db_index or field.unique:
            yield "its index locks a large table while it is built: `db_index=False`, and then AddIndexConcurrently"


@_look.register
def _alters_field(operation: operations.AlterField, at: Scene) -> Iterator[str]:
    new = operation.field
    if new.many_to_many or not at.is_known(operation.model_name, operation.name):
        return
    old = at.field(operation.model_name, operation.name)
    if old.db_column != new.db_column:
        yield _RENAMED
    if not _accepts_all_values_of(old, new):
        yield "the table is written anew, or old values do not fit: add another column and fill both"
    if not at.contracts:
        yield from _becomes_stricter(old, new)
    if at.is_large(operation.model_name) and (new.db_index or new.unique) and not (old.db_index or old.unique):
        yield "its index locks a large table while it is built: AddIndexConcurrently"


def _accepts_all_values_of(old: models.Field, new: models.Field) -> bool:
    """Whether PostgreSQL changes the type without rewriting the column."""
    was, becomes = (field.db_parameters(connection)["type"] or "" for field in (old, new))
    narrow, wide = _WIDTH.fullmatch(was), _WIDTH.fullmatch(becomes)
    if narrow and wide:
        return int(narrow[1]) <= int(wide[1])
    return was == becomes or bool(narrow and becomes == "text")


def _becomes_stricter(old: models.Field, new: models.Field) -> Iterator[str]:
    if old.null and not new.null:
        yield "the version before may write null: name in `contracts` the migration since which nothing does"
    if new.unique and not old.unique:
        yield "the version before may write the same twice: name in `contracts` the migration since which nothing does"
    if old.db_default is not NOT_PROVIDED and new.db_default is NOT_PROVIDED and not new.null:
        yield "the version before leaves it to the database: name in `contracts` the migration since which nothing does"


@_look.register
def _adds_constraint(operation: operations.AddConstraint, at: Scene) -> Iterator[str]:
    yield from _demands_more(operation, at)
    if at.is_large(operation.model_name):
        yield "a large table is locked while all rows are checked: AddConstraintNotValid, then ValidateConstraint"


@_look.register(postgres.AddConstraintNotValid)
def _demands_more(operation: operations.AddConstraint, at: Scene) -> Iterator[str]:
    """Columns that the previous version does not know cannot break it: the database fills them in."""
    if at.is_known(operation.model_name, *_fields_of(operation.constraint)) and not at.contracts:
        yield "the version before may write rows that break it: name in `contracts` the migration since which none does"


def _fields_of(constraint: models.BaseConstraint) -> set[str]:
    condition = getattr(constraint, "condition", None)
    inside = condition.referenced_base_fields if condition is not None else ()
    return {*getattr(constraint, "fields", ()), *inside}


@_look.register
def _removes_constraint(operation: operations.RemoveConstraint, at: Scene) -> Iterator[str]:
    if not at.is_known(operation.model_name) or at.contracts:
        return
    known = at.before.state.models[at.model(operation.model_name)].options.get("constraints", [])
    if any(isinstance(one, models.UniqueConstraint) and one.name == operation.name for one in known):
        yield "the version before may insert “on conflict” by it: name in `contracts` since when none does"


@_look.register(operations.AddIndex)
@_look.register(operations.RemoveIndex)
def _changes_index(operation: operations.AddIndex | operations.RemoveIndex, at: Scene) -> Iterator[str]:
    if at.is_large(operation.model_name):
        yield f"nobody may write to a large table meanwhile: {type(operation).__name__}Concurrently"


@_look.register
def _runs_python(operation: operations.RunPython, _at: Scene) -> Iterator[str]:
    if not operation.reversible:
        yield "it cannot be undone: name a `reverse_code`, if only RunPython.noop"


@_look.register
def _runs_sql(operation: operations.RunSQL, at: Scene) -> Iterator[str]:
    if at.contracts:
        return
    if not getattr(at.migration, "harmless", ""):
        yield "say in `harmless` why the version before does not mind, or in `contracts` since when nothing needs it"
    if not operation.reversible:
        yield "it cannot be undone: name a `reverse_sql`"


@_look.register
def _separates(operation: operations.SeparateDatabaseAndState, at: Scene) -> Iterator[str]:
    """Checks the database operations. A column that only the code removes needs a database default."""
    for inner in operation.database_operations:
        yield from _look(inner, at)
    for inner in operation.state_operations:
        if isinstance(inner, operations.RemoveField) and not operation.database_operations:
            field = at.field(inner.model_name, inner.name)
            if not (field.null or field.many_to_many or field.db_default is not NOT_PROVIDED):
                yield f"rows will come without {inner.name}: let it be null, or give it a `db_default`, before"
