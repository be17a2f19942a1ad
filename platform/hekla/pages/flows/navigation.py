from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.WORK, 10, "flows:list", "flows", _("Flows"), within="flows"),
]
