"""Checks of new jobs by apps above this one, which know limits that this one does not. They register themselves."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Problem

if TYPE_CHECKING:
    from hekla.domain.jobspec import JobSpec

SpecCheck = Callable[["JobSpec", Tenant], Sequence[Problem]]
_CHECKS: list[str] = []


def register(path: str) -> None:
    """Let each submission pass this check too: the dotted path of a `SpecCheck`, imported for the first one."""
    _CHECKS.append(path)


def problems(spec: "JobSpec", tenant: Tenant) -> Iterator[Problem]:
    """What these checks find."""
    for path in _CHECKS:
        check: SpecCheck = import_string(path)
        yield from check(spec, tenant)
