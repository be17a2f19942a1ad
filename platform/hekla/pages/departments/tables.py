"""The list of departments."""

from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.translation import gettext_lazy

from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListTable, named
from hekla.pages.tenancy.tables import TenantsFilter


class DepartmentsTable(ListTable):
    """The departments that one heads, or all."""

    label = gettext_lazy("Departments")

    name = ListColumn(
        gettext_lazy("Name"),
        sort="name",
        cell=lambda one: named("departments:detail", one.slug, one.name, truncatechars(one.description, 120)),
    )
    slug = ListColumn(
        gettext_lazy("Short name"), sort="slug", cell=lambda one: format_html("<code>{}</code>", one.slug)
    )
    since = ListColumn(gettext_lazy("Since"), sort="created_at", cell=lambda one: html.moment(one.created_at))


class DepartmentsFilter(TenantsFilter):
    """Names, as of tenants."""
