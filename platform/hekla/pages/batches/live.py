"""The live views of batch pages."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors as batches
from hekla.live.registry import LiveView, Params
from hekla.pages.batches import context as batches_shown
from hekla.pages.batches.tables import batches_for
from hekla.pages.frame.tables import words_of
from hekla.pages.frame.topics import tenant_topics, uid_of


def _batches(user: User, params: Params) -> str:
    return render_to_string("batches/_list.html", {"batches": batches_for(words_of(params), user)})


def _batch_topics(user: User, params: Params) -> frozenset[str]:
    """The batch's own topic, and that of its tenant, which has the events of its jobs."""
    batch = batches.get(uid_of(params), user)
    return frozenset({f"batch:{batch.uid}", f"tenant:{batch.tenant_id}"})


def _batch(user: User, params: Params) -> str:
    context = batches_shown.detail(batches.get(uid_of(params), user), user, words_of(params))
    return render_to_string("batches/_live.html", context)


VIEWS = {
    "batches": (LiveView(tenant_topics, _batches),),
    "batch": (LiveView(_batch_topics, _batch),),
}
