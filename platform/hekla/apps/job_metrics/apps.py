from django.apps import AppConfig


class JobMetricsConfig(AppConfig):
    name = "hekla.apps.job_metrics"
    label = "job_metrics"

    def ready(self) -> None:
        """Wake the task that reads logs after an event of a job."""
        from hekla.apps.job_metrics import wake  # noqa: PLC0415, F401  (connects a signal)
