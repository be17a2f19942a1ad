"""The tables of departments."""

from dataclasses import dataclass

from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage.holdings import Holding
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListTable, TextSearch, named
from hekla.pages.tenancy.tables import NamedFilter


class DepartmentsTable(ListTable):
    """The departments that the person heads, or all."""

    label = gettext_lazy("Departments")
    is_always_searchable = True

    name = ListColumn(
        gettext_lazy("Name"),
        sort="name",
        cell=lambda one: named("departments:detail", one.slug, one.name, truncatechars(one.description, 120)),
    )
    slug = ListColumn(
        gettext_lazy("Short name"), sort="slug", cell=lambda one: format_html("<code>{}</code>", one.slug)
    )
    since = ListColumn(gettext_lazy("Added"), sort="created_at", cell=lambda one: html.moment(one.created_at))


class DepartmentsFilter(NamedFilter):
    """Filters departments by name and description."""


@dataclass(frozen=True, slots=True)
class DepartmentTenant:
    """A tenant of a department, annotated with `member_count`, and what it holds."""

    tenant: Tenant
    holding: Holding


def _tenant(row: DepartmentTenant) -> SafeString:
    """The tenant's name; without a link for an inactive tenant, whose page cannot be opened here."""
    if row.tenant.is_active:
        return named("tenancy:detail", row.tenant.slug, row.tenant.name)
    return format_html("{} {}", row.tenant.name, html.badge("stopped", _("inactive")))


class DepartmentTenantsTable(ListTable):
    """The tenants of a department, with totals below. Facts: `together`, the Holding of all; `people`, their number."""

    label = gettext_lazy("Tenants")

    name = ListColumn(gettext_lazy("Name"), sort="tenant__name", cell=_tenant, foot=lambda _facts: _("Total"))
    members = ListColumn(
        gettext_lazy("Members"),
        sort="tenant__member_count",
        cell=lambda row: row.tenant.member_count,
        number=True,
        foot=lambda facts: facts["people"],
    )
    running = ListColumn(
        gettext_lazy("Running jobs"),
        sort="holding__running",
        cell=lambda row: row.holding.running,
        number=True,
        foot=lambda facts: facts["together"].running,
    )
    pending = ListColumn(
        gettext_lazy("Pending jobs"),
        sort="holding__waiting",
        cell=lambda row: row.holding.waiting,
        number=True,
        foot=lambda facts: facts["together"].waiting,
    )
    allocated = ListColumn(
        gettext_lazy("Allocated now"),
        cell=lambda row: row.holding.words,
        foot=lambda facts: facts["together"].words,
    )


DEPARTMENT_TENANTS_SEARCH = TextSearch(
    lambda row: f"{row.tenant.name} {row.tenant.slug} {row.tenant.description}", gettext_lazy("Name or description")
)
