"""The current state of jobs and pods. Their history is in the event log."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models

from hekla.apps.clusters.models import Cluster
from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain.jobspec import EXTERNAL, JobSpec
from hekla.domain.phases import FINAL_JOB_PHASES, FINAL_POD_PHASES, PLACED_POD_PHASES, GangPhase, JobPhase, PodPhase


def _choices(phases: type[JobPhase] | type[GangPhase] | type[PodPhase]) -> list[tuple[str, str]]:
    return [(phase.value, phase.value) for phase in phases]


_LISTED = models.Q(deleted_at__isnull=True)


class Job(models.Model):
    """A job. `version` counts full restarts from 1; `waiting` holds the engine's reasons while it waits.

    `message_facts` is the message as data that can be translated; empty if there is none.
    `revision` counts from 1 the changes of specification and cluster: decisions about another revision are void.
    `deadline_at`: the time limit of a job that has started; `restart_at`: when a restart that waits begins;
    `expires_at`: when a finished job is deleted.
    `reserved_slots`: if some tasks wait for others, or the job grew, the slots of all replicas in the order of the
    specification, so that the pods that start first know the addresses of later ones.

    A job is deleted in steps. `deleted_at`: it is hidden from lists. `cleaned_at`: its pods, files and addresses are
    deleted. After the tenant's retention times its logs are purged (`logs_purged_at`), then the row with its history.
    """

    spec_in_hand: JobSpec | None = None
    """The specification during a change: it must not enter the shared cache before the commit."""
    parsed_spec: tuple[int, JobSpec] | None = None
    """The specification that was parsed from this row, with its revision (see `hekla.apps.jobs.facts`)."""

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
    restart_at = models.DateTimeField(null=True)
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
            models.Index(
                fields=["cluster"],
                condition=models.Q(deleted_at__isnull=False, cleaned_at__isnull=True),
                name="job_to_clean",
            ),
            models.Index(
                fields=["cluster", "expires_at"],
                condition=models.Q(expires_at__isnull=False, deleted_at=None),
                name="job_to_expire",
            ),
            # Indexes to sort, filter and count the list. The initial migration adds one on parts of the name.
            models.Index(fields=["-submitted_at", "-id"], condition=_LISTED, name="job_by_time"),
            models.Index(fields=["name", "id"], condition=_LISTED, name="job_by_name"),
            models.Index(fields=["priority", "id"], condition=_LISTED, name="job_by_priority"),
            models.Index(fields=["replicas", "id"], condition=_LISTED, name="job_by_pods"),
            models.Index(fields=["finished_at"], condition=_LISTED, name="job_by_end"),
            models.Index(fields=["phase", "-submitted_at", "-id"], condition=_LISTED, name="job_by_phase"),
            models.Index(fields=["queue", "phase"], condition=_LISTED, name="job_of_queue"),
            models.Index(fields=["tenant", "phase", "id"], condition=_LISTED, name="job_of_tenant_by_phase"),
            models.Index(fields=["owner", "phase", "tenant"], condition=_LISTED, name="job_of_owner_by_phase"),
            models.Index(fields=["owner", "-submitted_at", "-id"], condition=_LISTED, name="job_of_owner_by_time"),
            models.Index(fields=["kind", "phase"], condition=_LISTED, name="job_of_kind"),
            models.Index(fields=["reason", "id"], condition=_LISTED & ~models.Q(reason=""), name="job_by_reason"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_final(self) -> bool:
        return self.phase in FINAL_JOB_PHASES

    @property
    def is_external(self) -> bool:
        """Whether another controller creates and deletes its pods, and Hekla only schedules them."""
        return self.kind == EXTERNAL

    @property
    def logs_until(self) -> datetime | None:
        """When the logs of a deleted job are purged; None if it is not deleted, or they are purged already."""
        return None if self.logs_purged_at else self._days_after_deletion(self.tenant.log_days)

    @property
    def history_until(self) -> datetime | None:
        """When the row and history of a deleted job are purged; None if it is not deleted."""
        return self._days_after_deletion(self.tenant.history_days)

    def _days_after_deletion(self, days: int) -> datetime | None:
        return self.deleted_at + timedelta(days=days) if self.deleted_at else None


class Pod(models.Model):
    """One attempt of one replica. `slot` is the replica's number in all its attempts; addresses are made from it.

    `annotations`: those that its bind gave it, for the cluster and for later decisions. `cards`: those that it holds or
    held, as `domain.cards.HeldCard`. `cpus`: the CPUs that it has or had for itself, as Linux writes them (`0-3,8`);
    empty: it shared CPUs, or the cluster does not tell.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="pods")
    task = models.CharField(max_length=63)
    index = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    version = models.PositiveIntegerField()
    slot = models.PositiveBigIntegerField()
    address = models.CharField(max_length=120)
    phase = models.CharField(max_length=16, choices=_choices(PodPhase), default=PodPhase.PENDING)
    node = models.CharField(max_length=253, blank=True)
    annotations = models.JSONField(default=dict, db_default={})
    cards = models.JSONField(default=list, db_default=[])
    cpus = models.TextField(blank=True, default="", db_default="")
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
            models.Index(
                fields=["node"],
                condition=models.Q(phase__in=sorted(phase.value for phase in PLACED_POD_PHASES)),
                name="pod_on_node",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task}-{self.index}"

    @property
    def is_final(self) -> bool:
        return self.phase in FINAL_POD_PHASES


