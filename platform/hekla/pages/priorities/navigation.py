from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.ADMINISTRATION, 50, "priorities:list", "up", _("Priority classes"), within="priorities"),
]
