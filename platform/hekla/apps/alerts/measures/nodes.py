"""Measures of nodes and clusters."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from hekla.apps.alerts.measures.registry import (
    MOST_SUBJECTS,
    AlertMeasure,
    AlertScope,
    AlertSubject,
    MeasuredValues,
    SubjectKind,
    ValueSeries,
    of_cluster,
)
from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs.models import Job
from hekla.domain.card_resources import card_counts
from hekla.domain.resources import Resources


def _node(cluster_id: int, name: str, cluster: str) -> AlertSubject:
    return AlertSubject(SubjectKind.NODE, f"{cluster_id}/{name}", f"{name} ({cluster})", cluster_id)


def _ready_nodes(scope: AlertScope) -> list[tuple[int, str, bool]]:
    """Cluster, name and readiness of the nodes in the scope."""
    found = Node.objects.filter(cluster__in=scope.fresh)
    if scope.label:
        key, value = scope.label
        found = found.filter(labels__has_key=key) if value is None else found.filter(labels__contains={key: value})
    return list(found.order_by("pk").values_list("cluster_id", "name", "is_ready")[:MOST_SUBJECTS])


def _node_not_ready(scope: AlertScope) -> MeasuredValues:
    names = {cluster.pk: cluster.name for cluster in scope.clusters}
    values = {
        _node(cluster_id, name, names[cluster_id]): float(not is_ready)
        for cluster_id, name, is_ready in _ready_nodes(scope)
    }
    return MeasuredValues(values, scope.lost)


def _nodes_not_ready(scope: AlertScope) -> MeasuredValues:
    counts: dict[int, int] = defaultdict(int)
    for cluster_id, _name, is_ready in _ready_nodes(scope):
        counts[cluster_id] += not is_ready
    return MeasuredValues({of_cluster(cluster): float(counts[cluster.pk]) for cluster in scope.fresh}, scope.lost)


def _past_of_nodes(scope: AlertScope, since: datetime) -> Mapping[AlertSubject, ValueSeries]:
    """From the events of nodes. Labels of that time are not known, so all nodes of the clusters are in."""
    found: dict[AlertSubject, list[tuple[datetime, float]]] = defaultdict(list)
    for cluster in scope.clusters:
        for at, node, ready, present in event_log.node_history(f"cluster:{cluster.pk}", since=since):
            value = 0.0 if ready or not present else 1.0
            found[_node(cluster.pk, node, cluster.name)].append((at, value))
    return found


def _past_of_clusters(scope: AlertScope, since: datetime) -> Mapping[AlertSubject, ValueSeries]:
    found: dict[AlertSubject, list[tuple[datetime, float]]] = {}
    for cluster in scope.clusters:
        down: set[str] = set()
        course = found.setdefault(of_cluster(cluster), [])
        for at, node, ready, present in event_log.node_history(f"cluster:{cluster.pk}", since=since):
            (down.discard if ready or not present else down.add)(node)
            course.append((at, float(len(down))))
    return found


def _gpus_free(scope: AlertScope) -> MeasuredValues:
    """Of the GPUs of ready nodes that are not cordoned. Clusters without GPUs have no value."""
    whole: dict[int, float] = defaultdict(float)
    ready = Node.objects.filter(cluster__in=scope.fresh, is_ready=True, is_cordoned=False)
    usable: set[tuple[int, str]] = set()
    for cluster_id, name, allocatable in ready.values_list("cluster_id", "name", "allocatable")[:MOST_SUBJECTS]:
        whole[cluster_id] += sum(card_counts(Resources.parse(allocatable)).values())
        usable.add((cluster_id, name))
    held: dict[int, float] = defaultdict(float)
    for one in scope.held([cluster.pk for cluster in scope.fresh]) if any(whole.values()) else ():
        cards = sum(card_counts(one.request).values())
        held[one.job.cluster_id] += cards * sum((one.job.cluster_id, node) in usable for node in one.nodes)
    values = {
        of_cluster(cluster): max(0.0, 100.0 * (1 - held[cluster.pk] / whole[cluster.pk]))
        for cluster in scope.fresh
        if whole[cluster.pk]
    }
    return MeasuredValues(values, scope.lost)


def _failed_pods(scope: AlertScope) -> MeasuredValues:
    """From the log: pods that failed on each node in the window, however often they were started again."""
    names = {cluster.pk: cluster.name for cluster in scope.clusters}
    failed = event_log.failed_pods(since=scope.now - scope.window)
    clusters_of = {
        f"job:{uid}": cluster_id
        for uid, cluster_id in Job.objects.filter(uid__in={subject.removeprefix("job:") for subject, _node in failed})
        .order_by()
        .values_list("uid", "cluster_id")
    }
    counts: dict[tuple[int, str], int] = defaultdict(int)
    for subject, node in failed:
        counts[clusters_of.get(subject, 0), node] += 1
    values = {
        _node(cluster_id, name, names[cluster_id]): float(counts[cluster_id, name])
        for cluster_id, name, _ready in _ready_nodes(scope)
    }
    return MeasuredValues(values, scope.lost)


def _controller_silent(scope: AlertScope) -> MeasuredValues:
    """Paused clusters have no value: nobody expects their controller to work."""
    leases_of = dict(clusters.with_leases())
    return MeasuredValues(
        {
            of_cluster(cluster): leases.unrenewed_for(cluster, leases_of.get(cluster), now=scope.now).total_seconds()
            for cluster in scope.clusters
            if not cluster.is_paused
        }
    )


def _unreachable(scope: AlertScope) -> MeasuredValues:
    checked = {cluster: getattr(cluster, "health", None) for cluster in scope.clusters}
    return MeasuredValues(
        {of_cluster(cluster): float(not health.is_reachable) for cluster, health in checked.items() if health}
    )


def _cordoned(scope: AlertScope) -> MeasuredValues:
    found = Node.objects.filter(cluster__in=scope.fresh, is_cordoned=True).order_by()
    counts = dict(found.values_list("cluster_id").annotate(count=Count("pk")))
    values = {of_cluster(cluster): float(counts.get(cluster.pk, 0)) for cluster in scope.fresh}
    return MeasuredValues(values, scope.lost)


MEASURES = (
    AlertMeasure(
        "node_not_ready",
        _("Node not ready (1: not ready)"),
        "",
        SubjectKind.NODE,
        _node_not_ready,
        takes_label=True,
        past=_past_of_nodes,
    ),
    AlertMeasure(
        "nodes_not_ready",
        _("Nodes not ready, by cluster"),
        _("nodes"),
        SubjectKind.CLUSTER,
        _nodes_not_ready,
        takes_label=True,
        past=_past_of_clusters,
    ),
    AlertMeasure("nodes_cordoned", _("Nodes cordoned, by cluster"), _("nodes"), SubjectKind.CLUSTER, _cordoned),
    AlertMeasure("gpus_free", _("Free GPUs, by cluster"), "%", SubjectKind.CLUSTER, _gpus_free),
    AlertMeasure(
        "failed_pods",
        _("Failed pods in the window, by node"),
        _("pods"),
        SubjectKind.NODE,
        _failed_pods,
        changes_by_time=True,
        has_window=True,
        takes_label=True,
    ),
    AlertMeasure(
        "controller_silent",
        _("Time since the controller of a cluster last reported"),
        _("s"),
        SubjectKind.CLUSTER,
        _controller_silent,
        changes_by_time=True,
    ),
    AlertMeasure(
        "cluster_unreachable", _("Cluster unreachable (1: unreachable)"), "", SubjectKind.CLUSTER, _unreachable
    ),
)
