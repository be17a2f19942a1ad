"""Links from rows of jobs and pods to objects of other controllers."""

from django.db import models

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job, Pod


class ExternalGroup(models.Model):
    """The job of a group of external pods. `key`: of the group; `maker`: the uid of the owner object of all its pods.
    `roles`, `sub_groups`: as in `domain.external_pods.GroupPolicy`. `priority`: that of its PodGroup, if it has one.

    A group has several jobs, one after the other, if it was created again under the same name.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="external")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=600)
    maker = models.CharField(max_length=64, blank=True)
    roles = models.JSONField(default=dict, db_default={})
    sub_groups = models.JSONField(default=list, db_default=[])
    priority = models.IntegerField(null=True)

    class Meta:
        indexes = [models.Index(fields=["cluster", "key"], name="external_group_by_key")]

    def __str__(self) -> str:
        return self.key


class ExternalPodRow(models.Model):
    """The object of an external pod in the cluster. `uid`: assigned by the API server, never reused.

    `labels`: those when it was recorded. `priority`: its own; None for pods that were recorded without.
    `volume_claims`: the names of the claims to volumes that it mounts, in its namespace.
    """

    pod = models.OneToOneField(Pod, on_delete=models.CASCADE, primary_key=True, related_name="external")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict, db_default={})
    priority = models.IntegerField(null=True)
    volume_claims = models.JSONField(default=list, db_default=[])

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_row_of_an_object")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
