"""The table of queues."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListTable, TextSearch, named, noted
from hekla.pages.queues.figures import Branch
from hekla.pages.queues.templatetags.queues import bar_lines

# The cells are functions because the list can be long: a template for each cell would take a fifth of the page's time.


def _state(branch: Branch) -> SafeString:
    """The state; of a queue that is not open, who set it and when."""
    queue = branch.view.queue
    note: SafeString | str = ""
    if not queue.is_open and queue.state_at:
        at = html.moment(queue.state_at)
        note = format_html("{} · {}", queue.state_by, at) if queue.state_by else at
    return noted(html.phase(queue.state), note)


def _usage(branch: Branch) -> SafeString:
    if branch.view.bars:
        return format_html('<div class="bar-lines">{}</div>', bar_lines(branch.view.bars))
    return format_html('<p class="muted">{}</p>', _("No node of its cluster has reported yet."))


def _edit(branch: Branch) -> SafeString:
    return format_html(
        '<div class="row-actions"><a class="button button-plain button-small" href="{}">{}<span>{}</span></a></div>',
        html.address("queues:edit", branch.view.queue.name),
        html.icon("edit"),
        _("Edit"),
    )


def _weight(branch: Branch) -> SafeString:
    queue = branch.view.queue
    return noted(queue.weight, f"{_('priority')} {queue.priority}" if queue.priority else "")


def _note(branch: Branch) -> str:
    queue = branch.view.queue
    parts = [_("child of %(above)s") % {"above": branch.above}] if branch.above else []
    parts.append(f"{_('cluster')} {queue.cluster.name}")
    if queue.cluster.is_simulated:
        parts.append(_("simulated"))
    return " · ".join([*parts, queue.description] if queue.description else parts)


class QueuesTable(ListTable):
    """The queues that the reader may see, as a tree unless sorted."""

    label = gettext_lazy("Queues")
    ids = "queue-{0.view.queue.pk}"

    name = ListColumn(gettext_lazy("Queue"), sort="view__queue__name")
    state = ListColumn(gettext_lazy("State"), sort="view__queue__state", cell=_state)
    usage = ListColumn(gettext_lazy("Usage"), cell=_usage, wide=True)
    running = ListColumn(
        gettext_lazy("Running"), sort="view__use__running", cell=lambda branch: branch.view.use.running, number=True
    )
    waiting = ListColumn(
        gettext_lazy("Pending"), sort="view__use__waiting", cell=lambda branch: branch.view.use.waiting, number=True
    )
    weight = ListColumn(gettext_lazy("Weight"), sort="view__queue__weight", cell=_weight, number=True)
    actions = ActionsColumn(cell=_edit)

    def render_name(self, record: Branch) -> SafeString:
        """The name, indented by its depth in the tree."""
        queue, depth = record.view.queue, 0 if self.order_by else record.depth
        link = named("queues:detail", queue.name, queue.name, _note(record))
        return format_html('<span class="depth-{}">{}</span>', depth, link)


SEARCH = TextSearch(
    lambda branch: " ".join((branch.view.queue.name, branch.view.queue.cluster.name, branch.view.queue.description)),
    gettext_lazy("Queue or cluster"),
)
