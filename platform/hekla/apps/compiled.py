"""Queries that are compiled once and run often.

Django builds the SQL of a query anew each time. For jobs with some columns of their queues, owners and tenants, this
takes several times as long as PostgreSQL needs to find a few rows, and a reconcile reads such rows after every change.
A `CompiledQuery` is declared as an ordinary query, with a `Parameter` for each value that differs from call to call.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from django.core.exceptions import EmptyResultSet
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


_Converter = tuple[int, list[Callable[..., Any]], Any]
"""The place of a column in a row, the functions that convert its value, and the column."""


class _Plan(NamedTuple):
    """The SQL, its parameters, and how its rows become objects. It refers to no connection: threads share it."""

    sql: str
    parameters: tuple[Any, ...]
    model: type[Model]
    converters: tuple[_Converter, ...]
    columns: slice
    names: list[str]
    related: list[RelatedPopulator]
    annotations: Mapping[str, int]
    locks: bool


_Shared = dict[tuple[RelatedPopulator, Any], Any]
"""Related objects by the place of their columns in a row, and their primary keys."""


class CompiledQuery(Generic[Row]):
    """A query for rows of one model, and for the related ones that it selects. It is compiled at its first use.

    `shares`: rows that refer to the same related row get the same object, for lists of many rows with few others. Only
    rows of foreign keys, and only if the objects are read and not changed.
    """

    def __init__(self, declare: Callable[[], QuerySet[Row]], *, shares: bool = False) -> None:
        self.declare, self.shares = declare, shares

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
            converters=_converters(compiler, selected),
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
        return self._objects(plan, _fetched(plan.sql, plan.parameters, values))

    def rows_among(self, name: str, found: QuerySet[Any]) -> list[Row]:
        """The rows with the keys that another query finds, in its order: by columns of the rows themselves, if any.

        `name`: the parameter that stands for the list of these keys, and the only one. Both queries run as one.
        """
        plan = self._plan
        try:
            keys, values = found.values("pk").query.sql_with_params()
        except EmptyResultSet:  # no row is possible
            return []
        [place] = [at for at, one in enumerate(plan.parameters) if isinstance(one, Parameter) and one.name == name]
        parts = plan.sql.split("%s")
        sql = f"{'%s'.join(parts[: place + 1])}ARRAY({keys}){'%s'.join(parts[place + 1 :])}"
        order = ", ".join(_order(plan.model, term) for term in map(str, found.query.order_by))
        bound = (*plan.parameters[:place], *values, *plan.parameters[place + 1 :])
        return self._objects(plan, _fetched(f"{sql} ORDER BY {order}" if order else sql, bound, {}))

    def _objects(self, plan: _Plan, found: list[tuple[Any, ...]]) -> list[Row]:
        shared: _Shared | None = {} if self.shares else None
        return [self._object(plan, list(row), shared) for row in found]

    def _object(self, plan: _Plan, row: list[Any], shared: _Shared | None) -> Row:
        """As Django makes it. `shared`: the related objects of other rows, if they are shared."""
        row = _converted(row, plan.converters)
        made: Row = plan.model.from_db(DEFAULT_DB_ALIAS, plan.names, row[plan.columns])  # type: ignore[assignment]
        for populator in plan.related:
            if shared is None:
                populator.populate(row, made)
            else:
                _populate_shared(populator, row, made, shared)
        for name, at in plan.annotations.items():
            setattr(made, name, row[at])
        return made


def _order(model: type[Model], term: str) -> str:
    """A term of Django's `order_by` as SQL."""
    name, meta, quote = term.removeprefix("-"), model._meta, connection.ops.quote_name
    field: Any = meta.pk if name == "pk" else meta.get_field(name)
    return f"{quote(meta.db_table)}.{quote(field.column)} {'DESC' if term.startswith('-') else 'ASC'}"


class CompiledValues:
    """A query for tuples (`values_list`), also a union of several. It is compiled at its first use."""

    def __init__(self, declare: Callable[[], QuerySet[Any, Any]]) -> None:
        self.declare = declare

    @cached_property
    def _plan(self) -> tuple[str, tuple[Any, ...], tuple[_Converter, ...]]:
        compiler = self.declare().query.get_compiler(using=DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        return sql, tuple(parameters), _converters(compiler, [column for column, *_ in compiler.select])

    def rows(self, **values: object) -> list[tuple[Any, ...]]:
        """The tuples for these values of the parameters."""
        sql, parameters, converters = self._plan
        found = _fetched(sql, parameters, values)
        return [tuple(_converted(list(row), converters)) for row in found] if converters else found


class CompiledChecks:
    """Several questions whether a query, or one of a few, finds any row: one statement, compiled at its first use."""

    def __init__(self, declare: Callable[[], Mapping[str, Iterable[QuerySet[Any, Any]]]]) -> None:
        self.declare = declare

    @cached_property
    def _plan(self) -> tuple[tuple[str, ...], str, tuple[Any, ...]]:
        parameters: list[Any] = []
        declared = {name: [_exists(query, parameters) for query in queries] for name, queries in self.declare().items()}
        columns = ", ".join(" OR ".join(conditions) for conditions in declared.values())
        return tuple(declared), f"SELECT {columns}", tuple(parameters)

    def names(self, **values: object) -> list[str]:
        """The names of the queries that find rows, for these values of the parameters."""
        names, sql, parameters = self._plan
        [found] = _fetched(sql, parameters, values)
        return [name for name, is_found in zip(names, found, strict=True) if is_found]


def _exists(query: QuerySet[Any, Any], parameters: list[Any]) -> str:
    """The condition that the query finds a row. Appends its parameters."""
    sql, own = query.query.exists(limit=False).get_compiler(using=DEFAULT_DB_ALIAS).as_sql()
    parameters.extend(own)
    return f"EXISTS ({sql})"


def _converters(compiler: SQLCompiler, selected: list[Any]) -> tuple[_Converter, ...]:
    return tuple((at, run, column) for at, (run, column) in compiler.get_converters(selected).items())


def _converted(row: list[Any], converters: tuple[_Converter, ...]) -> list[Any]:
    """The row with the values of these columns converted in place."""
    for at, run, column in converters:
        for convert in run:
            row[at] = convert(row[at], column, connection)
    return row


def _fetched(sql: str, parameters: tuple[Any, ...], values: Mapping[str, object]) -> list[tuple[Any, ...]]:
    bound: list[Any] = [values[one.name] if isinstance(one, Parameter) else one for one in parameters]
    with connection.cursor() as cursor:
        cursor.execute(sql, bound)
        return cursor.fetchall()  # type: ignore[no-any-return]


def _populate_shared(populator: Any, row: list[Any], made: Model, shared: _Shared) -> None:  # noqa: ANN401  (its attributes have no types)
    key = populator, row[populator.cols_start + populator.pk_idx]
    if key in shared:
        populator.local_setter(made, shared[key])
        return
    populator.populate(row, made)
    shared[key] = next(reversed(made._state.fields_cache.values()))
