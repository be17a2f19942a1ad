"""Resources that tenants hold now, and their waiting jobs. Simulated clusters do not count."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db.models import Count

from hekla.apps.clusters import selectors as clusters
from hekla.apps.job_history import labels
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job
from hekla.domain.resources import Resources

_ONE_POD = {"pods": 1.0}


@dataclass(slots=True)
class Holding:
    """Held resources, and the numbers of running and waiting jobs, of one tenant or of several together."""

    held: Resources = field(default_factory=Resources)
    running: int = 0
    waiting: int = 0

    def __add__(self, other: "Holding") -> "Holding":
        return Holding(self.held + other.held, self.running + other.running, self.waiting + other.waiting)

    @property
    def words(self) -> str:
        """The held resources in words."""
        return labels.amounts(self.held)


def by_tenant(tenant_ids: Collection[int]) -> dict[int, Holding]:
    """The holding of each of these tenants, by row id."""
    found = {tenant_id: Holding() for tenant_id in tenant_ids}
    running: dict[int, set[int]] = defaultdict(set)
    real = [cluster.pk for cluster in clusters.all_clusters() if not cluster.is_simulated]
    for one in selectors.held(real):
        if one.job.tenant_id in found:
            found[one.job.tenant_id].held += (one.request + _ONE_POD) * len(one.nodes)
            running[one.job.tenant_id].add(one.job.pk)
    pending = Job.objects.filter(tenant_id__in=tenant_ids, deleted_at=None, phase="pending")
    waiting = dict(pending.filter(cluster__in=real).values_list("tenant_id").annotate(count=Count("id")))
    for tenant_id, holding in found.items():
        holding.running, holding.waiting = len(running[tenant_id]), waiting.get(tenant_id, 0)
    return found
