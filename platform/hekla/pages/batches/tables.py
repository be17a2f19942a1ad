"""The table of batches."""

from django.http import HttpRequest, QueryDict
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.batches.models import Batch
from hekla.pages.batches import context
from hekla.pages.batches.context import BatchRow
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, Listing, ListTable, OwnedFilter, listing, listing_of, named


def _name(row: BatchRow) -> SafeString:
    batch = row.batch
    kind = _("sweep") if batch.kind == Batch.Kind.SWEEP else _("file")
    return named("batches:detail", batch.uid, batch.name, f"{batch.owner} · {batch.tenant} · {kind}")


class BatchesTable(ListTable):
    """The batches that the reader may see."""

    label = gettext_lazy("Batches")
    suggests = "batch"
    ids = "row-{0.batch.uid}"

    name = ListColumn(gettext_lazy("Batch"), sort="name", cell=_name)
    states = ListColumn(gettext_lazy("States"), template="batches/_row_bar.html")
    jobs = ListColumn(gettext_lazy("Jobs"), cell=lambda row: row.size, number=True)
    submitted = ListColumn(
        gettext_lazy("Submitted"), sort="submitted_at", cell=lambda row: html.moment(row.batch.submitted_at)
    )


def batches_on(request: HttpRequest, user: User) -> Listing:
    """The page of the list for a request."""
    return listing(request, BatchesTable, selectors.visible_to(user), OwnedFilter, rows=context.rows)


def batches_for(query: QueryDict, user: User) -> Listing:
    """The same page for its live view."""
    return listing_of(query, BatchesTable, selectors.visible_to(user), OwnedFilter, rows=context.rows)
