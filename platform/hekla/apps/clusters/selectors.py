"""Queries for clusters, nodes, policies, leases and environments."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, NamedTuple, TypedDict

from django.db import connection
from django.db.models import CharField, Count, FloatField, Func, Q, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from hekla.apps.clusters import encryption, leases
from hekla.apps.clusters.models import (
    Cluster,
    ClusterHealth,
    ClusterObject,
    Environment,
    Lease,
    Node,
    NodeUsageRow,
    PolicyVersion,
    StoredClusterKey,
    StoredMetricsToken,
)
from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.domain.cluster_objects import ObjectKind
from hekla.domain.errors import NotFound
from hekla.domain.node_usage import MAX_AGE
from hekla.domain.resources import Resources
from hekla.domain.runtime_classes import RuntimeClassFacts
from hekla.lib.encryption import DecryptionError

_MANY_NAMES, _FEW_NODES = 2000, 100
_MOST_POLICIES = 200
_NODE_VERSIONS = "SELECT name, ctid || ' ' || xmin FROM clusters_node WHERE cluster_id = %s ORDER BY name"
"""A change writes a new version of the row: at another place, or in another transaction."""
_ACTIVE_NAMES = "SELECT id, name FROM clusters_cluster WHERE NOT is_paused ORDER BY id"
_POLICY_TEXT = "SELECT text FROM clusters_policyversion WHERE cluster_id = %s ORDER BY number DESC LIMIT 1"
"""Written out: a reconcile asks several times, and building the query costs Django more than running it."""

_BY_ID = CompiledQuery(lambda: Cluster.objects.filter(pk=Parameter("pk", Cluster._meta.pk)))
_BY_NAME = CompiledQuery(
    lambda: Cluster.objects.filter(name=Parameter("name", CharField())).select_related("lease", "health")
)
_KEY_OF = CompiledQuery(
    lambda: StoredClusterKey.objects.filter(cluster=Parameter("cluster", Cluster._meta.pk)).select_related("added_by")
)


class BackendFacts(TypedDict):
    """What is needed to open the backend of a cluster."""

    cluster_id: int
    kind: str
    name: str
    config: dict[str, Any]
    key: str | None
    metrics_token: str


def all_clusters() -> QuerySet[Cluster]:
    """All clusters, oldest first."""
    return Cluster.objects.order_by("id")


def get(name: str) -> Cluster:
    """The cluster with this name, its lease and its health. Raises NotFound."""
    for cluster in _BY_NAME.rows(name=name):
        return cluster
    raise NotFound(_("Unknown cluster."))


def by_id(cluster_id: int) -> Cluster:
    """The cluster with this id. Raises NotFound."""
    for cluster in _BY_ID.rows(pk=cluster_id):
        return cluster
    raise NotFound(_("Unknown cluster."))


def key(cluster: Cluster) -> StoredClusterKey | None:
    """The stored credentials of the cluster, or None."""
    return next(iter(_KEY_OF.rows(cluster=cluster.pk)), None)


def backend_facts(cluster: Cluster) -> BackendFacts:
    """What is needed to open the backend. `key`: the credentials of a Kubernetes cluster, or None; empty if they
    cannot be decrypted, because the console's secret was changed.
    """
    return {
        "cluster_id": cluster.pk,
        "kind": cluster.kind,
        "name": cluster.name,
        "config": cluster.config,
        "key": _opened_key(cluster) if cluster.kind == Cluster.Kind.KUBERNETES else None,
        "metrics_token": _metrics_token(cluster) if cluster.config.get("prometheus") else "",
    }


def metrics_address(config: Mapping[str, Any]) -> object:
    """The address of the server of metrics in a configuration; None if it names none."""
    found = config.get("prometheus")
    return found.get("address") if isinstance(found, Mapping) else None


def has_metrics_token(cluster: Cluster) -> bool:
    """Whether a token for its server of metrics is stored."""
    return StoredMetricsToken.objects.filter(cluster=cluster).exists()


def _metrics_token(cluster: Cluster) -> str:
    """Empty if there is none, or if it cannot be decrypted: the server of metrics then refuses, which is reported."""
    ciphertext = StoredMetricsToken.objects.filter(cluster=cluster).values_list("ciphertext", flat=True).first()
    try:
        return "" if ciphertext is None else encryption.METRICS_TOKENS.decrypt(ciphertext)
    except DecryptionError:
        return ""


def _opened_key(cluster: Cluster) -> str | None:
    ciphertext = StoredClusterKey.objects.filter(cluster=cluster).values_list("ciphertext", flat=True).first()
    try:
        return None if ciphertext is None else encryption.COLUMN.decrypt(ciphertext)
    except DecryptionError:
        return ""


def health(cluster: Cluster) -> ClusterHealth | None:
    """The result of the last health check; None if there was none."""
    return ClusterHealth.objects.filter(cluster=cluster).first()


def active() -> QuerySet[Cluster]:
    """The clusters that the controller reconciles: all that are not paused."""
    return Cluster.objects.filter(is_paused=False).order_by("id")


def active_names() -> list[tuple[int, str]]:
    """The keys and names of these clusters."""
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE_NAMES)
        return cursor.fetchall()  # type: ignore[no-any-return]


def nodes(cluster: Cluster | None = None) -> QuerySet[Node]:
    """The nodes of one cluster, or of all, with their clusters. Without columns that few readers need."""
    rare = ("annotations", "images", "cards")
    found = Node.objects.select_related("cluster").defer(*rare).order_by("cluster_id", "name")
    return found if cluster is None else found.filter(cluster=cluster)


def node_named(cluster: str, name: str) -> Node:
    """The node with this name of the cluster with this name. Raises NotFound."""
    found = nodes().filter(cluster__name=cluster, name=name).first()
    if found is None:
        raise NotFound(_("Unknown node."))
    return found


def nodes_of(cluster: Cluster, names: Collection[str] | None = None) -> QuerySet[Node]:
    """The nodes of a cluster, or those with these names, by name.

    Without the join with its row, and without images: there may be thousands of nodes. If many are named, all are read.
    """
    found = Node.objects.filter(cluster=cluster).defer("images").order_by("name")
    return found if names is None or len(names) > _MANY_NAMES else found.filter(name__in=names)


def node_versions(cluster: Cluster) -> dict[str, str]:
    """A text for each node, by name, that differs after any change of its row. Cheap: it reads no other column."""
    with connection.cursor() as cursor:
        cursor.execute(_NODE_VERSIONS, [cluster.pk])
        return dict(cursor.fetchall())


def set_labels(cluster_id: int) -> dict[str, dict[str, str]]:
    """The labels that people and alert rules set on nodes of the cluster, by name; without nodes that have none."""
    return dict(Node.objects.filter(cluster=cluster_id).exclude(set_labels={}).values_list("name", "set_labels"))


def node_images(cluster: Cluster, digests: Collection[str]) -> dict[str, dict[str, int]]:
    """The images of nodes by their digest; equal ones are read once."""
    found = Node.objects.filter(cluster=cluster, images_digest__in=digests)
    return dict(found.order_by("images_digest").distinct("images_digest").values_list("images_digest", "images"))


def node_cards(nodes: Collection[Node]) -> dict[int, list[dict[str, Any]]]:
    """The cards of each of these nodes that has some, by row id. If they are many, those of all nodes."""
    found = Node.objects.exclude(cards=[])
    if len(nodes) <= _FEW_NODES:
        found = found.filter(pk__in=[node.pk for node in nodes])
    return dict(found.values_list("pk", "cards"))


def usage(cluster: Cluster) -> list[tuple[str, datetime, float, float, int, int]]:
    """Of each measured node: its name, when, and its CPU and memory, in per cent and of what (`models.UsageFacts`)."""
    found = NodeUsageRow.objects.filter(node__cluster=cluster)
    return list(found.values_list("node__name", "at", "cpu", "memory", "whole_cpu", "whole_memory"))


class NodeMeasurement(NamedTuple):
    """What was measured at a node up to `at`, in per cent.

    `busy`: the mean of its cards, if some were measured; only in lists. `cards`: each of them, as in
    `models.UsageFacts`; left out of lists.
    """

    at: datetime
    cpu: float
    memory: float
    busy: float | None
    cards: Sequence[Mapping[str, Any]] = ()


_BUSY = Func(
    "cards",
    template="(SELECT avg((card ->> 'busy')::float8) FROM jsonb_array_elements(%(expressions)s) AS card)",
    output_field=FloatField(null=True),
)


def fresh_usage(nodes: Collection[Node], *, now: datetime, with_cards: bool = True) -> dict[int, NodeMeasurement]:
    """The usage of these nodes by row id, without old measurements. If they are many, that of all nodes."""
    found = NodeUsageRow.objects.filter(at__gte=now - MAX_AGE)
    if len(nodes) <= _FEW_NODES:
        found = found.filter(pk__in=[node.pk for node in nodes])
    if with_cards and not _FEW_NODES < len(nodes) <= _MOST_WITH_CARDS:
        return _read_with_cards(found)
    times, cached = dict(found.values_list("pk", "at")), _measured[with_cards]
    known = {pk: one for pk, at in times.items() if (one := cached.get(pk)) is not None and one.at == at}
    if anew := [pk for pk in times if pk not in known]:
        changed = found if len(anew) > _FEW_NODES else found.filter(pk__in=anew)
        read = _read_with_cards(changed) if with_cards else _read_busy(changed)
        if len(cached) > (_MOST_WITH_CARDS if with_cards else _MOST_MEASURED):
            cached.clear()
        cached.update(read)
        known |= read
    return known


def _read_with_cards(rows: QuerySet[NodeUsageRow]) -> dict[int, NodeMeasurement]:
    found = rows.values_list("pk", "at", "cpu", "memory", "cards")
    return {pk: NodeMeasurement(at, cpu, memory, None, cards) for pk, at, cpu, memory, cards in found}


def _read_busy(rows: QuerySet[NodeUsageRow]) -> dict[int, NodeMeasurement]:
    found = rows.annotate(busy=_BUSY).values_list("pk", "at", "cpu", "memory", "busy")
    return {pk: NodeMeasurement(at, cpu, memory, busy) for pk, at, cpu, memory, busy in found}


_measured: dict[bool, dict[int, NodeMeasurement]] = {False: {}, True: {}}
"""What each node's row of this time has, without cards and with them: each measurement has a time of its own, and
adding up or reading cards takes long. Only to be read, since requests share it.
"""
_MOST_MEASURED = 50_000
_MOST_WITH_CARDS = 5_000
"""Cards take a few KiB a node, so those of larger clusters are read each time."""


def has_usage(cluster: Cluster, *, now: datetime) -> bool:
    """Whether the usage of a node of the cluster was measured recently."""
    recent = NodeUsageRow.objects.filter(node__cluster_id=cluster.pk, at__gte=now - MAX_AGE)
    return cluster.pk is not None and recent.exists()


def sizes(cluster: Cluster) -> list[Resources]:
    """The allocatable resources of each node, unordered. Equal ones are parsed once: of thousands most are equal."""
    alike = Node.objects.filter(cluster=cluster).values_list("allocatable").annotate(count=Count("pk"))
    return [size for amounts, count in alike for size in repeat(Resources.parse(amounts), count)]


def has_hypernodes(cluster: Cluster) -> bool:
    """Whether a node of the cluster is reported to be in a hypernode."""
    return cluster.pk is not None and Node.objects.filter(cluster=cluster).exclude(hypernodes=[]).exists()


def has_numa_cells(cluster: Cluster) -> bool:
    """Whether the NUMA cells of a node of the cluster are known."""
    return cluster.pk is not None and Node.objects.filter(cluster=cluster).exclude(numa={}).exists()


def object_digests(cluster: Cluster) -> dict[tuple[str, str], str]:
    """The digests of the objects that the cluster reports, by kind and name."""
    found = ClusterObject.objects.filter(cluster=cluster).values_list("kind", "name", "digest")
    return {(kind, name): digest for kind, name, digest in found}


def object_bodies(cluster: Cluster, digests: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """The bodies of the objects with these digests. Objects of equal digest have equal bodies."""
    return dict(
        ClusterObject.objects.filter(cluster=cluster, digest__in=digests).values_list("digest", "body").iterator()
    )


def runtime_classes(cluster_ids: Collection[int]) -> dict[int, dict[str, RuntimeClassFacts]]:
    """The runtime classes that these clusters report, by cluster and name."""
    found: dict[int, dict[str, RuntimeClassFacts]] = {}
    objects = ClusterObject.objects.filter(cluster_id__in=cluster_ids, kind=ObjectKind.RUNTIME_CLASS)
    for cluster_id, name, body in objects.values_list("cluster_id", "name", "body"):
        found.setdefault(cluster_id, {})[name] = RuntimeClassFacts.read(body)
    return found


def environments_and_claims(cluster_ids: Collection[int], tenant: str) -> tuple[list[str], list[str]]:
    """The names of all environments, and of the claims that these clusters report for the tenant (its slug); sorted.

    At most 200 claims; those that were created for jobs are not among them.
    """
    reported = ClusterObject.objects.filter(
        cluster_id__in=cluster_ids, kind=ObjectKind.VOLUME_CLAIM, name__startswith=f"{tenant}/"
    ).exclude(name__regex="/.*/")
    of_claims = reported.annotate(of=Value("claim")).values_list("of", "name").order_by("name").distinct()[:200]
    of_environments = Environment.objects.annotate(of=Value("environment")).values_list("of", "name").order_by()
    names: dict[str, list[str]] = {"environment": [], "claim": []}
    for of, name in of_environments.union(of_claims, all=True).order_by("name"):
        names[of].append(name)
    return names["environment"], [name.partition("/")[2] for name in names["claim"]]


def has_objects(cluster: Cluster, kind: ObjectKind) -> bool:
    """Whether the cluster reports objects of this kind."""
    return cluster.pk is not None and ClusterObject.objects.filter(cluster=cluster, kind=kind).exists()


def reported_tiers(cluster: Cluster) -> list[str]:
    """The names of the tiers of the hypernodes that hold its nodes, the widest first."""
    found = Node.objects.filter(cluster=cluster).exclude(hypernodes=[]).order_by()
    return _tiers(found.values_list("hypernodes", flat=True).distinct())


def _tiers(paths: Iterable[list[dict[str, Any]]]) -> list[str]:
    """The names of the tiers of these hypernodes, the widest first."""
    tiers = {(level["tier"], level["tier_name"]) for path in paths for level in path if level["tier_name"]}
    return list(dict.fromkeys(name for _tier, name in sorted(tiers, reverse=True)))


def label_values(cluster: Cluster, label: str) -> set[str]:
    """The values of a label of the cluster's nodes."""
    return set(values_of_label([cluster.pk], label))


