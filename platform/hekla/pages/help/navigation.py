from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.LAST, 20, "help:index", "help", _("Help"), within="help", also=("design",)),
]
