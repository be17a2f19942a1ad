from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import Permission
from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(
        Section.ADMINISTRATION,
        20,
        "accounts:list",
        "people",
        _("People"),
        also=("accounts:create", "accounts:edit", "accounts:give_link", "accounts:act_for"),
        permission=Permission.MANAGE_PEOPLE,
    ),
]
