"""The live views of cluster pages."""

from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.domain.errors import NotFound
from hekla.live.registry import LiveView, Params
from hekla.pages.clusters import node_views, views
from hekla.pages.frame.tables import words_of
from hekla.pages.frame.topics import all_topics, cluster_topics, role_snapshot


def _nodes(user: User, params: Params) -> str:
    return render_to_string("clusters/_nodes.html", node_views.node_parts(user, words_of(params)))


def _node(user: User, params: Params) -> str:
    text = params.get("node", "")
    if not (text.isdigit() and len(text) < 19):  # noqa: PLR2004  (what a row id can be)
        raise NotFound(_("Unknown node."))
    return render_to_string("clusters/_node.html", node_views.one_parts(user, int(text)))


def _managers(user: User, _params: Params) -> None:
    """The same audience for all who may manage clusters. Raises NotFound for all others."""
    if not accounts.may(user, Permission.MANAGE_CLUSTERS):
        raise NotFound(_("Unknown page."))


def _managed_topic(_user: User, params: Params) -> frozenset[str]:
    return frozenset({f"cluster:{clusters.get(params.get('name', '')).pk}"})


def _clusters(user: User, params: Params) -> str:
    return render_to_string("clusters/_list.html", views.all_parts(user, words_of(params)))


def _cluster(user: User, params: Params) -> str:
    return render_to_string("clusters/_detail.html", views.parts(params.get("name", ""), user))


VIEWS = {
    "nodes": (LiveView(all_topics, _nodes, role_snapshot),),
    "node": (LiveView(all_topics, _node, role_snapshot),),
    "clusters": (LiveView(cluster_topics, _clusters, _managers),),
    "cluster": (LiveView(_managed_topic, _cluster, _managers),),
}
