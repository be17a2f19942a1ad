from django.utils.translation import gettext_lazy as _

from hekla.pages.frame.rail import NavigationItem, Section

_OF_A_JOB = (
    *("sharing:terminal", "sharing:session", "sharing:of_job", "sharing:fork"),
    "sharing:recording",
    "idleness:job",
)
"""Pages of other features that belong to one job."""
ITEMS = [
    NavigationItem(
        Section.FIRST,
        20,
        "jobs:list",
        "jobs",
        _("Jobs"),
        within="jobs gallery files workbench runs",
        also=_OF_A_JOB,
        is_searchable=True,
    ),
]
