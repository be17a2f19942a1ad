"""Jobs counted by a common value; each group links to the list of its jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Model, Q, QuerySet
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
    field = f"{by}_id" if by in _ROWS else by
    counts = (
        jobs.order_by()
        .values_list(field)
        .annotate(
            jobs=Count("phase"),
            alive=Count("phase", filter=~Q(phase__in=_FINAL)),
            failed=Count("phase", filter=Q(phase=JobPhase.FAILED)),
        )
        .order_by("-jobs", field)[:MOST_GROUPS]
    )
    rows = list(counts)
    names = _names(by, [row[0] for row in rows])
    return [
        Group(name := str(names.get(key, key)), count, alive, failed, _query(query, by, name))
        for key, count, alive, failed in rows
    ]


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
