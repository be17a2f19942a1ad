from django.apps import AppConfig
from django.utils.translation import gettext

from hekla.domain import translation


class ProjectConfig(AppConfig):
    name = "hekla.project"
    label = "project"

    def ready(self) -> None:
        """Make Celery's application the one that every process sends through, and know the checks of a deployment.

        Translate what the domain says into the language of the request that it is said to.
        """
        from hekla.project import celery, checks  # noqa: PLC0415, F401

        translation.set_translator(gettext)
