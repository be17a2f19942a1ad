"""Queries about queues."""

from collections.abc import Collection, Sequence

from django.db.models import BooleanField, F, Func, JSONField, Q, QuerySet, Value
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.compiled import CompiledQuery, OneOf, Parameter
from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.domain import queue_settings
from hekla.domain.errors import NotFound
from hekla.domain.phases import FINAL_JOB_PHASES


def visible_to(user: User, rights: Rights | None = None) -> QuerySet[Queue]:
    """The queues that this person can see: those that one of their tenants may submit to.

    `rights`: pass them if already read.
    """
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return _in_order()
    return _in_order().filter(_usable_by(rights.tenants if rights else tenancy.own(user))).distinct()


def listed_visible_to(user: User, rights: Rights | None = None) -> list[Queue]:
    """The same, read at once: many pages do."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return _EVERY.rows()
    return _VISIBLE_TO.rows(tenants=[tenant.pk for tenant in (rights or tenancy.rights(user)).tenants])


def _in_order() -> QuerySet[Queue]:
    return Queue.objects.select_related("cluster", "parent", "state_by").order_by("cluster_id", "name")


def names(user: User, rights: Rights) -> list[tuple[str, str]]:
    """The names of the same queues and their clusters, for choices."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        rows = _NAMED.rows()
    else:
        rows = _NAMED_FOR.rows(tenants=[tenant.pk for tenant in rights.tenants])
    return [(queue.name, queue.cluster.name) for queue in rows]


def open_to(tenant: Tenant) -> QuerySet[Queue]:
    """The queues that members of this tenant may submit to."""
    return _open(_usable_by([tenant]))


def _open(condition: Q) -> QuerySet[Queue]:
    return Queue.objects.filter(condition).select_related("cluster").distinct().order_by("name")


def listed_open_to(tenant: Tenant) -> list[Queue]:
    """The same, read at once: each submission does."""
    return _OPEN_TO.rows(tenant=tenant.pk)


