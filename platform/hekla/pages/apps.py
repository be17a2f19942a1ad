from django.apps import AppConfig
from django.core import checks


class PagesConfig(AppConfig):
    name = "hekla.pages"

    def ready(self) -> None:
        """Register live views, search sources and the check of all features, and connect the metrics of tasks.

        The steps for languages and time zones are replaced here too, because REST needs no templates.
        """
        from hekla.pages import lazy_views, registry  # noqa: PLC0415
        from hekla.pages.frame import quick_locals  # noqa: PLC0415
        from hekla.pages.metrics import tasks  # noqa: PLC0415, F401  (it connects signals)

        quick_locals.replace_steps()
        registry.register_all()
        checks.register(lazy_views.check, checks.Tags.urls)
