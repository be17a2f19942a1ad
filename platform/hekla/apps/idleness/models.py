"""Idle rules of the platform and of tenants, what sessions did minute by minute, and what was decided about them."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.apps.workbench.models import ToolSession
from hekla.domain.idleness import IdleWarning

LONGEST_IDLE_MINUTES, LONGEST_GRACE_MINUTES = 3 * 24 * 60, 24 * 60
SHORTEST_IDLE_MINUTES, SHORTEST_GRACE_MINUTES = 5, 5
SHORTEST_JOB_MINUTES, LONGEST_JOB_MINUTES = 10, 12 * 60
"""With the grace time, samples of a day are enough: older ones are coarser than a minute."""
LARGEST_PERCENT, LARGEST_KIB = 100_000, 10_000_000


def _from(least: int, most: int) -> list[MinValueValidator | MaxValueValidator]:
    return [MinValueValidator(least), MaxValueValidator(most)]


class IdlePolicy(models.Model):
    """When idle sessions end, and jobs that hold GPUs they do not use. Without a tenant: for all of them.

    `cpu_percent`: of one core; `gpu_percent`: of one GPU; `network_kib`: per minute. A signal without a limit does not
    count. `gpu_job_minutes`: the idle time of jobs; null: no job is aborted.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="+", db_index=False)
    ends_sessions = models.BooleanField(default=False)
    idle_minutes = models.PositiveIntegerField(
        default=120, validators=_from(SHORTEST_IDLE_MINUTES, LONGEST_IDLE_MINUTES)
    )
    grace_minutes = models.PositiveIntegerField(
        default=30, validators=_from(SHORTEST_GRACE_MINUTES, LONGEST_GRACE_MINUTES)
    )
    cpu_percent = models.PositiveIntegerField(null=True, blank=True, default=20, validators=_from(1, LARGEST_PERCENT))
    gpu_percent = models.PositiveIntegerField(null=True, blank=True, default=5, validators=_from(1, LARGEST_PERCENT))
    network_kib = models.PositiveIntegerField(null=True, blank=True, default=None, validators=_from(1, LARGEST_KIB))

    gpu_job_minutes = models.PositiveIntegerField(
        null=True, blank=True, default=None, validators=_from(SHORTEST_JOB_MINUTES, LONGEST_JOB_MINUTES)
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], nulls_distinct=False, name="one_idle_policy_of_a_tenant")
        ]

    def __str__(self) -> str:
        return f"idle rule of {self.tenant_id or 'all'}"


class SessionMinute(models.Model):
    """What a session did in the minute from `at` on. Null: not known. About 90 bytes.

    The first five are amounts that the console counts itself; `terminal` and `ssh` are those of the session's owner in
    its pod. `kernel`: the number of busy kernels; `cpu`, `gpu`: in per cent of one.
    """

    pk = models.CompositePrimaryKey("session_id", "at")
    session = models.ForeignKey(ToolSession, on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    requests = models.BigIntegerField(default=0, db_default=0)
    input = models.BigIntegerField(default=0, db_default=0)
    terminal = models.BigIntegerField(default=0, db_default=0)
    ssh = models.BigIntegerField(default=0, db_default=0)
    network_bytes = models.BigIntegerField(default=0, db_default=0)
    kernel = models.IntegerField(null=True)
    cpu = models.IntegerField(null=True)
    gpu = models.IntegerField(null=True)

    class Meta:
        indexes = [models.Index(fields=["at"], name="session_minute_by_age")]

    def __str__(self) -> str:
        return f"session {self.session_id} at {self.at:%F %T}"


class _Idleness(models.Model):
    """The last warning, and the wish of a person to keep something. `keep_until`: at most once."""

    warned_at = models.DateTimeField(null=True, default=None)
    ends_at = models.DateTimeField(null=True, default=None)
    keep_until = models.DateTimeField(null=True, default=None)
    keep_reason = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        abstract = True

    @property
    def warning(self) -> IdleWarning | None:
        """The last warning; None if there was none."""
        return IdleWarning(self.warned_at, self.ends_at) if self.warned_at and self.ends_at else None


class SessionIdleness(_Idleness):
    """A session that was warned, or that a person keeps."""

    session = models.OneToOneField(ToolSession, on_delete=models.CASCADE, related_name="idleness")

    def __str__(self) -> str:
        return f"idleness of session {self.session_id}"


class JobIdleness(_Idleness):
    """A job that was warned because of its GPUs, or that a person keeps."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="idleness")

    def __str__(self) -> str:
        return f"idleness of job {self.job_id}"
