"""An edit of a row: lock it, change some fields, and save only these. The changes are for its event."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar, cast

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.domain.errors import NotFound
from hekla.domain.events import FieldChange

M = TypeVar("M", bound=Model)
Check = Callable[[], None]
_precondition: ContextVar[Check | None] = ContextVar("precondition", default=None)


@contextmanager
def requiring(check: Check | None) -> Iterator[None]:
    """Within this block, `check` is called once, when the first row is locked; it raises if the edit must not go on.

    So a person's edit of what they have read is compared with what is stored while nobody else can change it.
    """
    token = _precondition.set(check)
    try:
        yield
    finally:
        _precondition.reset(token)


def lock(row: Model) -> None:
    """Read the row again, and lock it until the transaction ends: others may have changed it since it was read.

    Raises NotFound if it was deleted, and what the check of `requiring` raises.
    """
    with _checked():
        row.refresh_from_db(from_queryset=_for_update(_model_of(row)))


def locked(row: M) -> M:
    """The same as a new object; `row` stays as it was read. Raises what `lock` raises."""
    with _checked():
        found: list[M] = _locked_rows(_model_of(row)).rows(pk=row.pk)
        if not found:
            raise ObjectDoesNotExist
        return found[0]


@cache
def _locked_rows(model: type[M]) -> CompiledQuery[M]:
    """Nearly every change by a person begins with it."""
    return CompiledQuery(lambda: _for_update(model).filter(pk=Parameter("pk", model._meta.pk)))


def _model_of(row: M) -> type[M]:
    return cast("type[M]", row._meta.model)  # `type(row)` may be that of a lazy object


def _for_update(model: type[M]) -> QuerySet[M]:
    return model._default_manager.select_for_update(of=("self",))


@contextmanager
def _checked() -> Iterator[None]:
    """Around the statement that locks a row."""
    try:
        yield
    except ObjectDoesNotExist as error:
        raise NotFound(_("It was deleted meanwhile.")) from error
    if check := _precondition.get():
        _precondition.set(None)
        check()


def apply(row: Model, values: Mapping[str, Any]) -> dict[str, FieldChange]:
    """Set the fields on the row, without saving it, and return the fields that changed."""
    changes = {
        name: FieldChange(old=getattr(row, name), new=value)
        for name, value in values.items()
        if getattr(row, name) != value
    }
    for name, value in values.items():
        setattr(row, name, value)
    return changes


def edit(row: Model, values: Mapping[str, Any]) -> dict[str, FieldChange]:
    """Lock the row, set these fields, save those that changed, and return them. Raises what `lock` raises."""
    lock(row)
    changes = apply(row, values)
    row.save(update_fields=list(changes))
    return changes


def write(row: Model, **values: object) -> None:
    """Lock the row, set and save these fields, and no others. For fields whose change is in no event."""
    lock(row)
    for name, value in values.items():
        setattr(row, name, value)
    row.save(update_fields=list(values))
