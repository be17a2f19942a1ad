"""Clusters, and their credentials, health, nodes, devices, policies, leases and environments."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from hekla.domain import zones
from hekla.domain.card_resources import model_of, of_cards
from hekla.domain.cluster_objects import MAX_NAME
from hekla.domain.resources import Resources


class Cluster(models.Model):
    """Nodes with one scheduler and a backend. `config` is the backend's configuration (see the backend's package)."""

    class Kind(models.TextChoices):
        """The built-in kinds of backends. Packages can add others (see `hekla.backends.registry`)."""

        LOCAL = "local", _("This machine")
        KUBERNETES = "kubernetes", _("Kubernetes")
        SIMULATED = "simulated", _("Simulated")

    name = models.SlugField(_("name"), max_length=40, unique=True)
    kind = models.CharField(_("kind"), max_length=40)
    config = models.JSONField(_("configuration"), default=dict, blank=True)
    is_paused = models.BooleanField(_("paused"), default=False)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name

    @property
    def kind_label(self) -> str:
        """The label of its kind."""
        return str(self.Kind(self.kind).label) if self.kind in self.Kind else self.kind

    @property
    def is_simulated(self) -> bool:
        return self.kind == self.Kind.SIMULATED

    @property
    def runs_images(self) -> bool:
        """Whether pods run the image of their task. Processes of this machine have none."""
        return self.kind != self.Kind.LOCAL or self.config.get("runtime") == "containers"

    @property
    def gives_whole_shared_cards(self) -> bool:
        """Whether a pod may have a whole one of the cards whose memory others share."""
        return self.kind != self.Kind.LOCAL

    @property
    def separates_tenants(self) -> bool:
        """Whether each tenant has its own namespace there."""
        return bool(self.config.get("namespaces") == "tenant")

    @property
    def leads_jobs(self) -> bool:
        """Whether jobs are delegated to Volcano as a whole; the console then only follows their state."""
        return self.kind == self.Kind.KUBERNETES and self.config.get("scheduler") == "volcano"


class StoredClusterKey(models.Model):
    """The credentials of a cluster, encrypted, and the facts about them that may be shown. A cluster without a row
    connects as its configuration says.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="key")
    ciphertext = models.BinaryField()
    server = models.CharField(max_length=300)
    holder = models.CharField(max_length=253, blank=True)
    fingerprint = models.CharField(max_length=64)
    valid_until = models.DateTimeField(null=True)
    added_at = models.DateTimeField()
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)

    def __str__(self) -> str:
        return f"key to {self.cluster_id}"


