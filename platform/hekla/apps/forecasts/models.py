"""Forecasts of the start times of jobs, for comparison with the actual ones."""

from django.db import models

from hekla.apps.jobs.models import Job


class Forecast(models.Model):
    """The forecast made when the job began to wait; `earliest_at` and `latest_at` are null if none was possible."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="+", primary_key=True)
    made_at = models.DateTimeField()
    earliest_at = models.DateTimeField(null=True)
    latest_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"job {self.job_id}"
