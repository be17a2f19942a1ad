"""The table of nodes: one line each, with cards first."""

from collections import defaultdict
from collections.abc import Callable, MutableMapping
from functools import cached_property, lru_cache
from math import floor

from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from hekla.pages.clusters.cordon import TOKEN, cordon_form, drain_link
from hekla.pages.clusters.node_state import state_badge, state_word
from hekla.pages.frame import html
from hekla.pages.frame.html import text
from hekla.pages.frame.row_actions import row_actions
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListTable, TextSearch, named
from hekla.pages.jobs.node_jobs import job_links, words
from hekla.pages.queues.figures import NodeView
from hekla.pages.queues.usage_cells import bars_of, card_bars, usage_cell

_LONGEST, _MOST_ROWS = 80, 1000
_JOBS = SafeString("<jobs>")
"""Stands for the jobs in a row. Nothing else in it is this, since all texts are escaped."""


class NodeRows:
    """The rows of nodes that have not changed, as one reader's page had them: others have other jobs, and tokens."""

    def __init__(self) -> None:
        self._rows: defaultdict[tuple[bool, ...], dict[int, str]] = defaultdict(dict)

    def of(self, *kind: bool) -> MutableMapping[int, str]:
        """The rows by the row id of the node. `kind`: what differs between pages, such as whether rows have actions."""
        rows = self._rows[kind]
        if len(rows) >= _MOST_ROWS:
            rows.clear()
        return rows


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


def _cluster(view: NodeView) -> SafeString:
    return _cluster_cell(view.node.cluster.name, view.node.cluster.is_simulated, get_language())


@lru_cache(maxsize=256)
def _cluster_cell(name: str, is_simulated: bool, _language: str | None) -> SafeString:
    """Cached, since many nodes are in one cluster."""
    simulated = html.badge("borrowed", _("simulated"), _("This node is simulated")) if is_simulated else ""
    return format_html("<span>{} {}</span>", name, simulated)


class NodesTable(ListTable):
    """All nodes. `facts.rows`: a NodeRows, of the same nodes in the same language."""

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
    jobs = ListColumn(gettext_lazy("Jobs"), cell=lambda _view: _JOBS)
    cluster = ListColumn(gettext_lazy("Cluster"), sort="node__cluster__name", cell=_cluster)
    actions = ActionsColumn()

    def row(self, record: NodeView) -> str:
        """A row. Only its jobs, and the token of its form, differ from reader to reader."""
        rows, pk = self._rows, record.node.id
        row = rows.get(pk)
        if row is None:
            row = rows[pk] = super().row(record)
        jobs = f'<span class="one-line">{job_links(record.jobs, *self._words)}</span>' if record.jobs else html.NOTHING
        return row.replace(_JOBS, jobs).replace(TOKEN, self._token)

    def render_actions(self, record: NodeView) -> SafeString:
        """A link to its drain, and the button that cordons it, with the place of the token of the page's forms."""
        return row_actions(drain_link(record.node), cordon_form(record.node, "list", TOKEN if self._token else ""))

    @cached_property
    def _token(self) -> str:
        """The token of the forms; empty in live parts."""
        return text(self.context.get("csrf_token") or "")

    @cached_property
    def _rows(self) -> MutableMapping[int, str]:
        rows: NodeRows = self.facts["rows"]
        return rows.of(bool(self._token), "actions" in self.columns.names())

    @cached_property
    def _words(self) -> tuple[str, str]:
        return words()


def _text(view: NodeView) -> str:
    node = view.node
    return " ".join((node.places, state_word(node), *view.models, *node.taints))


NODE_SEARCH = TextSearch(_text, gettext_lazy("Node, GPU model or cluster"))