def values_of_label(cluster_ids: Collection[int], label: str) -> list[str]:
    """The values of a label of the nodes of these clusters, sorted."""
    found = Node.objects.filter(cluster__in=cluster_ids, labels__has_key=label).order_by()
    return sorted(found.values_list(KeyTextTransform(label, "labels"), flat=True).distinct())


def values_and_tiers(cluster_ids: Collection[int], label: str) -> tuple[list[str], dict[int, list[str]]]:
    """Those of `values_of_label`, and the reported tiers of each cluster by its id, in one query."""
    found = Node.objects.filter(Q(labels__has_key=label) | ~Q(hypernodes=[]), cluster__in=cluster_ids).order_by()
    values, paths = set[str](), defaultdict[int, list[list[dict[str, Any]]]](list)
    facts = found.values_list("cluster", "hypernodes", KeyTextTransform(label, "labels")).distinct()
    for cluster, path, value in facts:
        paths[cluster].append(path)
        values |= {value} if value is not None else set()
    return sorted(values), {cluster: _tiers(of_cluster) for cluster, of_cluster in paths.items()}


def node(node_id: int) -> Node:
    """The node with this id. Raises NotFound."""
    found = Node.objects.select_related("cluster").filter(pk=node_id).first()
    if found is None:
        raise NotFound(_("Unknown node."))
    return found


