"""The live views of demonstration pages."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.demonstrations import catalogue as demonstrations
from hekla.live.registry import LiveView, Params
from hekla.pages.demonstrations import context as demonstrations_shown


def _demonstration_topics(_user: User, params: Params) -> frozenset[str]:
    """All events of the demonstration's cluster. People who may not see its jobs get the unchanged page."""
    stage = demonstrations.get(params.get("name", "")).stage
    return frozenset(
        f"cluster:{pk}" for pk in clusters.all_clusters().filter(name=stage.name).values_list("pk", flat=True)
    )


def _demonstration(user: User, params: Params) -> str:
    context = demonstrations_shown.detail(params.get("name", ""), user)
    return render_to_string("demonstrations/_run.html", context)


VIEWS = {
    "demonstration": (LiveView(_demonstration_topics, _demonstration),),
}
