from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import Permission
from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(
        Section.ADMINISTRATION,
        66,
        "policy_lab:list",
        "compare",
        _("Policy lab"),
        within="policy_lab",
        permission=Permission.MANAGE_CLUSTERS,
    ),
]
