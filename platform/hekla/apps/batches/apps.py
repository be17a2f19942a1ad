from django.apps import AppConfig


class BatchesConfig(AppConfig):
    name = "hekla.apps.batches"
    label = "batches"

    def ready(self) -> None:
        """Group the notifications of the jobs of a batch."""
        from hekla.apps.batches import selectors  # noqa: PLC0415  (imports models)
        from hekla.apps.notifications import groups  # noqa: PLC0415  (imports models)

        groups.register(selectors.batches_of)
