"""The secrets of jobs."""

from django.db import models


class JobSecrets(models.Model):
    """What the placeholders in a job's commands stand for, by their names. It goes when the job is deleted."""

    job_uid = models.UUIDField(unique=True, editable=False)
    values = models.JSONField()

    def __str__(self) -> str:
        return f"secrets of {self.job_uid}"
