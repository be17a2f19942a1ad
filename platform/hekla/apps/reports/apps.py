from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "hekla.apps.reports"
    label = "reports"

    def ready(self) -> None:
        """Register who writes the mails of reports."""
        from hekla.apps.notifications.choices import Moment  # noqa: PLC0415  (needs the models)
        from hekla.apps.notifications.letters import WRITERS  # noqa: PLC0415

        WRITERS[Moment.REPORT] = "hekla.apps.reports.mailing.ReportLetters"
