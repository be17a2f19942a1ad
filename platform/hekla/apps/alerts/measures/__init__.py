"""What alert rules measure."""

from collections.abc import Sequence

from hekla.apps.alerts.measures import jobs, nodes, rollups
from hekla.apps.alerts.measures.registry import (
    AlertMeasure,
    AlertScope,
    AlertSubject,
    HeldByClusters,
    MeasuredValues,
    SubjectKind,
    of_cluster,
    scope_of,
)
from hekla.domain.errors import Invalid, Problem
from hekla.domain.validation import not_one_of

__all__ = [
    "AlertMeasure",
    "AlertScope",
    "AlertSubject",
    "HeldByClusters",
    "MeasuredValues",
    "SubjectKind",
    "find",
    "of_cluster",
    "offered",
    "scope_of",
]

_ALL: dict[str, AlertMeasure] = {one.name: one for one in (*nodes.MEASURES, *jobs.MEASURES, *rollups.MEASURES)}


def offered(*, for_tenant: bool) -> Sequence[AlertMeasure]:
    """The measures of rules about a tenant, or about the platform."""
    return [one for one in _ALL.values() if one.for_tenants or not for_tenant]


def find(name: str) -> AlertMeasure:
    """The measure of that name. Raises Invalid."""
    if name not in _ALL:
        raise Invalid([Problem("measure", not_one_of(name, list(_ALL)))])
    return _ALL[name]
