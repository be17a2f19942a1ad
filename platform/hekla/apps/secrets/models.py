"""The secrets of jobs."""

from django.db import models


class JobSecrets(models.Model):
    """The secrets of a job by name, encrypted. They are deleted with the job."""

    job_uid = models.UUIDField(unique=True, editable=False)
    values = models.BinaryField()

    def __str__(self) -> str:
        return f"secrets of {self.job_uid}"
