from django.apps import AppConfig


class ControllerConfig(AppConfig):
    name = "hekla.controller"
    label = "controller"

    def ready(self) -> None:
        """Wake the controller after every commit by others."""
        from hekla.controller import wakeups, worker_signals  # noqa: PLC0415, F401  (both connect signals)
