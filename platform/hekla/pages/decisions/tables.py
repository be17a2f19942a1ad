"""The table of recorded cycles."""

from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from hekla.apps.cycle_records.models import CycleRecord
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListTable, noted


def _trigger(row: CycleRecord) -> SafeString:
    """Why it ran; below, why its decisions or its document are incomplete."""
    return noted(row.get_trigger_display(), row.get_limit_display() or row.get_omission_display())


def _time(row: CycleRecord) -> SafeString:
    """The time, as a link to the cycle."""
    return SafeString(f'<a href="{html.address("decisions:detail", row.pk)}">{html.moment(row.at, "yes")}</a>')


class CyclesTable(ListTable):
    """Recorded cycles of one cluster."""

    label = gettext_lazy("Cycles")
    is_dense = True

    at = ListColumn(gettext_lazy("Time"), cell=_time)
    trigger = ListColumn(gettext_lazy("Reason"), cell=_trigger)
    engine_ms = ListColumn(
        gettext_lazy("Duration"), sort="engine_ms", cell=lambda row: f"{row.engine_ms:.1f} ms", number=True
    )
    jobs = ListColumn(gettext_lazy("Jobs considered"), sort="jobs", number=True)
    admissions = ListColumn(gettext_lazy("Admitted"), sort="admissions", number=True)
    binds = ListColumn(gettext_lazy("Binds"), sort="binds", number=True)
    evictions = ListColumn(gettext_lazy("Evictions"), sort="evictions", number=True)
    pipelined = ListColumn(gettext_lazy("Pipelined"), sort="pipelined", number=True)
    refusals = ListColumn(gettext_lazy("New reasons"), sort="refusals", number=True)
