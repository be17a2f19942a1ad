"""Questions about queues."""

from django.db.models import Q, QuerySet

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound


def visible_to(user: User) -> QuerySet[Queue]:
    """The queues that exist for this person: those that one of their tenants may submit to."""
    queues = Queue.objects.select_related("cluster", "parent", "changed_by").order_by("cluster_id", "name")
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return queues
    return queues.filter(_usable_by(tenancy.own(user))).distinct()


def open_to(tenant: Tenant) -> QuerySet[Queue]:
    """The queues that members of this tenant may submit to."""
    return Queue.objects.filter(_usable_by([tenant])).select_related("cluster").distinct().order_by("name")


def get(name: str, user: User) -> Queue:
    """The queue of that name. Raises NotFound."""
    queue = visible_to(user).filter(name=name).first()
    if queue is None:
        raise NotFound("There is no such queue.")
    return queue


def all_queues() -> QuerySet[Queue]:
    """Every queue there is."""
    return Queue.objects.order_by("name")


def of_cluster(cluster: Cluster) -> list[Queue]:
    """All queues of a cluster in the order of their creation."""
    return list(Queue.objects.filter(cluster=cluster).select_related("parent").order_by("created_at", "id"))


def _usable_by(tenants: QuerySet[Tenant] | list[Tenant]) -> Q:
    return Q(tenants__isnull=True) | Q(tenants__in=tenants)
