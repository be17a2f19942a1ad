"""Queues."""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster
from hekla.apps.tenancy.models import Tenant
from hekla.domain import queue_settings
from hekla.domain.queue_settings import JobOrder

JOB_ORDERS = [
    (JobOrder.FIFO.value, _("oldest first (FIFO)")),
    (JobOrder.FAIR.value, _("fair share")),
    (JobOrder.PRIORITY.value, _("priority")),
    (JobOrder.SLA.value, _("deadline (SLA)")),
]
"""How people choose the order of a queue's jobs."""


class Queue(models.Model):
    """A share of a cluster. `capability`, `guarantee`: Kubernetes quantities by resource; empty means no bound.

    `deserved` and `parent` have an effect if the policy has the plugin `capacity`: what the queue reclaims when it has
    work, and the queue of which it is a part.

    `job_order`: the order of its pending jobs; empty: that of the policy. The fields with `node_group` have an effect
    with the plugin `nodegroup`, `card_quota` (the most cards of each model) with `capacity-card`, `hierarchy` and its
    weights with `drf` and `enableHierarchy` (`queue_settings`).

    `tenants`: who may submit here; none means all. `state_at`, `state_by`: when the state was set, and by whom; null if
    it has always been open.
    """

    class State(models.TextChoices):
        """A closed queue accepts no submissions, and its jobs continue (not under a policy that follows Volcano).

        A draining queue accepts none either, and does not admit the jobs that wait in it.
        """

        OPEN = "open", _("open")
        DRAINING = "draining", _("draining")
        CLOSED = "closed", _("closed")

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="queues", verbose_name=_("cluster"))
    name = models.SlugField(_("name"), max_length=63, unique=True)
    description = models.CharField(_("description"), max_length=300, blank=True)
    weight = models.PositiveIntegerField(_("weight"), default=1)
    priority = models.PositiveIntegerField(_("priority"), default=0)
    capability = models.JSONField(_("limit"), default=dict, blank=True)
    guarantee = models.JSONField(_("guaranteed"), default=dict, blank=True)
    deserved = models.JSONField(_("deserved"), default=dict, blank=True)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children", verbose_name=_("parent")
    )
    reclaimable = models.BooleanField(_("reclaimable"), default=True)
    job_order = models.CharField(
        _("job order"), max_length=16, choices=JOB_ORDERS, blank=True, default="", db_default=""
    )
    required_node_groups = models.JSONField(_("required node groups"), default=list, blank=True, db_default=[])
    preferred_node_groups = models.JSONField(_("preferred node groups"), default=list, blank=True, db_default=[])
    excluded_node_groups = models.JSONField(_("excluded node groups"), default=list, blank=True, db_default=[])
    avoided_node_groups = models.JSONField(_("avoided node groups"), default=list, blank=True, db_default=[])
    node_group_limits = models.JSONField(_("limits in node groups"), default=dict, blank=True, db_default={})
    card_quota = models.JSONField(_("card limits by model"), default=dict, blank=True, db_default={})
    hierarchy = models.CharField(
        _("hierarchy"), max_length=queue_settings.MAX_PATH, blank=True, default="", db_default=""
    )
    hierarchy_weights = models.CharField(
        _("hierarchy weights"), max_length=queue_settings.MAX_WEIGHTS, blank=True, default="", db_default=""
    )
    state = models.CharField(_("state"), max_length=16, choices=State.choices, default=State.OPEN)
    state_at = models.DateTimeField(null=True)
    state_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()
    tenants = models.ManyToManyField(Tenant, blank=True, related_name="queues", verbose_name=_("tenants"))

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings for plugins of the scheduler, by name."""
        return {name: getattr(self, name) for name in (*queue_settings.AFFINITY, *queue_settings.OF_ANNOTATIONS)}

    @property
    def has_node_groups(self) -> bool:
        """Whether it says which node groups its pods use."""
        return any(getattr(self, name) for name in queue_settings.AFFINITY)

    @property
    def is_open(self) -> bool:
        return self.state == self.State.OPEN

    @property
    def is_draining(self) -> bool:
        return self.state == self.State.DRAINING


class FederatedQueue(models.Model):
    """A federated queue: a name for queues of several clusters, one in each. A job goes to the cluster that can start
    it first. Shares, limits and order stay those of the queues.

    `tenants`: who may submit here; none means everyone who may submit to one of its queues.
    """

    name = models.SlugField(_("name"), max_length=63, unique=True)
    description = models.CharField(_("description"), max_length=300, blank=True)
    members = models.ManyToManyField(Queue, related_name="federated_queues", verbose_name=_("queues"))
    tenants = models.ManyToManyField(Tenant, blank=True, related_name="federated_queues", verbose_name=_("tenants"))
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
