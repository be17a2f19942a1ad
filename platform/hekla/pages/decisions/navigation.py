from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import Permission
from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(
        Section.ADMINISTRATION,
        65,
        "decisions:list",
        "log",
        _("Decisions"),
        within="decisions",
        permission=Permission.MANAGE_CLUSTERS,
    ),
]
