"""The table of price lists."""

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.prices.models import PriceList
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListFilter, ListTable, named


def state_badge(one: PriceList, valid: PriceList | None) -> SafeString:
    """Whether the list is valid now."""
    if valid is not None and one.pk == valid.pk:
        return html.badge("running", _("valid now"))
    if valid is None or one.begin_at > valid.begin_at:
        return html.badge("pending", _("not begun"))
    return html.badge("neutral", _("replaced"))


def _by(one: PriceList) -> str:
    return _("the demonstration") if one.is_demonstration else one.created_by


class PriceListsTable(ListTable):
    """Price lists. `facts.valid`: the one that is valid now, or None."""

    label = gettext_lazy("Price lists")
    ids = "price-list-{0.uid}"

    name = ListColumn(
        gettext_lazy("Price list"), sort="name", cell=lambda one: named("prices:detail", one.uid, one.name)
    )
    begin_at = ListColumn(
        gettext_lazy("Valid from"), sort="begin_at", cell=lambda one: html.moment(one.begin_at, exact=True)
    )
    state = ListColumn(gettext_lazy("State"))
    currency = ListColumn(gettext_lazy("Currency"))
    created_by = ListColumn(gettext_lazy("Created by"), cell=_by)

    def render_state(self, record: PriceList) -> SafeString:
        """Whether the list is valid now."""
        return state_badge(record, self.facts["valid"])


class PriceListsFilter(ListFilter):
    """Filters by name."""

    search = ("name",)
    hint = gettext_lazy("Name")
