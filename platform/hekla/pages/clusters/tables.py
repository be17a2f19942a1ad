"""The tables of environments and clusters."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.clusters.models import Cluster, Environment, Lease
from hekla.pages.clusters.health import HealthView
from hekla.pages.clusters.overview import ClusterUse
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable, TextSearch, named
from hekla.pages.queues.usage_cells import bars_of, card_bars, usage_cell


def _packages(environment: Environment) -> SafeString | str:
    if not environment.requirements:
        return _("the console's Python")
    return format_html("<code>{}</code>", truncatechars(", ".join(environment.requirements.splitlines()), 120))


class EnvironmentsTable(ListTable):
    """Named environments. `facts.may_edit`: whether the reader may change them."""

    label = gettext_lazy("Environments")

    name = ListColumn(gettext_lazy("Name"), sort="name")
    description = ListColumn(gettext_lazy("Description"), sort="description")
    packages = ListColumn(gettext_lazy("Packages"), cell=_packages)
    since = ListColumn(gettext_lazy("Added"), sort="created_at", cell=lambda one: html.moment(one.created_at))

    def render_name(self, record: Environment) -> SafeString:
        """The name, as a link for people who may change it."""
        if self.facts["may_edit"]:
            return named("clusters:edit_environment", record.name, record.name)
        return format_html("{}", record.name)


class EnvironmentsFilter(ListFilter):
    """Filters by name, description and packages."""

    search = ("name", "description", "requirements")
    hint = gettext_lazy("Name or package")


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster with the lease of its controller, and its health if known."""

    cluster: Cluster
    lease: Lease | None
    health: HealthView | None
    use: ClusterUse


def _controller(row: ClusterRow) -> SafeString | None:
    if row.lease is None:
        return None
    words = format_html('<span class="muted">{} {}</span>', _("epoch"), row.lease.epoch)
    return format_html("<span>{} {}</span>", row.lease.holder, words)


class ClustersTable(ListTable):
    """All clusters. `facts.now`: the time that decides which leases have expired."""

    label = gettext_lazy("Clusters")
    is_dense = True

    name = ListColumn(
        gettext_lazy("Name"),
        sort="cluster__name",
        cell=lambda row: named("clusters:detail", row.cluster.name, row.cluster.name),
    )
    kind = ListColumn(gettext_lazy("Kind"), sort="cluster__kind_label", cell=lambda row: row.cluster.kind_label)
    state = ListColumn(gettext_lazy("State"), template="clusters/_row_state.html")
    version = ListColumn(
        gettext_lazy("Version"), sort="health__version", cell=lambda row: row.health and row.health.version
    )
    nodes = ListColumn(gettext_lazy("Nodes"), sort="use__nodes", cell=lambda row: row.use.nodes, number=True)
    gpus = ListColumn(gettext_lazy("GPUs"), cell=lambda row: usage_cell(card_bars(row.use.bars)))
    cpu = ListColumn(gettext_lazy("CPU"), cell=lambda row: usage_cell(bars_of(row.use.bars, "cpu")))
    running = ListColumn(gettext_lazy("Running"), sort="use__running", cell=lambda row: row.use.running, number=True)
    waiting = ListColumn(gettext_lazy("Pending"), sort="use__waiting", cell=lambda row: row.use.waiting, number=True)
    controller = ListColumn(gettext_lazy("Controlled by"), sort="lease__holder", cell=_controller)
    since = ListColumn(
        gettext_lazy("Added"), sort="cluster__created_at", cell=lambda row: html.moment(row.cluster.created_at)
    )
    actions = ActionsColumn("clusters/_row_actions.html")


def without_values(rows: Iterable[ClusterRow]) -> tuple[str, ...]:
    """The columns in which no cluster has a value."""
    rows = list(rows)
    has = {
        "version": any(row.health and row.health.version for row in rows),
        "gpus": any(card_bars(row.use.bars) for row in rows),
    }
    return tuple(name for name, is_there in has.items() if not is_there)


CLUSTER_SEARCH = TextSearch(lambda row: f"{row.cluster.name} {row.cluster.kind_label}", gettext_lazy("Name or kind"))
