"""Queries that are compiled once and run often.

Django builds the SQL of a query anew each time. For jobs with some columns of their queues, owners and tenants, this
takes several times as long as PostgreSQL needs to find a few rows, and a reconcile reads such rows after every change.
A `CompiledQuery` is declared as an ordinary query, with a `Parameter` for each value that differs from call to call.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import BooleanField, Expression, F, Field, Func, Model, QuerySet
from django.db.models.query import RelatedPopulator, get_related_populators
from django.db.models.sql.compiler import SQLCompiler
from django.db.transaction import TransactionManagementError

Row = TypeVar("Row", bound=Model)


class Parameter(Expression):
    """A value that the caller of a compiled query passes by this name. `field`: its type."""

    def __init__(self, name: str, field: "Field[Any, Any]") -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, _compiler: SQLCompiler, _connection: object) -> tuple[str, list[Any]]:  # type: ignore[override]
        """A placeholder; the parameter itself stands for the value until the query runs."""
        return "%s", [self]


class OneOf(Func):
    """A condition: the column has one of the values in the list that the caller passes by this name.

    An `in` has a placeholder for each value, so its SQL is another for each length.
    """

    template, arg_joiner = "%(expressions)s)", " = ANY("
    output_field = BooleanField()

    def __init__(self, column: str, name: str, field: "Field[Any, Any]") -> None:
        super().__init__(F(column), Parameter(name, field))


class _Plan(NamedTuple):
    """The SQL, its parameters, and how its rows become objects. It refers to no connection: threads share it."""

    sql: str
    parameters: tuple[Any, ...]
    model: type[Model]
    converters: tuple[tuple[int, list[Callable[..., Any]], Any], ...]
    columns: slice
    names: list[str]
    related: list[RelatedPopulator]
    annotations: Mapping[str, int]
    locks: bool


class CompiledQuery(Generic[Row]):
    """A query for rows of one model, and for the related ones that it selects. It is compiled at its first use."""

    def __init__(self, declare: Callable[[], QuerySet[Row]]) -> None:
        self.declare = declare

    @cached_property
    def _plan(self) -> _Plan:
        query = self.declare().query
        compiler = query.get_compiler(using=DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        kind, selected = compiler.klass_info, [column for column, *_ in compiler.select]
        columns = slice(kind["select_fields"][0], kind["select_fields"][-1] + 1)
        return _Plan(
            sql=sql,
            parameters=tuple(parameters),
            model=kind["model"],
            converters=tuple((at, run, column) for at, (run, column) in compiler.get_converters(selected).items()),
            columns=columns,
            names=[column.target.attname for column in selected[columns]],
            related=get_related_populators(kind, compiler.select, DEFAULT_DB_ALIAS),  # type: ignore[call-arg]
            annotations=compiler.annotation_col_map or {},
            locks=query.select_for_update,
        )

    def rows(self, **values: object) -> list[Row]:
        """The rows for these values of the parameters. Raises TransactionManagementError if it locks outside one."""
        plan = self._plan
        if plan.locks and connection.get_autocommit():  # Django looks only when it compiles
            raise TransactionManagementError("Rows are locked until the end of a transaction, and there is none.")
        bound: list[Any] = [values[one.name] if isinstance(one, Parameter) else one for one in plan.parameters]
        with connection.cursor() as cursor:
            cursor.execute(plan.sql, bound)
            return [self._object(plan, list(row)) for row in cursor.fetchall()]

    def _object(self, plan: _Plan, row: list[Any]) -> Row:
        """As Django makes it."""
        for at, converters, column in plan.converters:
            for convert in converters:
                row[at] = convert(row[at], column, connection)
        made: Row = plan.model.from_db(DEFAULT_DB_ALIAS, plan.names, row[plan.columns])  # type: ignore[assignment]
        for populator in plan.related:
            populator.populate(row, made)
        for name, at in plan.annotations.items():
            setattr(made, name, row[at])
        return made
