"""The secrets of jobs."""

from django.db import models


class JobSecrets(models.Model):
    """What the placeholders in a job's commands stand for, sealed (`sealed`). It goes when the job is deleted."""

    job_uid = models.UUIDField(unique=True, editable=False)
    values = models.BinaryField()

    def __str__(self) -> str:
        return f"secrets of {self.job_uid}"
