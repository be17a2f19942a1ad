from django.apps import AppConfig
from django.utils.translation import gettext

from hekla.domain import translation


class ProjectConfig(AppConfig):
    name = "hekla.project"
    label = "project"

    def ready(self) -> None:
        """Make Celery's application the one that every process sends through, measure its tasks, and make pages live.

        What the domain says is said in the language of the request that it is said to.
        """
        from hekla.pages import live_views  # noqa: PLC0415
        from hekla.pages.metrics import tasks  # noqa: PLC0415, F401  (it connects signals)

        live_views.register_all()
        translation.set_translator(gettext)
