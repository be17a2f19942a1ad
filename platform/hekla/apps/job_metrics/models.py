"""The metrics that jobs print, as far as their logs are read."""

from django.db import models

from hekla.apps.jobs.models import Job, Pod


class MetricLog(models.Model):
    """The metrics that a pod has printed up to `offset` in its log, in bytes, which was read at `read_at`.

    `summary` has the figures of each metric, `points` its curve (see `hekla.domain.metric_series`). `is_complete`:
    nothing more is read; `due_at`: when the next part is read. `job`: that of the pod, to find the metrics of many jobs
    with one index.
    """

    pod = models.OneToOneField(Pod, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    offset = models.BigIntegerField(default=0)
    summary = models.JSONField(default=dict)
    points = models.JSONField(default=dict)
    is_complete = models.BooleanField(default=False)
    read_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=models.Q(is_complete=False), name="job_metrics_due")]

    def __str__(self) -> str:
        return f"metrics of pod {self.pod_id}"


class MetricCursor(models.Model):
    """How far the reader of metrics has followed the event log. One row. `number`: its last event."""

    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"event {self.number}"