class FrozenPod(models.Model):
    """A failed pod whose files and environment stay until `until`, so that a job can continue there.

    `size`: of its files in bytes; null until it is measured. `debug_job`: the last job that continues there, or did.
    It ends in steps. `released_at`: nobody can continue there any more. `cleaned_at`: its files are deleted.
    """

    pod = models.OneToOneField(Pod, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField()
    size = models.BigIntegerField(null=True, default=None)
    debug_job = models.ForeignKey(Job, null=True, default=None, on_delete=models.SET_NULL, related_name="+")
    released_at = models.DateTimeField(null=True, default=None)
    cleaned_at = models.DateTimeField(null=True, default=None)

    class Meta:
        indexes = [models.Index(fields=["until"], condition=models.Q(cleaned_at=None), name="frozen_pod_to_clean")]

    def __str__(self) -> str:
        return f"frozen pod {self.pod_id}"


class FileUpload(models.Model):
    """A file that a person writes into the folder of a pod, piece by piece.

    `path`: of the file, below the working folder. `replaces`: what may be in its place (`backends.uploads`).
    `received`: bytes that are on the disk. `mark`: of the unfinished file, from the backend.
    `fence`: rises with each request that begins to write, so a piece of an older request is refused.
    `sha256`: of the finished file; empty before.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    path = models.TextField()
    replaces = models.CharField(max_length=64, blank=True)
    size = models.BigIntegerField()
    received = models.BigIntegerField(default=0)
    fence = models.PositiveIntegerField(default=1)
    mark = models.CharField(max_length=64, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"upload {self.uid}"


class Placement(models.Model):
    """Why a job of a federated queue is in its cluster.

    `candidates`: the estimates of the clusters at the time `at`, best first (see `domain.routing`). If the federated
    queue is deleted, the job stays where it is.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="placement")
    federated_queue = models.ForeignKey(FederatedQueue, null=True, on_delete=models.SET_NULL, related_name="+")
    candidates = models.JSONField(default=list)
    moves = models.PositiveIntegerField(default=0)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"placement of {self.job_id}"


class SavedView(models.Model):
    """A named list of jobs, as a URL query. `tenant`: its members share the view; null: only its owner has it."""

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


class JobListSettings(models.Model):
    """A person's settings of the job list. `columns`: the chosen ones; `opens_with`: a view, null for all jobs."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    columns = models.JSONField(default=list)
    opens_with = models.ForeignKey(SavedView, null=True, on_delete=models.SET_NULL, related_name="+")

    def __str__(self) -> str:
        return f"list of {self.user_id}"
