from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.WORK, 60, "alerts:list", "warning", _("Alerts"), within="alerts announcements"),
]
