from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.WORK, 90, "sharing:mine", "people", _("Shared with me")),
]