def get(name: str, user: User, rights: Rights | None = None) -> Queue:
    """The queue of that name. Raises NotFound."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        found = _OF_NAME.rows(name=name)
    else:
        found = _VISIBLE_OF_NAME.rows(name=name, tenants=[one.pk for one in (rights or tenancy.rights(user)).tenants])
    for queue in found:
        return queue
    raise NotFound(_("Unknown queue."))


def federated_visible_to(user: User, rights: Rights | None = None) -> QuerySet[FederatedQueue]:
    """The federated queues that this person can see."""
    federated_queues = FederatedQueue.objects.prefetch_related("tenants", "members__cluster").order_by("name")
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return federated_queues
    tenants = rights.tenants if rights else tenancy.own(user)
    return federated_queues.filter(
        _usable_by(tenants), members__in=Queue.objects.filter(_usable_by(tenants))
    ).distinct()


def federated_open_to(tenant: Tenant) -> QuerySet[FederatedQueue]:
    """The federated queues that members of this tenant may submit to."""
    return _federated(_usable_by([tenant]))


def listed_federated_open_to(tenant: Tenant) -> list[FederatedQueue]:
    """The same, read at once: each form for a job does."""
    return _FEDERATED_OPEN_TO.rows(tenant=tenant.pk)


def _federated(usable: Q) -> QuerySet[FederatedQueue]:
    """`usable`: by whom, of the federated queues and of their members."""
    found = FederatedQueue.objects.filter(usable, members__in=Queue.objects.filter(usable))
    return found.distinct().order_by("name")


def federated(name: str, user: User, rights: Rights | None = None) -> FederatedQueue:
    """The federated queue of that name. Raises NotFound."""
    found = federated_visible_to(user, rights).filter(name=name).first()
    if found is None:
        raise NotFound(_("Unknown federated queue."))
    return found


def visible_members(federated: FederatedQueue, user: User, rights: Rights | None = None) -> list[Queue]:
    """The queues of a federated queue that this person can see, by cluster name."""
    return list(visible_to(user, rights).filter(federated_queues=federated).order_by("cluster__name"))


def members_open_to(federated: FederatedQueue, tenant: Tenant) -> list[Queue]:
    """Queues of a federated queue that members of this tenant may submit to, by cluster name, with cluster health."""
    usable = open_to(tenant).filter(federated_queues=federated).select_related("cluster__health", "state_by")
    return list(usable.order_by("cluster__name"))


def tenants_for(queue: Queue, user: User, rights: Rights) -> list[Tenant]:
    """The tenants that may submit to the queue and that this person can see; empty if all tenants may."""
    tenants = _TENANTS_OF.rows(queue=queue.pk)
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return tenants
    own = {tenant.pk for tenant in rights.tenants}
    return [tenant for tenant in tenants if tenant.pk in own]


def all_queues() -> QuerySet[Queue]:
    """All queues, by name."""
    return Queue.objects.order_by("name")


def of_cluster(cluster: Cluster) -> list[Queue]:
    """All queues of a cluster, in order of creation."""
    return _OF_CLUSTER.rows(cluster=cluster.pk)


def with_hierarchy(cluster: Cluster) -> QuerySet[Queue]:
    """The queues of a cluster that have a path in its hierarchy, by name."""
    return Queue.objects.filter(cluster=cluster).exclude(hierarchy="").order_by("name")


def has_node_groups(cluster: Cluster) -> bool:
    """Whether a queue of the cluster says which node groups its pods use."""
    without = Q(**{field: [] for field in queue_settings.AFFINITY})
    return cluster.pk is not None and Queue.objects.filter(cluster=cluster).exclude(without).exists()


def resources_of_nodes(cluster: Cluster) -> set[str]:
    """The names of the resources that the nodes of a cluster have; CPU, memory and pods always."""
    return {"cpu", "memory", "pods"}.union(*clusters.sizes(cluster))


def unknown_resources(cluster: Cluster, names: Collection[str]) -> set[str]:
    """Those of these resources that no node, no queue and no unfinished job of the cluster names."""
    unknown = set(names) - {"cpu", "memory", "pods"}
    if unknown:  # else, as usual, nothing is read
        unknown -= resources_of_nodes(cluster)
    if unknown:
        queues = Queue.objects.filter(cluster=cluster).values_list("capability", "guarantee", "deserved")
        unknown = unknown.difference(*(amounts for row in queues for amounts in row))
    return {name for name in unknown if not _is_requested(cluster, name)}


def _is_requested(cluster: Cluster, name: str) -> bool:
    """Whether a task of an unfinished job in the cluster requests the resource."""
    path = Value("$.tasks[*].resources.keyvalue().key ? (@ == $name)")
    names_it = Func(
        F("spec"), path, Value({"name": name}, JSONField()), function="jsonb_path_exists", output_field=BooleanField()
    )
    return cluster.jobs.exclude(phase__in=FINAL_JOB_PHASES).filter(names_it).exists()


def _usable_by(tenants: QuerySet[Tenant] | Sequence[Tenant]) -> Q:
    return Q(tenants__isnull=True) | Q(tenants__in=tenants)


_USABLE_BY_TENANT = Q(tenants__isnull=True) | Q(tenants=Parameter("tenant", Tenant._meta.pk))
_OPEN_TO = CompiledQuery(
    lambda: _open(_USABLE_BY_TENANT).select_related(
        "cluster__lease"  # whether the controller is silent is part of the answer to a submission
    )
)
_FEDERATED_OPEN_TO = CompiledQuery(lambda: _federated(_USABLE_BY_TENANT))
_OF_CLUSTER = CompiledQuery(
    lambda: (
        Queue.objects.filter(cluster=Parameter("cluster", Cluster._meta.pk))
        .select_related("parent")
        .order_by("created_at", "id")
    )
)


def _named(condition: Q) -> QuerySet[Queue]:
    queues = Queue.objects.filter(condition).select_related("cluster").only("name", "cluster__name")
    return queues.distinct().order_by("cluster_id", "name")


_ONE_OF_TENANTS = Q(tenants__isnull=True) | Q(OneOf("tenants", "tenants", Tenant._meta.pk))
_EVERY = CompiledQuery(_in_order, shares=True)
_VISIBLE_TO = CompiledQuery(lambda: _in_order().filter(_ONE_OF_TENANTS).distinct(), shares=True)
_NAME = Parameter("name", Queue._meta.get_field("name"))
_OF_NAME = CompiledQuery(lambda: _in_order().filter(name=_NAME))
_VISIBLE_OF_NAME = CompiledQuery(lambda: _in_order().filter(_ONE_OF_TENANTS, name=_NAME).distinct())
_TENANTS_OF = CompiledQuery(lambda: Tenant.objects.filter(queues=Parameter("queue", Queue._meta.pk)).order_by("name"))
_NAMED = CompiledQuery(lambda: _named(Q()), shares=True)
_NAMED_FOR = CompiledQuery(lambda: _named(_ONE_OF_TENANTS), shares=True)
