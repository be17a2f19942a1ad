"""The table of presets."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.presets.models import Preset
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable


def _name(row: tuple[Preset, bool]) -> SafeString:
    preset, _may_change = row
    note = format_html('<span class="row-note">{}</span>', _("Default for new jobs")) if preset.is_default else ""
    return format_html('<a href="{}?saved={}">{}</a>{}', html.address("jobs:submit"), preset.uid, preset.name, note)


class PresetsTable(ListTable):
    """The person's presets, and those of their tenants, each with whether the reader may change it."""

    label = gettext_lazy("Saved templates")
    keys = False

    name = ListColumn(gettext_lazy("Name"), sort="name", cell=_name)
    tenant = ListColumn(
        gettext_lazy("Available to"), sort="tenant__name", cell=lambda row: row[0].tenant or _("Only you")
    )
    changed = ListColumn(gettext_lazy("Changed"), sort="changed_at", cell=lambda row: html.moment(row[0].changed_at))
    rename = ListColumn(gettext_lazy("New name"), template="jobs/_preset_name.html")
    actions = ActionsColumn("jobs/_preset_actions.html")


class PresetsFilter(ListFilter):
    """Filters by the names of presets and tenants."""

    search = ("name", "tenant__name")
    hint = gettext_lazy("Name or tenant")
