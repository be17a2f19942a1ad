"""Composes a report for one reader, as a page or as files."""

from datetime import datetime

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.reports import labels, selectors
from hekla.apps.reports.contents import ReportContents, moment, plain
from hekla.apps.reports.models import Report
from hekla.apps.reports.period_queries import query_of
from hekla.apps.reports.sections import SECTIONS, SectionSource
from hekla.domain.errors import NotFound
from hekla.domain.reports import ReportSpan, ReportSpec


def compose(spec: ReportSpec, span: ReportSpan, reader: User, *, now: datetime) -> ReportContents:
    """What this person may see of the report, in the current language. Raises NotFound if its subject is hidden."""
    if found := selectors.obstacle(reader, spec):
        raise NotFound(str(labels.OBSTACLES[found]))
    source = SectionSource(spec, query_of(spec, span), reader, now)
    parts = [part for name in spec.sections if name in SECTIONS for part in SECTIONS[name].write(source)]
    times = {"begin": moment(span.begin, spec.zone), "end": moment(span.end, spec.zone), "zone": spec.time_zone}
    return ReportContents(
        title=plain(spec.name),
        lines=(plain(labels.subject(spec)), _("From %(begin)s to %(end)s (%(zone)s).") % times),
        notices=source.notices(),
        parts=parts,
    )


def file_name(spec: ReportSpec, span: ReportSpan, ending: str) -> str:
    """The name of a file with the report, with its first day."""
    words = "".join(letter if letter.isalnum() or letter in "-_" else " " for letter in plain(spec.name)).split()
    return f"{'-'.join(words) or 'report'}-{span.begin.astimezone(spec.zone):%Y-%m-%d}.{ending}"


def address(report: Report) -> str:
    """The URL of the page of the report."""
    return settings.PUBLIC_URL.rstrip("/") + reverse("reports:detail", args=[report.uid])
