from django.apps import AppConfig
from django.utils.translation import gettext

from hekla.domain import translation


class ProjectConfig(AppConfig):
    name = "hekla.project"
    label = "project"

    def ready(self) -> None:
        """Load the Celery application and the deployment checks, and let the domain translate with Django.

        Each process sends tasks through this application. Messages are in the language of the request.
        """
        from hekla.apps import database_values  # noqa: PLC0415
        from hekla.project import celery, checks  # noqa: PLC0415, F401

        translation.set_translator(gettext)
        database_values.register()
