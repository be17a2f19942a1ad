"""Samples of resource use. A sample takes 130 to 160 bytes, half of them in the two indexes."""

from django.db import models

from hekla.apps.jobs.models import Pod


class Sample(models.Model):
    """The use of a pod up to a time. A sample covers `span_seconds`: coarser samples replace finer ones.

    `cpu_ms` counts from the pod's start, so the use between two times is exact, however many samples between them were
    merged. A coarser sample has the maximum memory of its span, and the mean GPU use.
    """

    pk = models.CompositePrimaryKey("pod_id", "span_seconds", "at")
    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    cpu_ms = models.BigIntegerField()
    memory_bytes = models.BigIntegerField()
    gpu_memory_bytes = models.BigIntegerField(null=True)
    gpu_thousandths = models.IntegerField(null=True)
    span_seconds = models.SmallIntegerField()

    class Meta:
        indexes = [models.Index(fields=["span_seconds", "at"], name="sample_by_age")]

    def __str__(self) -> str:
        return f"pod {self.pod_id} at {self.at:%F %T}"
