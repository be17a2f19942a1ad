"""The table of people."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import ChoiceFilter

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable, named


def _name(user: User) -> SafeString:
    note = user.username if user.is_active else format_html("{} · {}", user.username, _("sign-in disabled"))
    return named("accounts:edit", user.pk, user, note)


class PeopleTable(ListTable):
    """All people."""

    label = gettext_lazy("People")
    suggests = "person"

    name = ListColumn(gettext_lazy("Person"), sort="username", cell=_name)
    role = ListColumn(
        gettext_lazy("Platform role"),
        sort="platform_role",
        cell=lambda user: user.get_platform_role_display() or _("none"),
    )
    last_login = ListColumn(
        gettext_lazy("Last sign-in"),
        sort="last_login",
        cell=lambda user: html.moment(user.last_login) if user.last_login else _("never"),
    )
    since = ListColumn(gettext_lazy("Added"), sort="date_joined", cell=lambda user: html.moment(user.date_joined))
    actions = ActionsColumn("accounts/_person_actions.html")


class PeopleFilter(ListFilter):
    """Filters people by name and platform role."""

    search = ("username", "display_name")
    hint = gettext_lazy("Name or user name")

    role = ChoiceFilter(
        field_name="platform_role",
        label=gettext_lazy("Platform role"),
        empty_label=gettext_lazy("All roles"),
        choices=[(role.value, label) for role, label in PLATFORM_ROLE_LABELS.items()],
    )
