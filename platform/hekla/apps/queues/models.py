"""Queues."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster
from hekla.apps.tenancy.models import Tenant


class Queue(models.Model):
    """A share of a cluster. `capability`, `guarantee`: Kubernetes quantities by resource; empty means no bound.

    `deserved` and `parent` have an effect if the policy has the plugin `capacity`: what the queue reclaims when it has
    work, and the queue of which it is a part.

    `tenants`: who may submit here; none means all. `state_at`, `state_by`: when the state was set, and by whom; null if
    it has always been open.
    """

    class State(models.TextChoices):
        """A closed queue accepts no submissions, and its jobs continue.

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
    members = models.ManyToManyField(Queue, related_name="spans", verbose_name=_("queues"))
    tenants = models.ManyToManyField(Tenant, blank=True, related_name="spans", verbose_name=_("tenants"))
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
