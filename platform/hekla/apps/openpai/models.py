"""Submissions by JobConfig."""

from django.conf import settings
from django.db import models

from hekla.apps.jobs.models import Job


class Submission(models.Model):
    """A job submitted as a JobConfig: its OpenPAI name, unique for its owner, and the JobConfig.

    `config` is YAML without secrets; `tags` are words that clients put on the job.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="jobconfig")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=255)
    config = models.TextField()
    tags = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_jobconfig_of_a_name")]

    def __str__(self) -> str:
        return self.name
