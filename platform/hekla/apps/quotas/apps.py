from django.apps import AppConfig


class QuotasConfig(AppConfig):
    name = "hekla.apps.quotas"
    label = "quotas"

    def ready(self) -> None:
        """Let tables of people say quotas too."""
        from hekla.apps.quotas import columns  # noqa: PLC0415, F401  (adds its columns)
