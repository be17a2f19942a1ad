from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

ITEMS = [
    NavigationItem(
        Section.WORK,
        90,
        "operations:overview",
        "chip",
        _("Capacity and use"),
        also=(
            *(
                "operations:gpu_time",
                "operations:holdings",
                "operations:waste",
                "operations:stalled",
                "operations:queues",
                "operations:nodes",
            ),
            *("operations:cost", "operations:cost_pods", "prices:list", "prices:detail", "prices:create"),
            *("reports:list", "reports:detail", "reports:run", "reports:create", "reports:edit"),
            *("operations:waiting", "operations:waiting_now", "operations:failures", "operations:counted"),
        ),
    ),
]
