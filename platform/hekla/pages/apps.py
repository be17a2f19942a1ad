from django.apps import AppConfig


class PagesConfig(AppConfig):
    name = "hekla.pages"

    def ready(self) -> None:
        """Let every feature join, and measure the tasks that run."""
        from hekla.pages import registry  # noqa: PLC0415
        from hekla.pages.metrics import tasks  # noqa: PLC0415, F401  (it connects signals)

        registry.register_all()
