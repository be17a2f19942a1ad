"""Migrations since the last release are compatible with the version before them (decision 0029)."""

from pathlib import Path

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently, ValidateConstraint
from django.db import IntegrityError, connection, models, transaction
from django.db.migrations import Migration, RunPython, RunSQL, SeparateDatabaseAndState
from django.db.migrations import operations as on
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState
from django.db.models.functions import Now
from tests.support.old_version import LARGE, Before, objections, released

RELEASED = Path(__file__).with_name("released_migrations.txt")


@pytest.fixture(scope="module")
def loader() -> MigrationLoader:
    return MigrationLoader(None)


def hekla_migrations(loader: MigrationLoader) -> set[tuple[str, str]]:
    return {name for name, found in loader.disk_migrations.items() if found.__module__.startswith("hekla.")}


def test_migrations_since_the_last_release_are_compatible(loader: MigrationLoader) -> None:
    known = {name for version in released(RELEASED).values() for name in version}
    before = Before(frozenset(known), loader.project_state(sorted(known)))
    found = {
        ".".join(name): objections(loader.disk_migrations[name], before, loader.project_state(name, at_end=False))
        for name in sorted(hekla_migrations(loader) - known)
    }
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_released_migrations_exist(loader: MigrationLoader) -> None:
    assert set().union(*released(RELEASED).values()) <= hekla_migrations(loader)


def test_large_tables_exist(loader: MigrationLoader) -> None:
    assert set(loader.project_state().models) >= LARGE


KEY = ("id", models.BigAutoField(primary_key=True))
FIELDS = [
    KEY,
    ("name", models.CharField(max_length=20)),
    ("note", models.CharField(max_length=20, null=True)),
    ("kind", models.CharField(max_length=20, db_default="job")),
]
SMALL, BIG = ("queues", "queue"), ("jobs", "job")


def known_state() -> ProjectState:
    state = ProjectState()
    one_name = models.UniqueConstraint(fields=["name"], name="one_name")
    for app, model in (SMALL, BIG):
        state.add_model(ModelState(app, model, FIELDS, {"constraints": [one_name.clone()]}))
    return state


def objections_to(app: str, *operations: Operation, **attributes: object) -> list[str]:
    """The objections to a migration with these operations on tables of the version before."""
    migration = type("Migration", (Migration,), {"operations": list(operations), **attributes})("0009_next", app)
    return objections(migration, Before(frozenset({("jobs", "0008_before")}), known_state()), known_state())


ACCEPTED: dict[str, tuple[str, list[Operation]]] = {
    "a new table": ("jobs", [on.CreateModel("New", [KEY])]),
    "a column that may be empty": ("jobs", [on.AddField("job", "new", models.TextField(null=True))]),
    "a column that the database fills": ("jobs", [on.AddField("job", "new", models.TextField(db_default=""))]),
    "a column of a new table": (
        "jobs",
        [on.CreateModel("New", [KEY]), on.AddField("new", "field", models.TextField(default=""))],
    ),
    "a wider column": ("jobs", [on.AlterField("job", "name", models.CharField(max_length=40))]),
    "a column without a limit": ("jobs", [on.AlterField("job", "name", models.TextField())]),
    "other choices": ("jobs", [on.AlterField("job", "name", models.CharField(max_length=20, choices=[("a", "A")]))]),
    "an index of a small table": ("queues", [on.AddIndex("queue", models.Index(fields=["name"], name="by_name"))]),
    "an index that locks nobody out": (
        "jobs",
        [AddIndexConcurrently("job", models.Index(fields=["name"], name="by_name"))],
    ),
    "a column that the code gives up": (
        "jobs",
        [SeparateDatabaseAndState(state_operations=[on.RemoveField("job", "note")])],
    ),
    "a table that the code gives up": ("jobs", [SeparateDatabaseAndState(state_operations=[on.DeleteModel("Job")])]),
    "a rule about a new column": (
        "queues",
        [
            on.AddField("queue", "new", models.IntegerField(db_default=0)),
            on.AddConstraint("queue", models.CheckConstraint(condition=models.Q(new__gte=0), name="not_less")),
        ],
    ),
    "rows changed by themselves": ("queues", [RunPython(RunPython.noop, RunPython.noop)]),
}


@pytest.mark.parametrize(("app", "operations"), ACCEPTED.values(), ids=ACCEPTED)
def test_compatible_operations_are_accepted(app: str, operations: list[Operation]) -> None:
    assert objections_to(app, *operations) == []


