"""Runs of demonstrations."""

from django.conf import settings
from django.db import models

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant


class DemoRun(models.Model):
    """A run of a demonstration, and its jobs so far; the order of their ids is the order of the acts.

    `without`: the plugin or action that the policy lacks during this run, or the field that its tasks lack, for
    comparison.
    """

    demonstration = models.CharField(max_length=40)
    without = models.CharField(max_length=40, blank=True, default="", db_default="")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    jobs = models.ManyToManyField(Job, related_name="+")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"], condition=models.Q(ended_at__isnull=True), name="one_run_of_a_stage"
            )
        ]

    def __str__(self) -> str:
        return f"{self.demonstration} {self.pk}"


class SimulatedWorkload(models.Model):
    """The everyday work of simulated teams on a simulated cluster.

    `since`: when its history begins. `history_until`: when it ended; None while it is made. `count`: how many arrivals
    there were after the history. `next_at`: when the next is due. `removed_at`: when a person removed the workload.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField()
    history_until = models.DateTimeField(null=True)
    count = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"workload of {self.cluster_id}"
