"""The tables of federated queues."""

from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListFilter, ListTable, named

_MOST_IN_CELL = 8


@dataclass(frozen=True, slots=True)
class FederatedQueueRow:
    """A federated queue, and those of its member queues that the reader may see."""

    federated: FederatedQueue
    members: list[Queue]


def _cluster(queue: Queue) -> SafeString:
    if not queue.cluster.is_simulated:
        return format_html("{}", queue.cluster.name)
    mark = html.badge("borrowed", _("simulated"), _("Its nodes and pods are simulated"))
    return format_html("{} {}", queue.cluster.name, mark)


def _queue(queue: Queue) -> SafeString:
    link = html.link("queues:detail", queue.name, queue.name)
    state = "" if queue.is_open else format_html(" {}", html.phase(queue.state))
    return format_html('{} <span class="muted">({})</span>{}', link, queue.cluster.name, state)


def _queues(row: FederatedQueueRow) -> SafeString:
    """The first queues; the page of the federated queue lists all."""
    first = format_html_join(_(", "), "{}", ((_queue(one),) for one in row.members[:_MOST_IN_CELL]))
    if (left := len(row.members) - _MOST_IN_CELL) <= 0:
        return format_html("<span>{}</span>", first)
    more = ngettext("and %(n)s more", "and %(n)s more", left) % {"n": left}
    return format_html("<span>{} {}</span>", first, html.link("federated_queues:detail", row.federated.name, more))


class FederatedQueuesTable(ListTable):
    """Federated queues."""

    label = gettext_lazy("Federated queues")

    name = ListColumn(
        gettext_lazy("Name"),
        sort="name",
        cell=lambda row: named("federated_queues:detail", row.federated.name, row.federated.name),
    )
    queues = ListColumn(gettext_lazy("Queues"), cell=_queues)
    description = ListColumn(
        gettext_lazy("Description"), sort="description", cell=lambda row: row.federated.description
    )


class FederatedQueuesFilter(ListFilter):
    """Filters by name and description."""

    search = ("name", "description")
    hint = gettext_lazy("Name or description")


class FederatedMembersTable(ListTable):
    """The queues of a federated queue."""

    label = gettext_lazy("Queues")

    cluster = ListColumn(gettext_lazy("Cluster"), sort="cluster__name", cell=_cluster)
    name = ListColumn(
        gettext_lazy("Queue"), sort="name", cell=lambda queue: html.link("queues:detail", queue.name, queue.name)
    )
    state = ListColumn(gettext_lazy("State"), sort="state", template="queues/_member_state.html")
