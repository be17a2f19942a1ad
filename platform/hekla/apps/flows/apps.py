from django.apps import AppConfig


class FlowsConfig(AppConfig):
    name = "hekla.apps.flows"
    label = "flows"

    def ready(self) -> None:
        """Connect the signal that advances flows after an event of a job."""
        from hekla.apps.flows import wake  # noqa: PLC0415, F401  (connects a signal)
