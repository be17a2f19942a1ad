from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "hekla.apps.reports"
    label = "reports"

    def ready(self) -> None:
        """Register how notifications of reports are mailed."""
        from hekla.apps.reports import mailing  # noqa: PLC0415

        mailing.register()
