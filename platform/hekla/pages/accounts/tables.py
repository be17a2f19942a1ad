"""The table of people."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache, cached_property
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django_filters import ChoiceFilter

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS, PlatformRole
from hekla.apps.tenancy.selectors import NamedTenant
from hekla.lib import clock
from hekla.pages.frame import html
from hekla.pages.frame.card_use import UsageColumns
from hekla.pages.frame.html import text
from hekla.pages.frame.row_actions import Button, row_actions
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable, named

_DAYS = 30
_MOST_IN_CELL, _MOST_IN_TITLE = 3, 20
_STATES = [("active", gettext_lazy("Sign-in enabled")), ("disabled", gettext_lazy("Sign-in disabled"))]
_SIGN_INS = [
    ("recent", gettext_lazy("In the last 30 days")),
    ("old", gettext_lazy("More than 30 days ago")),
    ("never", gettext_lazy("Never")),
]


class _Words(NamedTuple):
    none: str
    never: str
    comma: str
    act_for: str


@cache
def _words(_language: str) -> _Words:
    """The words of the cells in the language in force, translated once for all rows."""
    return _Words(_("none"), _("never"), _(", "), _("Impersonate %(person)s"))


def _name(user: User) -> SafeString:
    note = user.username if user.is_active else format_html("{} · {}", user.username, _("sign-in disabled"))
    return named("accounts:edit", user.pk, str(user), note)


class PeopleTable(UsageColumns, ListTable):
    """All people. `facts.tenants`: those of each person on the page, by user id."""

    label = gettext_lazy("People")
    suggests = "person"
    is_always_searchable = True
    is_dense = True

    name = ListColumn(gettext_lazy("Person"), sort="username", cell=_name)
    role = ListColumn(gettext_lazy("Platform role"), sort="platform_role")
    tenants = ListColumn(gettext_lazy("Tenants"))
    gpus = ListColumn(gettext_lazy("GPUs now"), number=True)
    hours = ListColumn(gettext_lazy("GPU-hours this month"), number=True)
    last_login = ListColumn(gettext_lazy("Last sign-in"), sort="last_login")
    since = ListColumn(gettext_lazy("Added"), sort="date_joined")
    actions = ActionsColumn()

    @cached_property
    def _words(self) -> _Words:
        return _words(self.language)

    def render_role(self, record: User) -> object:
        """The platform role."""
        role = record.platform_role
        return PLATFORM_ROLE_LABELS[PlatformRole(role)] if role else self._words.none

    def render_tenants(self, record: User) -> SafeString:
        """Links to the first tenants of a person, whose page lists all."""
        tenants: Sequence[NamedTenant] = self.facts["tenants"].get(record.pk, ())
        links = [html.link("tenancy:detail", one.slug, one.name) for one in tenants[:_MOST_IN_CELL]]
        if (left := len(tenants) - len(links)) > 0:
            more = ngettext("and %(n)s more", "and %(n)s more", left) % {"n": left}
            links.append(html.link("accounts:edit", record.pk, more))
        title, listed = ", ".join([one.name for one in tenants[:_MOST_IN_TITLE]]), self._words.comma.join(links)
        return SafeString(f'<span class="one-line" title="{text(title)}">{listed}</span>') if links else html.NOTHING

    def render_last_login(self, record: User) -> str:
        """When the person last signed in."""
        return self.moment_of(record.last_login) if record.last_login else self._words.never

    def render_since(self, record: User) -> str:
        """When the person was added."""
        return self.moment_of(record.date_joined)

    def render_actions(self, record: User) -> SafeString:
        """A link to act for the person, unless they may not sign in or are a platform admin."""
        if not record.is_active or record.platform_role == PlatformRole.ADMIN:
            return SafeString()
        button = Button(self._words.act_for % {"person": record}, "quiet")
        return row_actions(button.link(html.address("accounts:impersonate", record.pk)))


class PeopleFilter(ListFilter):
    """Filters people by name, platform role, tenant, and sign-in."""

    search = ("username", "display_name")
    hint = gettext_lazy("Name or user name")

    role = ChoiceFilter(
        field_name="platform_role",
        label=gettext_lazy("Platform role"),
        empty_label=gettext_lazy("All roles"),
        choices=[(role.value, label) for role, label in PLATFORM_ROLE_LABELS.items()],
    )
    state = ChoiceFilter(
        method="in_state", label=gettext_lazy("State"), empty_label=gettext_lazy("All states"), choices=_STATES
    )
    sign_in = ChoiceFilter(
        method="signed_in",
        label=gettext_lazy("Last sign-in"),
        empty_label=gettext_lazy("Any last sign-in"),
        choices=_SIGN_INS,
    )

    def in_state(self, rows: QuerySet[User], _name: str, value: str) -> QuerySet[User]:
        """The people who may sign in, or may not."""
        return rows.filter(is_active=value == "active")

    def signed_in(self, rows: QuerySet[User], _name: str, value: str) -> QuerySet[User]:
        """The people by the time of their last sign-in."""
        if value == "never":
            return rows.filter(last_login=None)
        limit = clock.now() - timedelta(days=_DAYS)
        return rows.filter(last_login__gte=limit) if value == "recent" else rows.filter(last_login__lt=limit)
