"""The metrics that jobs print or write into event files, as far as they were read."""

from django.db import models

from hekla.apps.jobs.models import Job, Pod


class MetricLog(models.Model):
    """The metrics that a pod has printed up to `offset` in its log, in bytes, which was read at `read_at`.

    `summary` has the figures of each metric, `points` its curve (see `hekla.domain.metric_series`), `progress` what
    shows a stalled pod (`hekla.domain.stalls`). `is_complete`: nothing more is read; `due_at`: when the next part is
    read. `job`: that of the pod, to find the metrics of many jobs with one index.

    `size`: that of the log, in bytes, when its cluster last returned it, at `known_at`. It last grew at `grew_at`, in
    `growths` readings, with a pause of `longest_pause` seconds at most.
    """

    pod = models.OneToOneField(Pod, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    offset = models.BigIntegerField(default=0)
    size = models.BigIntegerField(default=0, db_default=0)
    known_at = models.DateTimeField(null=True)
    grew_at = models.DateTimeField(null=True)
    growths = models.PositiveIntegerField(default=0, db_default=0)
    longest_pause = models.PositiveIntegerField(default=0, db_default=0)
    progress = models.JSONField(default=dict, db_default={})
    summary = models.JSONField(default=dict)
    points = models.JSONField(default=dict)
    is_complete = models.BooleanField(default=False)
    read_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=models.Q(is_complete=False), name="job_metrics_due")]

    def __str__(self) -> str:
        return f"metrics of pod {self.pod_id}"


class EventMetrics(models.Model):
    """The scalars in the TensorBoard event files of a pod, as far as they were read at `read_at`.

    `files`: by their paths, the offset up to which each was read, and whether it is broken behind it. `folders`: by the
    names of metrics, where the first file with it is; metrics of the same name elsewhere have others. `summary`,
    `points`, `progress` and `known_at` as in `MetricLog`. `found_at`: when the folder of the pod was last searched.
    """

    pod = models.OneToOneField(Pod, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    files = models.JSONField(default=dict)
    folders = models.JSONField(default=dict)
    progress = models.JSONField(default=dict, db_default={})
    known_at = models.DateTimeField(null=True)
    summary = models.JSONField(default=dict)
    points = models.JSONField(default=dict)
    is_complete = models.BooleanField(default=False)
    found_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=models.Q(is_complete=False), name="event_metrics_due")]

    def __str__(self) -> str:
        return f"event files of pod {self.pod_id}"


class MetricCursor(models.Model):
    """How far the reader of metrics has followed the event log. One row. `number`: its last event."""

    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"event {self.number}"
