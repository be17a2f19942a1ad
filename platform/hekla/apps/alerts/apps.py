from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "hekla.apps.alerts"
    label = "alerts"

    def ready(self) -> None:
        """Connect the signal that wakes the evaluation after an event."""
        from hekla.apps.alerts import wake  # noqa: PLC0415, F401  (connects a signal)
