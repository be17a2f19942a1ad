from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.FIRST, 20, "jobs:list", "jobs", _("Jobs"), within="jobs gallery", is_searchable=True),
]
