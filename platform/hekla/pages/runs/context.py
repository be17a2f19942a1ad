"""The comparison of the jobs in an address, shared by the page and its live parts."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.batches.comparison import MOST_JOBS, compare
from hekla.domain.errors import NotFound
from hekla.pages.runs import table as tables
from hekla.pages.runs.table import RunTable


def table(query: QueryDict, user: User) -> RunTable:
    """The jobs of the query. Raises NotFound outside the person's tenants, and Invalid for too many."""
    try:
        uids = [UUID(text) for text in query.getlist("job")]
    except ValueError as error:
        raise NotFound(_("Unknown job.")) from error
    return tables.table(compare(uids, user), query)


def page(runs: RunTable, query: QueryDict) -> dict[str, Any]:
    """Everything that the page shows."""
    uids = [run.job.uid for run in runs.runs]
    everything = f"?{urlencode([('job', uid) for uid in uids])}"
    facts = {"uids": uids, "most_jobs": MOST_JOBS, "is_comparison": True, "everything": everything}
    return {**facts, **tables.context(runs, query)}
