"""The tables of tenants and members."""

from typing import Any

from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import ChoiceFilter

from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.models import Tenant
from hekla.pages.frame import html
from hekla.pages.frame.card_use import UsageColumns
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable, named
from hekla.pages.tenancy.forms import ROLES


def _name(tenant: Tenant) -> SafeString:
    link = named("tenancy:detail", tenant.slug, tenant.name)
    return link if tenant.is_active else format_html("{} {}", link, html.badge("stopped", _("inactive")))


class TenantsTable(UsageColumns, ListTable):
    """The tenants that the reader may see."""

    label = gettext_lazy("Tenants")
    suggests = "tenant"
    is_always_searchable = True

    name = ListColumn(gettext_lazy("Name"), sort="name", cell=_name)
    slug = ListColumn(
        gettext_lazy("Short name"), sort="slug", cell=lambda tenant: format_html("<code>{}</code>", tenant.slug)
    )
    members = ListColumn(
        gettext_lazy("Members"), sort="member_count", cell=lambda tenant: tenant.member_count, number=True
    )
    department = ListColumn(gettext_lazy("Department"), cell=lambda tenant: tenant.department)
    gpus = ListColumn(gettext_lazy("GPUs now"), number=True)
    hours = ListColumn(gettext_lazy("GPU-hours this month"), number=True)
    since = ListColumn(gettext_lazy("Added"), sort="created_at", cell=lambda tenant: html.moment(tenant.created_at))


class NamedFilter(ListFilter):
    """Filters by name and description."""

    search = ("name", "slug", "description")
    hint = gettext_lazy("Name or description")


class TenantsFilter(NamedFilter):
    """Filters tenants by name, description, department and state."""

    department = ChoiceFilter(
        field_name="department__slug",
        label=gettext_lazy("Department"),
        empty_label=gettext_lazy("All departments"),
        choices=(),
    )

    state = ChoiceFilter(
        method="in_state",
        label=gettext_lazy("State"),
        empty_label=gettext_lazy("All states"),
        choices=[("active", gettext_lazy("Active")), ("inactive", gettext_lazy("Inactive"))],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        departments = [(one.slug, one.name) for one in selectors.departments_with(self.queryset)]
        if departments:
            self.filters["department"].extra["choices"] = departments
        else:
            del self.filters["department"]

    def in_state(self, rows: QuerySet[Tenant], _name: str, value: str) -> QuerySet[Tenant]:
        """The tenants that are active, or not."""
        return rows.filter(is_active=value == "active")


class MembersTable(ListTable):
    """The members of a tenant."""

    label = gettext_lazy("Members")
    suggests = "person"
    keys = False

    name = ListColumn(gettext_lazy("Person"), sort="user__username", template="tenancy/_member.html")
    role = ListColumn(gettext_lazy("Role"), sort="role", template="tenancy/_member_role.html")
    last_login = ListColumn(
        gettext_lazy("Last sign-in"),
        sort="user__last_login",
        cell=lambda member: html.moment(member.user.last_login) if member.user.last_login else _("never"),
    )
    since = ListColumn(gettext_lazy("Added"), sort="since", cell=lambda member: html.moment(member.since))
    actions = ActionsColumn("tenancy/_member_actions.html")


class MembersFilter(ListFilter):
    """Filters by name and role."""

    search = ("user__username", "user__display_name")
    hint = gettext_lazy("Name or user name")

    role = ChoiceFilter(label=gettext_lazy("Role"), empty_label=gettext_lazy("All roles"), choices=ROLES)
