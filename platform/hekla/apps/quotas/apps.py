from django.apps import AppConfig


class QuotasConfig(AppConfig):
    name = "hekla.apps.quotas"
    label = "quotas"

    def ready(self) -> None:
        """Add columns of quotas to the tables of people."""
        from hekla.apps.quotas import columns  # noqa: PLC0415, F401  (adds its columns)
