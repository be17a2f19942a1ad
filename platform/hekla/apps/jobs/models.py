"""Jobs and pods as they stand now. How they came there is in the event log."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models

from hekla.apps.clusters.models import Cluster
from hekla.apps.queues.models import Queue, Span
from hekla.apps.tenancy.models import Tenant
from hekla.domain.jobspec import EXTERNAL, JobSpec
from hekla.domain.phases import FINAL_JOB_PHASES, FINAL_POD_PHASES, GangPhase, JobPhase, PodPhase


def _choices(phases: type[JobPhase] | type[GangPhase] | type[PodPhase]) -> list[tuple[str, str]]:
    return [(phase.value, phase.value) for phase in phases]


_LISTED = models.Q(deleted_at__isnull=True)


class Job(models.Model):
    """A job. `version` counts full restarts from 1; `waiting` holds the engine's reasons while it waits.

    `message_facts` is the message in a form for any language; empty where it has none.
    `revision` counts from 1 how often its specification changed: whoever decided by another one decided in vain.
    `deadline_at`: when it must have ended, once it has begun; `expires_at`: when it goes, once it has ended.
    `reserved_slots`: where some tasks wait for others, or the job grew, the slots of all replicas in the order of the
    specification, so that the pods that start first can be told the addresses of those to come.

    A job goes in steps: `deleted_at`, it is off the lists; `cleaned_at`, what was attached to it is gone; then, when
    its tenant keeps them no longer, `logs_purged_at`, and at last the row with its history.
    """

    spec_in_hand: JobSpec | None = None
    """The specification while it changes: nobody else may take it for the job's before that is committed."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=53)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="jobs")
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="jobs")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    spec = models.JSONField()
    kind = models.CharField(max_length=32)
    priority = models.IntegerField(default=0)
    never_preempts = models.BooleanField(default=False)
    replicas = models.PositiveIntegerField()
    phase = models.CharField(max_length=16, choices=_choices(JobPhase), default=JobPhase.PENDING)
    gang_phase = models.CharField(max_length=16, choices=_choices(GangPhase), default=GangPhase.PENDING)
    version = models.PositiveIntegerField(default=1)
    revision = models.PositiveIntegerField(default=1)
    retry_count = models.PositiveIntegerField(default=0)
    reason = models.CharField(max_length=64, blank=True)
    message = models.TextField(blank=True)
    message_facts = models.JSONField(default=list)
    waiting = models.JSONField(default=list)
    reserved_slots = models.JSONField(default=list)
    submitted_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    cleaned_at = models.DateTimeField(null=True)
    logs_purged_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=models.Q(deleted_at__isnull=True), name="one_job_of_a_name"
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "-submitted_at"], name="job_by_tenant"),
            models.Index(fields=["queue", "phase"], name="job_by_queue"),
            models.Index(
                fields=["cluster", "id"],
                condition=~models.Q(phase__in=sorted(phase.value for phase in FINAL_JOB_PHASES)),
                name="job_alive",
            ),
            models.Index(
                fields=["cluster", "deleted_at"], condition=models.Q(deleted_at__isnull=False), name="job_deleted"
            ),
            # By these the list is sorted, narrowed and counted. A further one, on any part of the name, is made by
            # the migration `long_lists`.
            models.Index(fields=["-submitted_at", "-id"], condition=_LISTED, name="job_by_time"),
            models.Index(fields=["name", "id"], condition=_LISTED, name="job_by_name"),
            models.Index(fields=["priority", "id"], condition=_LISTED, name="job_by_priority"),
            models.Index(fields=["replicas", "id"], condition=_LISTED, name="job_by_pods"),
            models.Index(fields=["finished_at"], condition=_LISTED, name="job_by_end"),
            models.Index(fields=["phase", "-submitted_at", "-id"], condition=_LISTED, name="job_by_phase"),
            models.Index(fields=["queue", "phase"], condition=_LISTED, name="job_of_queue"),
            models.Index(fields=["tenant", "phase"], condition=_LISTED, name="job_of_tenant"),
            models.Index(fields=["owner", "phase"], condition=_LISTED, name="job_of_owner"),
            models.Index(fields=["kind", "phase"], condition=_LISTED, name="job_of_kind"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_final(self) -> bool:
        return JobPhase(self.phase).is_final

    @property
    def is_external(self) -> bool:
        """Others made its pods, and end them; they are only placed from here."""
        return self.kind == EXTERNAL

    @property
    def logs_until(self) -> datetime | None:
        """Until when the logs of a deleted job are kept; None where it is not deleted, or they are gone."""
        return None if self.logs_purged_at else self._days_after_deletion(self.tenant.log_days)

    @property
    def history_until(self) -> datetime | None:
        """Until when a deleted job is known at all; None where it is not deleted."""
        return self._days_after_deletion(self.tenant.history_days)

    def _days_after_deletion(self, days: int) -> datetime | None:
        return self.deleted_at + timedelta(days=days) if self.deleted_at else None


class Pod(models.Model):
    """One attempt of one replica. `slot` numbers the replica for all its attempts; addresses are made from it."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="pods")
    task = models.CharField(max_length=63)
    index = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    version = models.PositiveIntegerField()
    slot = models.PositiveBigIntegerField()
    address = models.CharField(max_length=120)
    phase = models.CharField(max_length=16, choices=_choices(PodPhase), default=PodPhase.PENDING)
    node = models.CharField(max_length=253, blank=True)
    stopping = models.BooleanField(default=False)
    evicted = models.BooleanField(default=False)
    stop_reason = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=64, blank=True)
    message = models.TextField(blank=True)
    exit_code = models.IntegerField(null=True)
    created_at = models.DateTimeField()
    bound_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "task", "index", "attempt"], name="one_pod_of_a_key")]
        indexes = [
            models.Index(
                fields=["job"],
                condition=~models.Q(phase__in=sorted(phase.value for phase in FINAL_POD_PHASES)),
                name="pod_alive",
            ),
            models.Index(fields=["job"], condition=models.Q(phase=PodPhase.FAILED.value), name="pod_failed"),
            models.Index(fields=["reason", "job"], condition=~models.Q(reason=""), name="pod_by_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.task}-{self.index}"

    @property
    def is_final(self) -> bool:
        return PodPhase(self.phase).is_final


class Placement(models.Model):
    """Of a job that was submitted to a name for queues of several clusters: why it is where it is.

    `candidates`: what each cluster said at that time (`at`, see `domain.routing`), the best first. A job whose
    federated queue is deleted stays where it is.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="placement")
    span = models.ForeignKey(Span, null=True, on_delete=models.SET_NULL, related_name="+")
    candidates = models.JSONField(default=list)
    moves = models.PositiveIntegerField(default=0)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"placement of {self.job_id}"


class SavedView(models.Model):
    """A list of jobs under a name, by its address. `tenant`: whose members share it; none: it is the owner's own."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], condition=models.Q(tenant__isnull=True), name="one_own_view_of_a_name"
            ),
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=models.Q(tenant__isnull=False), name="one_shared_view_of_a_name"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Arrangement(models.Model):
    """How a person wants the list of jobs. `columns`: those chosen; `opens_with`: a view, none for all jobs."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    columns = models.JSONField(default=list)
    opens_with = models.ForeignKey(SavedView, null=True, on_delete=models.SET_NULL, related_name="+")

    def __str__(self) -> str:
        return f"list of {self.user_id}"
