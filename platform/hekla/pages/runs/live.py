"""The live view of a comparison."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.live.registry import LiveView, Params
from hekla.pages.frame.tables import words_of
from hekla.pages.runs import context as comparison


def _topics(user: User, params: Params) -> frozenset[str]:
    """The events and the metrics of each job."""
    runs = comparison.table(words_of(params), user).runs
    return frozenset(f"{kind}:{key}" for run in runs for kind, key in (("job", run.job.uid), ("metrics", run.job.pk)))


def _comparison(user: User, params: Params) -> str:
    words = words_of(params)
    return render_to_string("runs/_live.html", comparison.page(comparison.table(words, user), words))


VIEWS = {"comparison": (LiveView(_topics, _comparison),)}
