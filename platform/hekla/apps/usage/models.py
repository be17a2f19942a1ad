"""Samples of resource use, of 130 to 160 bytes, half of them in the two indexes; and the room of files."""

from django.db import models

from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy.models import Tenant


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


class JobFolder(models.Model):
    """The room that the files of a job take, as measured at `measured_at`; None: not yet.

    `is_complete`: everything was counted. `due_at`: when it is measured next. `tenant`: that of the job, to add up and
    sort with one index.
    """

    job = models.OneToOneField(Job, primary_key=True, on_delete=models.CASCADE, related_name="+")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    size = models.BigIntegerField(default=0)
    files = models.BigIntegerField(default=0)
    is_complete = models.BooleanField(default=True)
    measured_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-size"], name="folder_by_size")]

    def __str__(self) -> str:
        return f"files of job {self.job_id}"
