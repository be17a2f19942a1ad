from django.apps import AppConfig


class FlowsConfig(AppConfig):
    name = "hekla.apps.flows"
    label = "flows"

    def ready(self) -> None:
        """Let flows go on soon after a job of theirs changed."""
        from hekla.apps.flows import wake  # noqa: PLC0415, F401  (connects a signal)
