"""Jobs counted by a common value; each group links to the list of its jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Count, F, Model, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain.phases import FINAL_JOB_PHASES, JobPhase

MOST_GROUPS = 100
LABELS = {
    "queue": _("Queue"),
    "tenant": _("Tenant"),
    "owner": _("Owner"),
    "phase": _("State"),
    "kind": _("Kind"),
    "cluster": _("Cluster"),
}
_ROWS: dict[str, tuple[type[Model], str]] = {  # the table and the column of a group's name
    "queue": (Queue, "name"),
    "tenant": (Tenant, "slug"),
    "owner": (User, "username"),
    "cluster": (Cluster, "name"),
}
_FINAL = [phase.value for phase in FINAL_JOB_PHASES]
_SUMS = """
    SELECT key, sum(number)::bigint AS jobs, coalesce(sum(number) FILTER (WHERE phase <> ALL(%s)), 0)::bigint,
        coalesce(sum(number) FILTER (WHERE phase = %s), 0)::bigint
    FROM ({}) AS counted(key, phase, number)
    GROUP BY key ORDER BY jobs DESC, key LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs with the common value `name`. `query`: the URL query of their list."""

    name: str
    jobs: int
    alive: int
    failed: int
    query: str


def of(jobs: QuerySet[Job], by: str, query: QueryDict) -> list[Group]:
    """The groups, largest first; at most `MOST_GROUPS`. `query`: the URL query of the list that is counted.

    Only the group's field and the phase are read, which one index covers for most groups.
    """
    rows = _counts(jobs, f"{by}_id" if by in _ROWS else by)
    names = _names(by, [row[0] for row in rows])
    return [
        Group(name := str(names.get(key, key)), count, alive, failed, _query(query, by, name))
        for key, count, alive, failed in rows
    ]


def _counts(jobs: QuerySet[Job], field: str) -> list[tuple[Any, int, int, int]]:
    """The value of the field, and the number of jobs, unfinished and failed ones with it.

    The jobs are counted by phase first: conditions on each of a hundred thousand take longer than the rest.
    """
    by_phase = jobs.order_by().annotate(key=F(field)).values_list("key", "phase").annotate(number=Count("*"))
    try:
        sql, parameters = by_phase.query.sql_with_params()
    except EmptyResultSet:  # no job is possible
        return []
    with connection.cursor() as cursor:
        cursor.execute(_SUMS.format(sql), [_FINAL, JobPhase.FAILED.value, *parameters, MOST_GROUPS])
        return cursor.fetchall()  # type: ignore[no-any-return]


def _names(by: str, keys: list[Any]) -> Mapping[Any, str]:
    """The names of the groups whose keys are ids."""
    if by not in _ROWS:
        return {}
    model, column = _ROWS[by]
    return dict(model._default_manager.filter(pk__in=keys).values_list("pk", column))


def _query(address: QueryDict, by: str, name: str) -> str:
    query = address.copy()
    for word in ("group", "cursor", by):
        query.pop(word, None)
    query[by] = name
    return query.urlencode()
