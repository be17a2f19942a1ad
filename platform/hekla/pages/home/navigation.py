from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.FIRST, 10, "home", "home", _("Home")),
]
