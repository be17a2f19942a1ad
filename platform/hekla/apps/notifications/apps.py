from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "hekla.apps.notifications"
    label = "notifications"

    def ready(self) -> None:
        """Connect the signal that notifies people after an event."""
        from hekla.apps.notifications import wake  # noqa: PLC0415, F401  (connects a signal)
