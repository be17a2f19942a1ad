"""The table of nodes: one line each, with cards first."""

from collections.abc import Callable
from functools import lru_cache
from math import floor

from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from hekla.pages.clusters.cordon import cordon_form, drain_link
from hekla.pages.clusters.node_state import state_badge, state_word
from hekla.pages.frame import html
from hekla.pages.frame.row_actions import row_actions
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListTable, TextSearch, named
from hekla.pages.jobs.node_jobs import node_jobs
from hekla.pages.queues.figures import NodeView
from hekla.pages.queues.usage_cells import bars_of, card_bars, usage_cell

_LONGEST = 80


def _state(view: NodeView) -> SafeString:
    """The state, and why a node is not ready."""
    node = view.node
    if node.is_ready or not node.message:
        return state_badge(node)
    reason = truncatechars(node.message, _LONGEST)
    return format_html('<span>{} <span class="muted" title="{}">{}</span></span>', state_badge(node), reason, reason)


def _model(view: NodeView) -> str:
    return _(", ").join(view.models)


def _usage_of(name: str) -> Callable[[NodeView], SafeString]:
    return lambda view: usage_cell(bars_of(view.bars, name))


def _measured(view: NodeView) -> str:
    if view.usage is None:
        return ""
    cpu, memory = (floor(part + 0.5) for part in (view.usage.cpu, view.usage.memory))  # halves up, as elsewhere
    return _("%(cpu)s %% CPU, %(memory)s %% memory") % {"cpu": cpu, "memory": memory}


def _jobs(view: NodeView) -> SafeString | None:
    return SafeString(f'<span class="one-line">{node_jobs(view.jobs)}</span>') if view.jobs else None


def _cluster(view: NodeView) -> SafeString:
    return _cluster_cell(view.node.cluster.name, view.node.cluster.is_simulated, get_language())


@lru_cache(maxsize=256)
def _cluster_cell(name: str, is_simulated: bool, _language: str | None) -> SafeString:
    """Cached, since many nodes are in one cluster."""
    simulated = html.badge("borrowed", _("simulated"), _("This node is simulated")) if is_simulated else ""
    return format_html("<span>{} {}</span>", name, simulated)


class NodesTable(ListTable):
    """All nodes. `facts.may_cordon`: whether the reader may cordon them."""

    label = gettext_lazy("Nodes")
    suggests = "node"
    ids = "node-{0.node.pk}"
    size = 50
    is_always_searchable = True
    is_dense = True

    name = ListColumn(
        gettext_lazy("Node"),
        sort="node__name",
        cell=lambda view: named("clusters:node", view.node.pk, view.node.name),
    )
    state = ListColumn(gettext_lazy("State"), sort=("node__is_ready", "node__is_cordoned"), cell=_state)
    model = ListColumn(gettext_lazy("GPU model"), sort="model_words", cell=_model)
    cards = ListColumn(gettext_lazy("GPUs"), sort="free_cards", cell=lambda view: usage_cell(card_bars(view.bars)))
    cpu = ListColumn(gettext_lazy("CPU"), sort="free_cpu", cell=_usage_of("cpu"))
    memory = ListColumn(gettext_lazy("Memory"), sort="free_memory", cell=_usage_of("memory"))
    measured = ListColumn(gettext_lazy("Measured usage"), sort="measured_cpu", cell=_measured)
    jobs = ListColumn(gettext_lazy("Jobs"), cell=_jobs)
    cluster = ListColumn(gettext_lazy("Cluster"), sort="node__cluster__name", cell=_cluster)
    actions = ActionsColumn()

    def render_actions(self, record: NodeView) -> SafeString:
        """A link to its drain, and the button that cordons it, with the token of the page's forms."""
        form = cordon_form(record.node, "list", self.context.get("csrf_token"))
        return row_actions(drain_link(record.node), form)


def _text(view: NodeView) -> str:
    node = view.node
    return " ".join((node.places, state_word(node), *view.models, *node.taints))


NODE_SEARCH = TextSearch(_text, gettext_lazy("Node, GPU model or cluster"))
