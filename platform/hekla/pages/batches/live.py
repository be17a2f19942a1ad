"""The live parts of these pages."""

from django.http import QueryDict
from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors as batches
from hekla.live.registry import LiveView, Params
from hekla.pages.batches import context as batches_shown
from hekla.pages.frame.topics import tenant_topics, uid_of


def _batches(user: User, _params: Params) -> str:
    return render_to_string("batches/_list.html", {"rows": batches_shown.rows(user)})


def _batch_topics(user: User, params: Params) -> frozenset[str]:
    """Its own topic, and its tenant's: what its jobs do is told there."""
    batch = batches.get(uid_of(params), user)
    return frozenset({f"batch:{batch.uid}", f"tenant:{batch.tenant_id}"})


def _batch(user: User, params: Params) -> str:
    query = QueryDict(params.get("query", "")[:2000])
    return render_to_string("batches/_live.html", batches_shown.detail(batches.get(uid_of(params), user), user, query))


VIEWS = {
    "batches": (LiveView(tenant_topics, _batches),),
    "batch": (LiveView(_batch_topics, _batch),),
}
