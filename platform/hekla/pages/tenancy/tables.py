"""The tables of tenants and members."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import ChoiceFilter

from hekla.apps.tenancy.models import Tenant
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable, named
from hekla.pages.tenancy.forms import ROLES


def _name(tenant: Tenant) -> SafeString:
    link = named("tenancy:detail", tenant.slug, tenant.name)
    return link if tenant.is_active else format_html("{} {}", link, html.badge("stopped", _("inactive")))


class TenantsTable(ListTable):
    """The tenants that the reader may see."""

    label = gettext_lazy("Tenants")
    suggests = "tenant"

    name = ListColumn(gettext_lazy("Name"), sort="name", cell=_name)
    slug = ListColumn(
        gettext_lazy("Short name"), sort="slug", cell=lambda tenant: format_html("<code>{}</code>", tenant.slug)
    )
    members = ListColumn(
        gettext_lazy("Members"), sort="member_count", cell=lambda tenant: tenant.member_count, number=True
    )
    since = ListColumn(gettext_lazy("Added"), sort="created_at", cell=lambda tenant: html.moment(tenant.created_at))


class TenantsFilter(ListFilter):
    """Filters by name and description."""

    search = ("name", "slug", "description")
    hint = gettext_lazy("Name or description")


class MembersTable(ListTable):
    """The members of a tenant."""

    label = gettext_lazy("Members")
    suggests = "person"
    keys = False

    name = ListColumn(gettext_lazy("Person"), sort="user__username", template="tenancy/_member.html")
    role = ListColumn(gettext_lazy("Role"), sort="role", template="tenancy/_member_role.html")
    since = ListColumn(gettext_lazy("Added"), sort="since", cell=lambda member: html.moment(member.since))
    actions = ActionsColumn("tenancy/_member_actions.html")


class MembersFilter(ListFilter):
    """Filters by name and role."""

    search = ("user__username", "user__display_name")
    hint = gettext_lazy("Name or user name")

    role = ChoiceFilter(label=gettext_lazy("Role"), empty_label=gettext_lazy("All roles"), choices=ROLES)
