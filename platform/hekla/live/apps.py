from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "hekla.live"
    label = "live"

    def ready(self) -> None:
        """Wake open pages after every commit."""
        from hekla.live import wake  # noqa: PLC0415, F401  (connects a signal)
