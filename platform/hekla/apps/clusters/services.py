"""Changes to clusters, their credentials, health, nodes, policies and environments."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from typing import Any, TypedDict

from django.db import IntegrityError, connection, transaction
from django.db.models import Max, ProtectedError
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import encryption, leases, selectors
from hekla.apps.clusters.models import (
    Cluster,
    ClusterHealth,
    ClusterObject,
    Environment,
    Node,
    NodeFacts,
    PolicyVersion,
    StoredClusterKey,
    StoredMetricsToken,
    UsageFacts,
)
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import CONTROLLER, Actor, record, unit_of_work
from hekla.domain import events
from hekla.domain.card_resources import is_card, model_of
from hekla.domain.cluster_objects import ObjectFacts, ObjectKind
from hekla.domain.errors import Refused
from hekla.domain.node_labels import MAX_SET_LABELS, NodeLabelChange

_NODES_AT_ONCE = 200
"""Changed nodes per transaction, which locks the lease's row."""
_MODEL_LENGTH = 253
"""Of a card's model in events: backends report labels of any length."""
_NODE_FIELDS = [one.name for one in fields(NodeFacts)]
_USAGE_FIELDS = [one.name for one in fields(UsageFacts)]


MAX_METRICS_TOKEN = 4096
_TEXTS = {"detail": 500, "version": 100, "metrics_fault": 500}
"""The texts of servers in the health of a cluster, and how long they may be."""


class HealthFacts(TypedDict):
    """The health of a cluster as `ClusterHealth` stores it."""

    problem: str
    detail: str
    version: str
    has_namespace: bool | None
    missing: list[str]
    kubelets: dict[str, int]
    topology_faults: list[str]
    metrics_fault: str


@dataclass(frozen=True, slots=True)
class Key:
    """The credentials of a cluster (`text`), and what may be shown of them: API server, identity and expiry."""

    text: str = field(repr=False)
    server: str
    holder: str = ""
    valid_until: datetime | None = None

    @property
    def fingerprint(self) -> str:
        """A fingerprint: equal for equal credentials. Without the console's secret, guesses cannot be tested on it."""
        digest = salted_hmac("hekla: fingerprints of keys to clusters", self.text, algorithm="sha256").hexdigest()
        return ":".join(digest[at : at + 4] for at in range(0, 16, 4))


def create(
    *,
    name: str,
    kind: str,
    config: Mapping[str, Any],
    is_paused: bool = False,
    key: Key | None = None,
    by: User | None = None,
    actor: Actor,
    now: datetime,
) -> Cluster:
    """Create a cluster; the controller finds it by itself. Raises Forbidden, Refused if the name is in use.

    A pause, and switches that its configuration turns on, such as an accepted risk, are recorded like later changes.
    """
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    switches = {f"config.{field}": events.FieldChange(new=True) for field, value in config.items() if value is True}
    if is_paused:
        switches["is_paused"] = events.FieldChange(new=True)
    try:
        with unit_of_work():
            cluster = Cluster.objects.create(
                name=name, kind=kind, config=dict(config), is_paused=is_paused, created_at=now
            )
            _tell(cluster, events.ClusterCreated(name=name, backend=kind), actor, now)
            if switches:
                _tell(cluster, events.ClusterChanged(name=name, changes=switches), actor, now)
            if key is not None:
                give_key(cluster, key, by=by, actor=actor, now=now)
    except IntegrityError as error:
        raise Refused(_("A cluster “%s” exists already. Choose another name.") % name, "name") from error
    return cluster


