from django.apps import AppConfig
from django.utils.translation import gettext

from hekla.domain import translation


class ProjectConfig(AppConfig):
    name = "hekla.project"
    label = "project"

    def ready(self) -> None:
        """Translate what the domain says into the language of the request that it is said to."""
        translation.set_translator(gettext)
