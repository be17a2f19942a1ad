from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "hekla.project"
    label = "project"

    def ready(self) -> None:
        """Make Celery's application the one that every process sends through, and the pages live."""
        from hekla.project import celery, fragments  # noqa: PLC0415, F401

        fragments.register_all()
