from django.apps import AppConfig


class DemonstrationsConfig(AppConfig):
    name = "hekla.apps.demonstrations"
    label = "demonstrations"

    def ready(self) -> None:
        """Connect the signal that advances demonstrations."""
        from hekla.apps.demonstrations import wake  # noqa: PLC0415, F401  (connects a signal)
