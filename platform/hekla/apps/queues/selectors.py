"""Questions about queues."""

from collections.abc import Sequence

from django.db.models import Q, QuerySet

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.errors import NotFound


def visible_to(user: User, rights: Rights | None = None) -> QuerySet[Queue]:
    """The queues that exist for this person: those that one of their tenants may submit to.

    `rights`: where they were read already.
    """
    queues = Queue.objects.select_related("cluster", "parent", "state_by").order_by("cluster_id", "name")
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return queues
    return queues.filter(_usable_by(rights.tenants if rights else tenancy.own(user))).distinct()


def open_to(tenant: Tenant) -> QuerySet[Queue]:
    """The queues that members of this tenant may submit to."""
    return Queue.objects.filter(_usable_by([tenant])).select_related("cluster").distinct().order_by("name")


def get(name: str, user: User, rights: Rights | None = None) -> Queue:
    """The queue of that name. Raises NotFound."""
    queue = visible_to(user, rights).filter(name=name).first()
    if queue is None:
        raise NotFound("There is no such queue.")
    return queue


def tenants_for(queue: Queue, user: User, rights: Rights) -> list[Tenant]:
    """The tenants that may submit there, as far as they exist for this person; none where all may."""
    tenants = queue.tenants.order_by("name")
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        tenants = tenants.filter(pk__in=[tenant.pk for tenant in rights.tenants])
    return list(tenants)


def all_queues() -> QuerySet[Queue]:
    """Every queue there is."""
    return Queue.objects.order_by("name")


def of_cluster(cluster: Cluster) -> list[Queue]:
    """All queues of a cluster in the order of their creation."""
    return list(Queue.objects.filter(cluster=cluster).select_related("parent").order_by("created_at", "id"))


def _usable_by(tenants: QuerySet[Tenant] | Sequence[Tenant]) -> Q:
    return Q(tenants__isnull=True) | Q(tenants__in=tenants)
