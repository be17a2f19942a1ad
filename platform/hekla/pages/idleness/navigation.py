from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.roles import Permission
from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(
        Section.ADMINISTRATION, 60, "idleness:platform", "clock", _("Idle rule"), permission=Permission.SET_IDLE_RULE
    ),
]
