from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.LAST, 10, "demonstrations:list", "play", _("Demonstrations"), within="demonstrations"),
]
