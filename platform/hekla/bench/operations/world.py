"""The cluster, people and queues of the measured console."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from hekla.apps.accounts.models import User
from hekla.apps.clusters import leases
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.prices import services as prices
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.bench.operations.size import OperationsSize
from hekla.domain.prices import PriceSpec

ADMIN = "bench-admin"
MEMBER = "person-0-1"
_CLUSTER = "bench"
_PRICES = {
    **{"name": "Prices of the bench", "currency": "EUR", "cpu": "0.03", "memory": "0.004", "gpu": "1.5"},
    "models": {"NVIDIA-A100-SXM4-80GB": "1.9", "NVIDIA-H100-80GB-HBM3": "3.2"},
    "queues": {"queue-0": "1.2"},
    "windows": [{"days": "all", "begin": 20, "end": 24, "factor": "0.8"}],
}
_PRICED_BEFORE = timedelta(days=399)
"""How long before the simulated day prices begin: all days that are measured have some."""


@dataclass(frozen=True, slots=True)
class BenchTeam:
    """A tenant, its people, and the name of its queue."""

    tenant: Tenant
    people: list[User]
    queue: str


@dataclass(frozen=True, slots=True)
class OperationsWorld:
    """The cluster with the epoch of its lease, and who submits to it."""

    cluster: Cluster
    epoch: int
    members: list[BenchTeam]


def make(size: OperationsSize, now: datetime) -> OperationsWorld:
    """Create everything but nodes. The cluster is not of the kind that measures leave out."""
    cluster = clusters.create(name=_CLUSTER, kind="local", config={}, actor=PLATFORM, now=now)
    admin = User.objects.create(username=ADMIN, password="!", platform_role="admin", date_joined=now)  # noqa: S106  (unusable)
    found = [_tenant(number, size, now) for number in range(size.tenants)]
    names: dict[int, str] = {}
    for number in range(size.queues):
        theirs = [tenant for tenant, _people in found[number :: size.queues]]
        queues.create(cluster=cluster, name=f"queue-{number}", tenants=theirs, actor=PLATFORM, now=now)
        names |= {tenant.pk: f"queue-{number}" for tenant in theirs}
    priced = now - _PRICED_BEFORE
    prices.create(spec=PriceSpec.parse(_PRICES), begin_at=priced, user=admin, now=priced)
    epoch = leases.take(cluster, "bench", now=now)
    if epoch is None:
        raise RuntimeError("Another controller has the cluster.")
    return OperationsWorld(cluster, epoch, [BenchTeam(tenant, people, names[tenant.pk]) for tenant, people in found])


def _tenant(number: int, size: OperationsSize, now: datetime) -> tuple[Tenant, list[User]]:
    tenant = tenancy.create(slug=f"team-{number}", name=f"Team {number}", actor=PLATFORM, now=now)
    names = [f"person-{number}-{place}" for place in range(size.people_per_tenant)]
    people = User.objects.bulk_create(User(username=name, password="!", date_joined=now) for name in names)  # noqa: S106
    Membership.objects.bulk_create(
        Membership(tenant=tenant, user=user, role="member" if place else "admin", since=now)
        for place, user in enumerate(people)
    )
    return tenant, people
