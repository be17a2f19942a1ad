from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(
        Section.ADMINISTRATION,
        10,
        "tenancy:list",
        "tenants",
        _("Tenants"),
        within="tenancy departments invitations",
        also=("audit", "roles"),
    ),
]
