from django.apps import AppConfig


class PagesConfig(AppConfig):
    name = "hekla.pages"

    def ready(self) -> None:
        """Register the live views and search sources of all features, and connect the metrics of tasks."""
        from hekla.pages import registry  # noqa: PLC0415
        from hekla.pages.metrics import tasks  # noqa: PLC0415, F401  (it connects signals)

        registry.register_all()