class StoredMetricsToken(models.Model):
    """The token for the server of metrics that a cluster's configuration names, encrypted. It is never shown."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="metrics_token")
    ciphertext = models.BinaryField()
    added_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"metrics token of {self.cluster_id}"


class ClusterHealth(models.Model):
    """The result of the last health check of a cluster. `since`: when it became reachable or unreachable.

    `problem`, `missing`, `kubelets`, `topology_faults` and `metrics_fault` are those of `hekla.backends.base.Health`.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="health")
    checked_at = models.DateTimeField()
    since = models.DateTimeField()
    problem = models.CharField(max_length=20, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    version = models.CharField(max_length=100, blank=True)
    has_namespace = models.BooleanField(null=True)
    missing = models.JSONField(default=list)
    kubelets = models.JSONField(default=dict)
    topology_faults = models.JSONField(default=list, db_default=[])
    metrics_fault = models.CharField(max_length=500, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.problem or 'within reach'}"

    @property
    def is_reachable(self) -> bool:
        return not self.problem


MAX_NODE_MESSAGE = 500
MAX_DRAIN_REASON = 200
MAX_LEASE_FAULT = 300


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as reported. `allocatable`: quantities as Kubernetes writes them; `message`: why it is not ready.

    `taints`: as `key=value:Effect`; `annotations`: those that plugins of the engine read. `cards`: as
    `domain.cards.NodeCard`; `hypernodes`: as `domain.network_topology.HyperNodeLevel`; `numa`: as
    `domain.numa.NumaTopology`, empty if unknown. `images`: sizes in bytes by name. They are many, so only their digest
    is read and compared.
    """

    name: str
    allocatable: dict[str, Any]
    labels: dict[str, Any]
    is_ready: bool = True
    message: str = ""
    taints: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    cards: list[dict[str, Any]] = field(default_factory=list)
    hypernodes: list[dict[str, Any]] = field(default_factory=list)
    numa: dict[str, Any] = field(default_factory=dict)
    images_digest: str = ""
    images: dict[str, int] = field(default_factory=dict, compare=False)


class Node(models.Model):
    """A node of a cluster, as last reported.

    `labels`: those that the cluster reports, and `set_labels`, which people and alert rules set here.
    `draining_since`: since when its pods are evicted, with the reason that a person gave; null: they are not. A node
    that drains is cordoned.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    allocatable = models.JSONField()
    labels = models.JSONField(default=dict)
    set_labels = models.JSONField(default=dict, db_default={})
    is_ready = models.BooleanField(default=True)
    is_cordoned = models.BooleanField(default=False)
    draining_since = models.DateTimeField(null=True, default=None)
    drain_reason = models.CharField(max_length=MAX_DRAIN_REASON, blank=True, default="", db_default="")
    message = models.CharField(max_length=MAX_NODE_MESSAGE, blank=True)
    taints = models.JSONField(default=list, db_default=[])
    annotations = models.JSONField(default=dict, db_default={})
    cards = models.JSONField(default=list, db_default=[])
    hypernodes = models.JSONField(default=list, db_default=[])
    numa = models.JSONField(default=dict, db_default={})
    images = models.JSONField(default=dict, db_default={})
    images_digest = models.CharField(max_length=32, blank=True, default="", db_default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="one_node_of_a_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> str:
        """The zone in its labels; empty if there is none."""
        return zones.zone(self.labels)

    @property
    def region(self) -> str:
        """The region in its labels; empty if there is none."""
        return zones.region(self.labels)

    @cached_property
    def rack(self) -> str:
        """The closest hypernode, else the zone; empty without either. Pages read it of thousands of nodes."""
        return str(min(self.hypernodes, key=lambda level: level["tier"])["name"]) if self.hypernodes else self.zone

    @cached_property
    def places(self) -> str:
        """The names by which it is searched: its own, its cluster, zone, region and hypernodes."""
        found = (self.name, self.cluster.name, self.zone, self.region, *(level["name"] for level in self.hypernodes))
        return " ".join(found)

    @cached_property
    def labelled_models(self) -> tuple[str, ...]:
        """The models that its labels give to its cards, each once."""
        names = of_cards(Resources.parse(self.allocatable))
        found = ((name, model_of(name, self.labels)) for name in names)
        return tuple(dict.fromkeys(model for name, model in found if model != name))

    @property
    def facts(self) -> NodeFacts:
        """The node as last reported, without its images."""
        return NodeFacts(
            self.name,
            self.allocatable,
            self.labels,
            self.is_ready,
            self.message,
            self.taints,
            self.annotations,
            self.cards,
            self.hypernodes,
            self.numa,
            self.images_digest,
        )


@dataclass(frozen=True, slots=True)
class UsageFacts:
    """The usage of a node (by name), the mean of the last minutes, up to `at`: per cent of the node's CPU and memory.

    `whole_cpu`, `whole_memory`: these in thousandths of a core and in bytes. `cards`: the present usage of its cards,
    as `domain.node_usage.CardMetrics`.
    """

    name: str
    at: datetime
    cpu: float
    memory: float
    whole_cpu: int
    whole_memory: int
    cards: list[dict[str, Any]] = field(default_factory=list)


class NodeUsageRow(models.Model):
    """The usage of a node as last stored: written if it changed noticeably, and before it is too old to be used."""

    node = models.OneToOneField(Node, on_delete=models.CASCADE, primary_key=True, related_name="usage")
    at = models.DateTimeField()
    cpu = models.FloatField()
    memory = models.FloatField()
    whole_cpu = models.BigIntegerField()
    whole_memory = models.BigIntegerField()
    cards = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"node {self.node_id}: {self.cpu:.0f} % of its CPU, {self.memory:.0f} % of its memory"


class ClusterObject(models.Model):
    """An object of a cluster that the engine reads (`domain.cluster_objects`): a device or volume, or a claim to it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=40)
    name = models.CharField(max_length=MAX_NAME)
    digest = models.CharField(max_length=32)
    body = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind", "name"], name="one_object_of_a_name")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class PolicyVersion(models.Model):
    """A scheduler configuration of a cluster. The one with the highest number is active."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="policies")
    number = models.PositiveIntegerField()
    text = models.TextField(max_length=100_000)
    note = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "number"], name="one_policy_of_a_number")]

    def __str__(self) -> str:
        return f"{self.cluster_id} #{self.number}"


class Lease(models.Model):
    """The lease of a cluster's controller. Every write of a decision checks `epoch`, to stop former holders.

    `expires_at`: on the database's clock. `fault`: the unexpected error that the holder met last and has not overcome.
    `last_shuffle_at`: when the scheduler last evicted pods for a better placement; it stays when the holder changes.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="lease")
    holder = models.CharField(max_length=120)
    epoch = models.PositiveBigIntegerField(default=0)
    expires_at = models.DateTimeField()
    fault = models.CharField(max_length=MAX_LEASE_FAULT, blank=True, default="", db_default="")
    last_shuffle_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.cluster_id} by {self.holder} (epoch {self.epoch})"


class Environment(models.Model):
    """A named set of Python packages for pods; without requirements, the console's own interpreter."""

    name = models.SlugField(_("name"), max_length=63, unique=True)
    description = models.CharField(_("description"), max_length=300, blank=True)
    requirements = models.TextField(_("requirements"), max_length=20_000, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
