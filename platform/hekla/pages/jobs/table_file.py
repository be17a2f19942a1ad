"""The list of jobs as a CSV file, streamed so that its length costs no memory."""

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from hekla.apps import paging
from hekla.apps.jobs import cards
from hekla.apps.jobs.models import Job
from hekla.apps.paging import Order
from hekla.pages.frame.downloads import cell, csv_text
from hekla.pages.jobs.columns import COLUMNS

_AT_ONCE = 1000
_UNLISTED = ("spec", "message_facts", "waiting", "reserved_slots")
HEAD = ("uid", "name", *(column.name for column in COLUMNS))


async def lines(jobs: QuerySet[Job], order: Order) -> AsyncIterator[str]:
    """The lines of the file, in chunks of 1000 jobs. Times are in UTC, run times in seconds."""
    cursor = ""
    yield csv_text([HEAD])
    while True:
        page = await sync_to_async(paging.page)(cards.with_tasks(jobs.defer(*_UNLISTED)), order, cursor, _AT_ONCE)
        yield csv_text([_row(job) for job in page.rows])
        if not page.next:
            return
        cursor = page.next


def _row(job: Job) -> list[str]:
    return [str(job.uid), cell(job.name), *(cell(column.value(job)) for column in COLUMNS)]
