from django.apps import AppConfig


class IdlenessConfig(AppConfig):
    name = "hekla.apps.idleness"
    label = "idleness"

    def ready(self) -> None:
        """Let submissions pass the check of idle times."""
        from hekla.apps.jobs import spec_checks  # noqa: PLC0415  (needs the models)

        spec_checks.register("hekla.apps.idleness.choices.problems")
