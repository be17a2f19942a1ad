"""Checks of new jobs by apps above this one, which know limits that this one does not. They register themselves."""

from collections.abc import Callable, Iterator, Sequence

from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Problem
from hekla.domain.jobspec import JobSpec

SpecCheck = Callable[[JobSpec, Tenant], Sequence[Problem]]
_CHECKS: list[SpecCheck] = []


def register(check: SpecCheck) -> None:
    """Let each submission pass this check too."""
    _CHECKS.append(check)


def problems(spec: JobSpec, tenant: Tenant) -> Iterator[Problem]:
    """What these checks find."""
    for check in _CHECKS:
        yield from check(spec, tenant)