CHECK = models.CheckConstraint(condition=~models.Q(name=""), name="has_name")
REFUSED: dict[str, tuple[str, list[Operation], str]] = {
    "a column that it does not fill": (
        "jobs",
        [on.AddField("job", "new", models.TextField(default=""))],
        "`db_default`",
    ),
    "a large table written anew": (
        "jobs",
        [on.AddField("job", "new", models.DateTimeField(db_default=Now()))],
        "take a constant",
    ),
    "an index with a column": (
        "jobs",
        [on.AddField("job", "new", models.TextField(null=True, db_index=True))],
        "AddIndexConcurrently",
    ),
    "a column removed": ("queues", [on.RemoveField("queue", "note")], "still uses it"),
    "a table removed": ("queues", [on.DeleteModel("Queue")], "still uses it"),
    "a column renamed": ("queues", [on.RenameField("queue", "note", "remark")], "the old name"),
    "a table renamed": ("queues", [on.RenameModel("Queue", "Line")], "the old name"),
    "another table": ("queues", [on.AlterModelTable("queue", "line")], "the old name"),
    "another column": (
        "queues",
        [on.AlterField("queue", "name", models.CharField(max_length=20, db_column="label"))],
        "the old name",
    ),
    "no null": ("queues", [on.AlterField("queue", "note", models.CharField(max_length=20))], "may write null"),
    "another type": ("queues", [on.AlterField("queue", "name", models.IntegerField())], "written anew"),
    "a narrower column": ("queues", [on.AlterField("queue", "name", models.CharField(max_length=10))], "do not fit"),
    "nothing twice": (
        "queues",
        [on.AlterField("queue", "name", models.CharField(max_length=20, unique=True))],
        "the same twice",
    ),
    "no default": (
        "queues",
        [on.AlterField("queue", "kind", models.CharField(max_length=20))],
        "leaves it to the database",
    ),
    "a rule": ("queues", [on.AddConstraint("queue", CHECK)], "rows that break it"),
    "a rule that old rows need not keep": ("queues", [AddConstraintNotValid("queue", CHECK)], "rows that break it"),
    "no unique names": ("queues", [on.RemoveConstraint("queue", "one_name")], "“on conflict”"),
    "an index of a large table": (
        "jobs",
        [on.AddIndex("job", models.Index(fields=["name"], name="by_name"))],
        "AddIndexConcurrently",
    ),
    "rows that cannot be changed back": ("queues", [RunPython(RunPython.noop)], "`reverse_code`"),
    "rows and tables at once": (
        "queues",
        [on.CreateModel("New", [KEY]), RunPython(RunPython.noop, RunPython.noop)],
        "make two migrations",
    ),
    "many rows in one transaction": ("jobs", [RunPython(RunPython.noop, RunPython.noop)], "`atomic = False`"),
    "SQL that says nothing": ("queues", [RunSQL("SELECT 1", "SELECT 1")], "`harmless`"),
    "a column given up that the database does not fill": (
        "queues",
        [SeparateDatabaseAndState(state_operations=[on.RemoveField("queue", "name")])],
        "rows will come without name",
    ),
    "what no rule knows": ("queues", [on.AlterUniqueTogether("queue", {("name", "kind")})], "no rule says"),
}  # fmt: skip


@pytest.mark.parametrize(("app", "operations", "why"), REFUSED.values(), ids=REFUSED)
def test_incompatible_operations_are_refused(app: str, operations: list[Operation], why: str) -> None:
    (sentence,) = objections_to(app, *operations)
    assert why in sentence


CONTRACTS: dict[str, Operation] = {
    "drop": RunSQL("ALTER TABLE queues_queue DROP COLUMN note"),
    "no null": on.AlterField("queue", "note", models.CharField(max_length=20)),
    "a rule": on.AddConstraint("queue", CHECK),
    "no unique names": on.RemoveConstraint("queue", "one_name"),
}


@pytest.mark.parametrize("operation", CONTRACTS.values(), ids=CONTRACTS)
def test_contraction_needs_a_released_expansion(operation: Operation) -> None:
    assert objections_to("queues", operation, contracts=("jobs", "0008_before")) == []
    (sentence,) = objections_to("queues", operation, contracts=("jobs", "0009_next"))
    assert "in no release yet" in sentence


def test_sql_marked_harmless_is_accepted() -> None:
    assert (
        objections_to("queues", RunSQL("CREATE FUNCTION f()", "DROP FUNCTION f()"), harmless="No version calls it.")
        == []
    )


def test_constraint_on_a_large_table_needs_two_steps() -> None:
    (sentence,) = objections_to("jobs", on.AddConstraint("job", CHECK), contracts=("jobs", "0008_before"))
    assert "AddConstraintNotValid, then ValidateConstraint" in sentence
    steps = [AddConstraintNotValid("job", CHECK), ValidateConstraint("job", "has_name")]
    assert objections_to("jobs", *steps, contracts=("jobs", "0008_before")) == []


def apply_to_table(*operations: Operation) -> None:
    """Apply these operations to a table of the version before, as `migrate` does."""
    state = ProjectState()
    with connection.schema_editor() as editor:
        for operation in [on.CreateModel("Remark", FIELDS), *operations]:
            after = state.clone()
            operation.state_forwards("queues", after)
            operation.database_forwards("queues", editor, state, after)
            state = after


OLD_ROW = "INSERT INTO queues_remark (name, note, kind) VALUES ('old', NULL, 'job')"
NEW_ROW = "INSERT INTO queues_remark (name) VALUES ('new')"


def write(row: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(row)


NEW_COLUMNS = [
    models.TextField(null=True),
    models.TextField(db_default=""),
    models.IntegerField(db_default=0, default=0),
]


@pytest.mark.django_db
@pytest.mark.parametrize("field", NEW_COLUMNS)
def test_old_version_writes_rows_with_a_new_column(field: models.Field) -> None:
    apply_to_table(on.AddField("remark", "new", field))
    write(OLD_ROW)


@pytest.mark.django_db
def test_default_without_db_default_breaks_the_old_version() -> None:
    """The reason for `db_default`: Django drops its own default after it has filled the old rows."""
    apply_to_table(on.AddField("remark", "new", models.TextField(default="")))
    with pytest.raises(IntegrityError):
        write(OLD_ROW)


@pytest.mark.django_db
@pytest.mark.parametrize("column", ["note", "kind"])
def test_both_versions_write_rows_while_a_column_is_removed(column: str) -> None:
    apply_to_table(SeparateDatabaseAndState(state_operations=[on.RemoveField("remark", column)]))
    write(OLD_ROW)
    write(NEW_ROW)
