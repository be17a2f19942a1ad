from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import Permission
from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.FIRST, 40, "clusters:nodes", "nodes", _("Nodes"), also=("clusters:node",)),
    NavigationItem(
        Section.ADMINISTRATION,
        30,
        "clusters:list",
        "clusters",
        _("Clusters"),
        also=("clusters:detail", "clusters:create", "clusters:edit", "system:show"),
        permission=Permission.MANAGE_CLUSTERS,
    ),
    NavigationItem(
        Section.ADMINISTRATION,
        40,
        "clusters:environments",
        "environments",
        _("Environments"),
        also=("clusters:create_environment", "clusters:edit_environment"),
    ),
    NavigationItem(
        Section.ADMINISTRATION,
        60,
        "clusters:policy",
        "policy",
        _("Scheduling policy"),
        within="decisions policy_lab",
        permission=Permission.SEE_EVERYTHING,
    ),
]