def policies(cluster: Cluster) -> QuerySet[PolicyVersion]:
    """All versions of the cluster's policy, newest first; the newest is active."""
    return PolicyVersion.objects.filter(cluster=cluster).select_related("created_by").order_by("-number")


def policy_text(cluster: Cluster) -> str | None:
    """The active scheduler configuration; None if none was ever set."""
    with connection.cursor() as cursor:
        cursor.execute(_POLICY_TEXT, [cluster.pk])
        found: tuple[str] | None = cursor.fetchone()
    return found[0] if found else None


def policy_texts(cluster: Cluster, since: datetime, until: datetime) -> list[tuple[datetime, str]]:
    """The scheduler configurations that were in force in a period, in order, each with when it was set.

    The first was set before the period, unless none was.
    """
    versions = PolicyVersion.objects.filter(cluster=cluster, created_at__lt=until).order_by("number")
    before = versions.filter(created_at__lt=since).order_by("-number").values_list("created_at", "text")[:1]
    return [*before, *versions.filter(created_at__gte=since).values_list("created_at", "text")[:_MOST_POLICIES]]


def silent() -> QuerySet[Cluster]:
    """Clusters whose controller has not completed a cycle for `leases.SILENT_AFTER`, without paused ones."""
    limit = Now() - leases.SILENT_AFTER
    renewed = Coalesce("lease__expires_at", "created_at")
    return all_clusters().filter(is_paused=False).annotate(renewed=renewed).filter(renewed__lt=limit)


