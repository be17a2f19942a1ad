"""The Celery task of reports. The rows decide which are due."""

from celery import shared_task

from hekla.apps import due_work
from hekla.apps.reports import selectors, services
from hekla.lib import clock


@shared_task(name="hekla.reports.send_due")
def send_due() -> None:
    """Send the reports that are due (Celery beat). The mails of notifications deliver them."""
    services.send_due(now=clock.now())


due_work.declare("hekla.reports.send_due", selectors.send_work)
