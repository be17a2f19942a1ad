from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    name = "hekla.apps.schedules"
    label = "schedules"

    def ready(self) -> None:
        """Wake the task that starts schedules when they are due."""
        from hekla.apps.schedules import wake  # noqa: PLC0415, F401  (connects a signal)