def troubled() -> list[Cluster]:
    """Clusters whose controller is silent or meets an unexpected error, with their leases; without paused ones."""
    return _TROUBLED.rows()


def _troubled() -> QuerySet[Cluster]:
    limit = Now() - leases.SILENT_AFTER
    faulty = Q(lease__isnull=False) & ~Q(lease__fault="")
    found = all_clusters().filter(is_paused=False).annotate(renewed=Coalesce("lease__expires_at", "created_at"))
    return found.filter(Q(renewed__lt=limit) | faulty).select_related("lease")


_TROUBLED = CompiledQuery(_troubled)
"""Many pages ask."""


def with_leases() -> list[tuple[Cluster, Lease | None]]:
    """All clusters with their leases; None for a lease that was never acquired."""
    found = all_clusters().select_related("lease", "health")
    return [(cluster, getattr(cluster, "lease", None)) for cluster in found]


def environments() -> QuerySet[Environment]:
    """All environments, by name."""
    return Environment.objects.order_by("name")


def environment(name: str) -> Environment:
    """The environment with this name. Raises NotFound."""
    found = Environment.objects.filter(name=name).first()
    if found is None:
        raise NotFound(_("Unknown environment."))
    return found


def environment_requirements(name: str) -> tuple[str, ...]:
    """The packages of an environment; none for the empty name. Raises NotFound."""
    if not name:
        return ()
    environment = Environment.objects.filter(name=name).first()
    if environment is None:
        raise NotFound(_("Unknown environment “%(name)s”.") % {"name": name})
    lines = (line.split("#")[0].strip() for line in environment.requirements.splitlines())
    return tuple(line for line in lines if line)
