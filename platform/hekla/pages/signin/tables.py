"""The table of a person's security keys and passkeys."""

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.signin.models import SecurityKey
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListTable


def _used(key: SecurityKey) -> object:
    return (
        html.moment(key.last_used_at)
        if key.last_used_at
        else format_html('<span class="muted">{}</span>', _("never used"))
    )


class KeysTable(ListTable):
    """Security keys and passkeys."""

    label = gettext_lazy("Security keys and passkeys")
    keys = False

    name = ListColumn(gettext_lazy("Name"), sort="name")
    added = ListColumn(gettext_lazy("Added"), sort="created_at", cell=lambda key: html.moment(key.created_at))
    used = ListColumn(gettext_lazy("Last used"), sort="last_used_at", cell=_used)
    actions = ActionsColumn("signin/_key_actions.html")
