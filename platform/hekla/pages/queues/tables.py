"""The table of queues."""

from collections.abc import Callable
from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.queues.models import Queue
from hekla.pages.frame import html
from hekla.pages.frame.html import text
from hekla.pages.frame.row_actions import Button, row_actions
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListTable, TextSearch, named, noted
from hekla.pages.queues.figures import Branch
from hekla.pages.queues.usage_cells import bars_of, card_bars, usage_cell

# The cells are functions because the list can be long: a template for each cell would take a fifth of the page's time.


def _state_note(queue: Queue) -> SafeString | str:
    """Who closed the queue, and when; empty if it is open."""
    if queue.is_open or not queue.state_at:
        return ""
    at = html.moment(queue.state_at)
    return format_html("{} · {}", queue.state_by, at) if queue.state_by else at


def _cards(branch: Branch) -> SafeString:
    return usage_cell(card_bars(branch.view.bars))


def _usage_of(name: str) -> Callable[[Branch], SafeString]:
    return lambda branch: usage_cell(bars_of(branch.view.bars, name))


@lru_cache(maxsize=1024)
def _edit_link(name: str, _language: str) -> SafeString:
    return row_actions(Button(_("Edit"), picture="edit").link(html.address("queues:edit", name)))


def _weight(branch: Branch) -> SafeString:
    queue = branch.view.queue
    return noted(queue.weight, f"{_('priority')} {queue.priority}" if queue.priority else "")


@lru_cache(maxsize=256)
def _cluster_cell(name: str, is_simulated: bool, _language: str) -> SafeString:
    """Cached, since many queues are in one cluster."""
    words = (_("simulated"), _("Its nodes and pods are simulated")) if is_simulated else ()
    return format_html("<span>{} {}</span>", name, html.badge("borrowed", *words) if words else "")


class QueuesTable(ListTable):
    """The queues that the reader may see, as a tree unless sorted."""

    label = gettext_lazy("Queues")
    suggests = "queue"
    ids = "queue-{0.view.queue.pk}"
    is_always_searchable = True
    is_dense = True

    name = ListColumn(gettext_lazy("Queue"), sort="view__queue__name")
    state = ListColumn(gettext_lazy("State"), sort="view__queue__state")
    cards = ListColumn(gettext_lazy("GPUs"), sort="view__card_share", cell=_cards)
    cpu = ListColumn(gettext_lazy("CPU"), sort="view__cpu_share", cell=_usage_of("cpu"))
    memory = ListColumn(gettext_lazy("Memory"), sort="view__memory_share", cell=_usage_of("memory"))
    running = ListColumn(
        gettext_lazy("Running"), sort="view__use__running", cell=lambda branch: branch.view.use.running, number=True
    )
    waiting = ListColumn(
        gettext_lazy("Pending"), sort="view__use__waiting", cell=lambda branch: branch.view.use.waiting, number=True
    )
    weight = ListColumn(gettext_lazy("Weight"), sort="view__queue__weight", cell=_weight, number=True)
    cluster = ListColumn(gettext_lazy("Cluster"), sort="view__queue__cluster__name")
    actions = ActionsColumn()

    def render_name(self, record: Branch) -> SafeString:
        """The name, indented by its depth in the tree, and its description."""
        queue, depth = record.view.queue, 0 if self.order_by else record.depth
        link = named("queues:detail", queue.name, queue.name, queue.description)
        above = text(_("child of %(above)s") % {"above": record.above}) if depth else ""
        return SafeString(f'<span class="depth-{depth}" title="{above}">{link}</span>')

    def render_state(self, record: Branch) -> SafeString:
        """The state; of a queue that is not open, who set it and when."""
        queue = record.view.queue
        return noted(html.phase_in(self.language, queue.state), _state_note(queue))

    def render_cluster(self, record: Branch) -> SafeString:
        """The cluster, and whether it is simulated."""
        cluster = record.view.queue.cluster
        return _cluster_cell(cluster.name, cluster.is_simulated, self.language)

    def render_actions(self, record: Branch) -> SafeString:
        """The link to the form."""
        return _edit_link(record.view.queue.name, self.language)


SEARCH = TextSearch(
    lambda branch: " ".join((branch.view.queue.name, branch.view.queue.cluster.name, branch.view.queue.description)),
    gettext_lazy("Queue or cluster"),
)
