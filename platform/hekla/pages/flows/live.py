"""The live views of flow pages."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.flows import overview as flows_shown
from hekla.apps.flows import selectors as flows
from hekla.live.registry import LiveView, Params
from hekla.pages.flows.tables import flows_for
from hekla.pages.frame.tables import words_of
from hekla.pages.frame.topics import tenant_topics, uid_of


def _flow_topics(user: User, params: Params) -> frozenset[str]:
    """All events of the flow's tenant, because the flow's future jobs are not known yet."""
    return frozenset({f"tenant:{flows.get(uid_of(params), user).tenant_id}"})


def _flow(user: User, params: Params) -> str:
    return render_to_string("flows/_live.html", flows_shown.detail(flows.get(uid_of(params), user), user))


def _flows(user: User, params: Params) -> str:
    return render_to_string("flows/_list.html", {"flows": flows_for(words_of(params), user)})


VIEWS = {
    "flow": (LiveView(_flow_topics, _flow),),
    "flows": (LiveView(tenant_topics, _flows),),
}