def change(cluster: Cluster, values: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    """Change a cluster's fields, for example pause it or replace its configuration. Raises Forbidden.

    A token for Prometheus is deleted with its address: it is not sent to another server.
    """
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        before = selectors.metrics_address(cluster.config)
        changed = changes.edit(cluster, values)
        if before is not None and selectors.metrics_address(cluster.config) != before:
            StoredMetricsToken.objects.filter(cluster=cluster).delete()
        _tell(cluster, events.ClusterChanged(name=cluster.name, changes=changed), actor, now)


def remove(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Delete a cluster with its credentials, nodes and policies.

    Raises Forbidden, Refused if it has queues or ever had jobs.
    """
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    try:
        with unit_of_work():
            changes.lock(cluster)
            _tell(cluster, events.ClusterRemoved(name=cluster.name), actor, now)
            Cluster.objects.get(pk=cluster.pk).delete()
    except ProtectedError as error:
        sentence = _("The cluster “%s” has queues or jobs. Pause it instead.")
        raise Refused(sentence % cluster.name) from error


def give_key(cluster: Cluster, key: Key, *, by: User | None, actor: Actor, now: datetime) -> None:
    """Store the credentials of the cluster; they replace earlier ones. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    public = {"server": key.server, "holder": key.holder[:253], "fingerprint": key.fingerprint}
    facts = {
        **public,
        "ciphertext": encryption.COLUMN.encrypt(key.text),
        "valid_until": key.valid_until,
        "added_at": now,
        "added_by": by,
    }
    with unit_of_work():
        changes.lock(cluster)
        StoredClusterKey.objects.update_or_create(cluster=cluster, defaults=facts)
        _tell(cluster, events.ClusterKeyAdded(name=cluster.name, **public), actor, now)


def remove_key(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Delete the stored credentials, if any; from then on the cluster's configuration says how to connect.

    Raises Forbidden.
    """
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        changes.lock(cluster)
        key = StoredClusterKey.objects.filter(cluster=cluster).first()
        if key is None:
            return
        key.delete()
        _tell(cluster, events.ClusterKeyRemoved(name=cluster.name, fingerprint=key.fingerprint), actor, now)


def set_metrics_token(cluster: Cluster, token: str, *, actor: Actor, now: datetime) -> None:
    """Store the token for the cluster's server of metrics, instead of an earlier one; empty: delete it.

    Raises Forbidden, and Refused if it cannot be sent.
    """
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    if len(token) > MAX_METRICS_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise Refused(_("A token has letters, digits and signs only, and at most 4,096 of them."), "token")
    with unit_of_work():
        changes.lock(cluster)
        rows = StoredMetricsToken.objects.filter(cluster=cluster)
        had_one = rows.exists()
        if not token and not had_one:
            return
        rows.delete()
        if token:
            ciphertext = encryption.METRICS_TOKENS.encrypt(token)
            StoredMetricsToken.objects.create(cluster=cluster, ciphertext=ciphertext, added_at=now)
        change = events.FieldChange(old=had_one, new=bool(token))
        _tell(cluster, events.ClusterChanged(name=cluster.name, changes={"metrics_token": change}), actor, now)


def observe_health(cluster: Cluster, found: HealthFacts, *, started_at: datetime, now: datetime) -> None:
    """Store the health of a cluster. Records an event if its problem, version, namespace or permissions changed.

    A check that started before the last stored result is dropped: it may have used other credentials.
    """
    with unit_of_work():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        before = ClusterHealth.objects.filter(cluster=cluster).first()
        if before and before.checked_at > started_at:
            return
        stays = before is not None and before.is_reachable == (not found["problem"])
        since = before.since if before and stays else now
        texts = {name: _printable(str(found[name]), most) for name, most in _TEXTS.items()}  # type: ignore[literal-required]
        after, _is_new = ClusterHealth.objects.update_or_create(
            cluster=cluster, defaults={**found, **texts, "checked_at": now, "since": since}
        )
        if before is None or _reported_fields(before) != _reported_fields(after):
            _tell(cluster, _health_event(after), CONTROLLER, now)


def set_policy(
    cluster: Cluster, text: str, *, note: str, by: User | None, actor: Actor, now: datetime
) -> PolicyVersion:
    """Activate a scheduler configuration (already validated) as a new version. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        changes.lock(cluster)
        last = PolicyVersion.objects.filter(cluster=cluster).aggregate(last=Max("number"))["last"] or 0
        policy = PolicyVersion.objects.create(
            cluster=cluster, number=last + 1, text=text, note=note, created_by=by, created_at=now
        )
        event = events.PolicyChanged(cluster=cluster.name, version=policy.number, message=note)
        _tell(cluster, event, actor, now)
    return policy


def observe_nodes(cluster: Cluster, reported: Iterable[NodeFacts], *, now: datetime, epoch: int | None = None) -> None:
    """Store these nodes as the backend reports them; only changed nodes are written.

    A change of images alone is no event: nodes pull images all the time, and caches of nodes expire anyway.
    `epoch`: of the controller's lease, if it holds one. Raises LeaseLost.
    """
    reported = list(reported)
    known = {node.name: node for node in selectors.nodes_of(cluster, [facts.name for facts in reported])}
    news = iter([facts for facts in reported if not _is_known(facts, known.get(facts.name))])
    while some := list(islice(news, _NODES_AT_ONCE)):
        with unit_of_work():
            if epoch is not None:
                leases.assert_held(cluster.pk, epoch)
            _write_nodes(cluster, some, now)


def _write_nodes(cluster: Cluster, news: Sequence[NodeFacts], now: datetime) -> None:
    named = selectors.nodes_of(cluster, [facts.name for facts in news])
    before = {node.name: node for node in named.select_for_update().order_by("pk")}
    news = [_with_set_labels(facts, before.get(facts.name)) for facts in news]
    rows = [Node(cluster=cluster, **{name: getattr(facts, name) for name in _NODE_FIELDS}) for facts in news]
    Node.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["cluster", "name"],
        update_fields=[name for name in _NODE_FIELDS if name != "name"],
    )
    for row, facts in zip(rows, news, strict=True):
        known = before.get(facts.name)
        row.is_cordoned = known is not None and known.is_cordoned
        if known is None or replace(known.facts, images_digest=facts.images_digest) != facts:
            _tell(cluster, _node_event(row), CONTROLLER, now)


def _is_known(facts: NodeFacts, row: Node | None) -> bool:
    return row is not None and row.facts == _with_set_labels(facts, row)


def _with_set_labels(facts: NodeFacts, row: Node | None) -> NodeFacts:
    """The facts as they are stored: the labels that people set stay, also where the cluster reports others."""
    return replace(facts, labels={**facts.labels, **row.set_labels}) if row and row.set_labels else facts


def observe_usage(cluster_id: int, epoch: int, found: Iterable[UsageFacts]) -> None:
    """Store the usage of these nodes; unknown ones are left out. No event: usage changes all the time.

    Raises LeaseLost.
    """
    news = {facts.name: facts for facts in found}
    if not news:
        return
    rows = json.dumps([{name: getattr(facts, name) for name in _USAGE_FIELDS} for facts in news.values()], default=str)
    with transaction.atomic(), connection.cursor() as cursor:
        leases.assert_held(cluster_id, epoch)
        cursor.execute(_STORE_USAGE, [rows, cluster_id])


_STORE_USAGE = """
    INSERT INTO clusters_nodeusagerow (node_id, at, cpu, memory, whole_cpu, whole_memory, cards)
    SELECT node.id, news.at, news.cpu, news.memory, news.whole_cpu, news.whole_memory, news.cards
    FROM jsonb_to_recordset(%s::jsonb) AS news (
        name text, at timestamptz, cpu float8, memory float8, whole_cpu bigint, whole_memory bigint, cards jsonb
    )
    JOIN clusters_node node ON node.name = news.name AND node.cluster_id = %s
    ORDER BY node.id
    ON CONFLICT (node_id) DO UPDATE SET
        at = excluded.at, cpu = excluded.cpu, memory = excluded.memory,
        whole_cpu = excluded.whole_cpu, whole_memory = excluded.whole_memory, cards = excluded.cards
"""
"""Written out: of thousands of nodes, Django takes longer to build the statement than the database to execute it."""


def observe_objects(
    cluster: Cluster, kinds: Collection[ObjectKind], reported: Iterable[ObjectFacts], *, epoch: int, now: datetime
) -> None:
    """Store the objects of these kinds that the backend reports; only differences are written. Raises LeaseLost."""
    known = {key: digest for key, digest in selectors.object_digests(cluster).items() if key[0] in kinds}
    found = {(one.kind.value, one.name): one for one in reported}
    news = [one for key, one in found.items() if known.get(key) != one.digest]
    gone = known.keys() - found.keys()
    if not news and not gone:
        return
    with unit_of_work():
        leases.assert_held(cluster.pk, epoch)
        for kind in {kind for kind, _name in gone}:
            names = [name for other, name in gone if other == kind]
            ClusterObject.objects.filter(cluster=cluster, kind=kind, name__in=names).delete()
        ClusterObject.objects.bulk_create(
            [ClusterObject(cluster=cluster, kind=n.kind, name=n.name, digest=n.digest, body=n.body) for n in news],
            batch_size=_NODES_AT_ONCE,
            update_conflicts=True,
            unique_fields=["cluster", "kind", "name"],
            update_fields=["digest", "body"],
        )
        changed = {kind for kind, _name in gone} | {one.kind.value for one in news}
        _tell(cluster, events.ClusterObjectsChanged(kinds=sorted(changed)), CONTROLLER, now)


def lose_node(node: Node, *, epoch: int, now: datetime) -> None:
    """Delete a node that the backend no longer has. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(node.cluster_id, epoch)
        event = events.NodeChanged(node=node.name, ready=False, present=False)
        cluster = node.cluster
        node.delete()
        _tell(cluster, event, CONTROLLER, now)


def forget_nodes(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Delete what is known of the nodes, after a change of the configuration; the controller looks again.

    Raises Forbidden.
    """
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        for node in selectors.nodes(cluster):
            node.delete()
            _tell(cluster, events.NodeChanged(node=node.name, ready=False, present=False), actor, now)


def cordon(node: Node, *, cordoned: bool, actor: Actor, now: datetime) -> None:
    """Cordon a node, so that it gets no new pods, or uncordon it, which also ends its draining. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        changes.edit(node, {"is_cordoned": cordoned})
        if not cordoned and node.draining_since:
            changes.write(node, draining_since=None, drain_reason="")
        _tell(node.cluster, _node_event(node), actor, now)


def label_node(node: Node, labels: Mapping[str, str | None], *, actor: Actor, now: datetime) -> None:
    """Set labels of a node for the scheduler, or remove those (None) that were set so. The cluster does not get them.

    Raises Forbidden, Invalid, Refused if the cluster itself reports such a label, or if they are too many.
    """
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    wanted = NodeLabelChange.parse(labels)
    with unit_of_work():
        changes.lock(node)
        reported = node.labels.keys() - node.set_labels.keys()
        if own := sorted(reported & {*wanted.labels, *wanted.removed}):
            raise Refused(_("The cluster itself reports the label %s of this node. Choose another name.") % own[0])
        new = {key: value for key, value in wanted.labels.items() if node.set_labels.get(key) != value}
        removed = [key for key in wanted.removed if key in node.set_labels]
        after = {key: value for key, value in {**node.set_labels, **new}.items() if key not in removed}
        if len(after) > MAX_SET_LABELS:
            raise Refused(_("A node can have at most %d labels that were set here.") % MAX_SET_LABELS)
        if not new and not removed:
            return
        present = {key: value for key, value in node.labels.items() if key in reported}
        changes.write(node, set_labels=after, labels={**present, **after})
        _tell(node.cluster, events.NodeLabelled(node=node.name, labels=new, removed=tuple(removed)), actor, now)


def begin_draining(node: Node, *, reason: str, actor: Actor, now: datetime) -> None:
    """Cordon a node whose pods the caller evicts in the same unit of work. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        changed = changes.edit(node, {"is_cordoned": True})
        changes.write(node, draining_since=now, drain_reason=reason)
        if changed:
            _tell(node.cluster, _node_event(node), actor, now)


def note_drain(node: Node, *, pods: int, jobs: int, actor: Actor, now: datetime) -> None:
    """Record that these many pods of so many jobs are evicted from a node that drains. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    event = events.NodeDrained(node=node.name, reason=node.drain_reason, pods=pods, jobs=jobs)
    with unit_of_work():
        _tell(node.cluster, event, actor, now)


def create_environment(*, name: str, description: str, requirements: str, actor: Actor, now: datetime) -> Environment:
    """Create an environment. Raises Forbidden, Refused if the name is in use."""
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    try:
        with unit_of_work():
            environment = Environment.objects.create(
                name=name, description=description, requirements=requirements, created_at=now
            )
            event = events.EnvironmentCreated(name=name)
            record(event, subject=f"environment:{environment.pk}", actor=actor, at=now)
    except IntegrityError as error:
        raise Refused(_("An environment “%s” exists already. Choose another name.") % name, "name") from error
    return environment


def change_environment(environment: Environment, values: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    """Change an environment; jobs that start later use the new one. Raises Forbidden."""
    accounts.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        changed = changes.edit(environment, values)
        event = events.EnvironmentChanged(name=environment.name, changes=changed)
        record(event, subject=f"environment:{environment.pk}", actor=actor, at=now)


def _printable(text: str, most: int) -> str:
    """Text from a server, made safe to store: at most `most` printable characters. The server is not trusted."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:most]


def _reported_fields(health: ClusterHealth) -> tuple[object, ...]:
    """The fields whose change records an event. Not `kubelets`: nodes have their own events."""
    return health.problem, health.version, health.has_namespace, tuple(health.missing)


def _health_event(health: ClusterHealth) -> events.ClusterHealthChanged:
    return events.ClusterHealthChanged(
        name=health.cluster.name,
        reachable=health.is_reachable,
        problem=health.problem,
        message=health.detail,
        version=health.version,
        has_namespace=health.has_namespace,
        missing=health.missing,
    )


def _node_event(node: Node) -> events.NodeChanged:
    return events.NodeChanged(
        node=node.name,
        ready=node.is_ready,
        schedulable=not node.is_cordoned,
        message=node.message,
        allocatable=node.allocatable,
        models=_card_models(node),
        taints=node.taints,
    )


def _card_models(node: Node) -> dict[str, str]:
    """The models of its cards by resource; those without a label are left out."""
    found = {name: model_of(name, node.labels) for name in node.allocatable if is_card(name)}
    return {name: model[:_MODEL_LENGTH] for name, model in found.items() if model != name}


def _tell(cluster: Cluster, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"cluster:{cluster.pk}", topics=["machines"], actor=actor, at=now)
