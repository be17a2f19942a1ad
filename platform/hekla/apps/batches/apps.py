from django.apps import AppConfig


class BatchesConfig(AppConfig):
    name = "hekla.apps.batches"
    label = "batches"

    def ready(self) -> None:
        """Connect the signal that follows batches, and group the notifications of their jobs."""
        from hekla.apps.batches import selectors, wake  # noqa: PLC0415, F401  (connects a signal)
        from hekla.apps.notifications import groups  # noqa: PLC0415  (imports models)

        groups.register(selectors.batches_of)
