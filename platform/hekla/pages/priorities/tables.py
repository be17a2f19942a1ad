"""The table of priority classes."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.priorities.models import PriorityClass
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable, named


def _state(one: PriorityClass) -> str:
    words = [_("available") if one.is_offered else _("not available")]
    if one.is_default:
        words.append(_("Default class"))
    if one.never_preempts:
        words.append(_("never evicts other pods"))
    return _(", ").join(words)


def _tenants(one: PriorityClass) -> str:
    return _(", ").join(tenant.name for tenant in one.tenants.all()) or _("all tenants")


class PriorityClassesTable(ListTable):
    """Priority classes. `facts.manages`: whether the reader may change them."""

    label = gettext_lazy("Priority classes")

    name = ListColumn(gettext_lazy("Name"), sort="name")
    value = ListColumn(gettext_lazy("Priority"), sort="value", number=True)
    description = ListColumn(gettext_lazy("Description"), sort="description")
    state = ListColumn(gettext_lazy("State"), sort=("-is_offered", "-is_default"), cell=_state)
    tenants = ListColumn(gettext_lazy("Available to"), cell=_tenants)
    actions = ActionsColumn("priorities/_actions.html")

    def render_name(self, record: PriorityClass) -> SafeString:
        """The name, as a link for people who may change it."""
        if self.facts["manages"]:
            return named("priorities:edit", record.name, record.name)
        return format_html("{}", record.name)


class PriorityClassesFilter(ListFilter):
    """Filters by name and description."""

    search = ("name", "description")
    hint = gettext_lazy("Name or description")
