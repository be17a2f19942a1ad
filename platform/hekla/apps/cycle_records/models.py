"""Recorded scheduling cycles."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster


class CycleRecord(models.Model):
    """A cycle that decided something. `data`: its document (`scheduling.cycle_document`), compressed; null if it was
    not recorded, for the reason in `omission`.

    `base`: the row of the whole document that it refers to; null if it is whole. Rows are deleted with their base, so
    this is no foreign key: the deletion of a thousand rows is one statement. `engine_ms`: how long the engine took;
    `recording_ms`: how much CPU the record took. `jobs`: with something to decide; `pods`: of all jobs.
    """

    class Trigger(models.TextChoices):
        """Why the cycle ran."""

        EVENTS = "events", _("something happened")
        TIME = "time", _("regular check")
        FOLLOW_UP = "follow_up", _("decisions of the cycle before")
        LEADER = "leader", _("another controller took over")

    class Omission(models.TextChoices):
        """Why the document is missing."""

        CPU = "cpu", _("recording would have slowed down the controller")
        SIZE = "size", _("too large")
        ERROR = "error", _("part of the input cannot be recorded")

    class Limit(models.TextChoices):
        """Which decisions were not applied."""

        BUDGET = "budget", _("its evictions were dropped: a disruption budget protects a victim")
        NO_OBSERVATION = "no_observation", _("only admissions and binds were applied: pods were not observed yet")

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    trigger = models.CharField(max_length=10, choices=Trigger.choices)
    limit = models.CharField(max_length=20, choices=Limit.choices, blank=True)
    engine_ms = models.FloatField()
    jobs = models.IntegerField()
    pods = models.IntegerField()
    admissions = models.IntegerField()
    binds = models.IntegerField()
    evictions = models.IntegerField()
    pipelined = models.IntegerField()
    refusals = models.IntegerField()
    base = models.BigIntegerField(null=True)
    data = models.BinaryField(null=True)
    size = models.IntegerField(default=0)
    omission = models.CharField(max_length=10, choices=Omission.choices, blank=True)
    recording_ms = models.FloatField(default=0.0)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["cluster", "id"], name="cycle_by_cluster")]

    def __str__(self) -> str:
        return f"cycle {self.pk}"

    @property
    def is_whole(self) -> bool:
        """Whether its document refers to no other."""
        return self.base is None
