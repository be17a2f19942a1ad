"""The live view of a comparison."""

from django.core.exceptions import TooManyFieldsSent
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.domain.errors import Invalid, NotFound
from hekla.live.registry import LiveView, Params
from hekla.pages.runs import context as comparison
from hekla.pages.runs.table import RunTable

_MOST_IN_ADDRESS = 8_000
"""Fifty jobs alone are more than the addresses of other live pages may have."""


def _table(user: User, params: Params) -> tuple[RunTable, QueryDict]:
    """The comparison and the words of its address. Raises NotFound for whatever the page would refuse."""
    try:
        words = QueryDict(params.get("query", "")[:_MOST_IN_ADDRESS])
        return comparison.table(words, user), words
    except (Invalid, TooManyFieldsSent) as error:
        raise NotFound(_("Unknown job.")) from error


def _topics(user: User, params: Params) -> frozenset[str]:
    """The events and the metrics of each job."""
    runs = _table(user, params)[0].runs
    return frozenset(f"{kind}:{key}" for run in runs for kind, key in (("job", run.job.uid), ("metrics", run.job.pk)))


def _comparison(user: User, params: Params) -> str:
    return render_to_string("runs/_live.html", comparison.page(*_table(user, params)))


VIEWS = {"comparison": (LiveView(_topics, _comparison),)}
