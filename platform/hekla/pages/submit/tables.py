"""The table of presets."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.presets.models import Preset
from hekla.pages.frame import html
from hekla.pages.frame.html import text
from hekla.pages.frame.row_actions import Button, Question, hidden, post_form, row_actions
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
    rename = ListColumn(gettext_lazy("New name"))
    actions = ActionsColumn()

    def render_rename(self, record: tuple[Preset, bool]) -> SafeString:
        """A form that renames the preset, for people who may."""
        preset, may_change = record
        if not may_change:
            return SafeString()
        label = text(_("New name for %(name)s") % {"name": preset.name})
        field = f'<input name="name" value="{text(preset.name)}" maxlength="60" required aria-label="{label}">'
        inputs = (hidden("csrfmiddlewaretoken", self._token) if self._token else "") + field
        address, button = html.address("jobs:rename_preset", preset.uid), Button(_("Rename"), "quiet").submit()
        return SafeString(f'<form class="control" method="post" action="{address}">{inputs}{button}</form>')

    def render_actions(self, record: tuple[Preset, bool]) -> SafeString:
        """The actions on the preset, for people who may change it."""
        preset, may_change = record
        if not may_change:
            return SafeString()
        publish = Button(_("Publish in the gallery"), "quiet")
        choose, default = html.address("jobs:choose_preset", preset.uid), Button(_("Make default"), "quiet")
        if preset.is_default:
            chosen = post_form(choose, Button(_("Clear default"), "quiet"), self._token)
        else:
            chosen = post_form(choose, default, self._token, {"default": "yes"})
        link = publish.link(f"{html.address('gallery:publish')}?preset={preset.uid}")
        return row_actions(link, chosen, self._deletion(preset))

    def _deletion(self, preset: Preset) -> SafeString:
        facts = {"name": preset.name}
        button = Button(_("Delete %(name)s") % facts, "quiet", "delete", shows_words=False)
        fate = _("You can no longer create jobs from %(name)s. Existing jobs stay.") % facts
        question = Question(fate, _("Delete this template?"), _("Delete"))
        return post_form(html.address("jobs:delete_preset", preset.uid), button, self._token, question=question)

    @property
    def _token(self) -> object:
        return self.context.get("csrf_token")


class PresetsFilter(ListFilter):
    """Filters by the names of presets and tenants."""

    search = ("name", "tenant__name")
    hint = gettext_lazy("Name or tenant")
