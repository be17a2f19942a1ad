"""Experiments of the policy lab."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster

MAX_TITLE = 100
MAX_PROBLEM = 500


class LabTrace(models.Model):
    """A workload that somebody uploaded: a file of another scheduler, in one of the formats of `lab.importers`.

    `content`: the file, packed with zlib. `queues`: their names in the file. `notes`: what reading it assumed or left
    out, with how often (`lab.workload.WorkloadNote`). `first_unreadable`: the first line or job that could not be read;
    0 if all could.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=MAX_TITLE)
    format = models.CharField(max_length=20)
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    jobs = models.PositiveIntegerField()
    pods = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    queues = models.JSONField()
    notes = models.JSONField()
    first_unreadable = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    def __str__(self) -> str:
        return self.name


class LabRun(models.Model):
    """An experiment: the workload of a period, or a trace, runs again with a change.

    `trace`: whose jobs run, on the nodes of the cluster; null: the recorded ones, or it was deleted. `trace_name`: its
    name; empty: recorded jobs. `policy`: the text in force when it was requested. `change`: as `simulation.lab.change`
    reads it. `result`: as `simulation.lab.experiment` reports it; null until it is finished. `beat_at`: when its
    process last reported progress (0 to 1). `attempts`: how often a process began it. `problem`: why it failed, in
    English; `problem_facts`: the same as `apps.policy_lab.problems` writes it for readers.
    """

    class State(models.TextChoices):
        """The state of an experiment."""

        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        FINISHED = "finished", _("finished")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    title = models.CharField(max_length=MAX_TITLE, blank=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    trace = models.ForeignKey(LabTrace, null=True, on_delete=models.SET_NULL, related_name="+")
    trace_name = models.CharField(max_length=MAX_TITLE, blank=True, default="", db_default="")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    policy = models.TextField()
    change = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    progress = models.FloatField(default=0.0)
    problem = models.CharField(max_length=MAX_PROBLEM, blank=True)
    problem_facts = models.JSONField(default=dict, db_default={})
    result = models.JSONField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    started_at = models.DateTimeField(null=True)
    beat_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["id"], condition=models.Q(state__in=["waiting", "running"]), name="lab_run_to_do")
        ]

    def __str__(self) -> str:
        return self.title or f"{self.trace_name or self.cluster} {self.starts_at:%Y-%m-%d}"

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state not in (self.State.WAITING, self.State.RUNNING)
