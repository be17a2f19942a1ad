from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(Section.FIRST, 30, "queues:list", "queues", _("Queues"), within="queues federated_queues"),
]
