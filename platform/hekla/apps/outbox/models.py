"""The one log. Rows are only ever added; everything else about the past can be derived from them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Event(models.Model):
    """Something that happened. `id` is its place in the order in which transactions became visible.

    Nothing refers to other tables: the log outlives the rows that it tells of. `topics` are the live streams that it
    belongs to, such as `job:UUID`, `tenant:7`, `cluster:1`.
    """

    at = models.DateTimeField()
    kind = models.CharField(max_length=64)
    subject = models.CharField(max_length=80)
    tenant_id = models.BigIntegerField(null=True)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150)
    topics = ArrayField(models.CharField(max_length=80))
    payload = models.JSONField()

    class Meta:
        indexes = [
            models.Index(fields=["subject", "id"], name="event_by_subject"),
            models.Index(fields=["tenant_id", "id"], name="event_by_tenant"),
            models.Index(fields=["at"], name="event_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.pk} {self.kind} {self.subject}"
