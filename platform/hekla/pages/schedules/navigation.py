from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.WORK, 30, "schedules:list", "clock", _("Schedules"), within="schedules"),
]
