from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "hekla.project"
    label = "project"

    def ready(self) -> None:
        """Make Celery's application the one that every process sends through."""
        from hekla.project import celery  # noqa: PLC0415, F401
