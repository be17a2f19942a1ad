"""The section of reports about costs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.measures import cost_selectors, labels
from hekla.apps.measures.cost_selectors import CostPart, CostReport, wasted_of
from hekla.apps.measures.selectors import GpuTimeQuery, GroupBy
from hekla.apps.prices import labels as prices
from hekla.apps.reports.contents import ReportPart, ReportTable, plain
from hekla.domain.prices import HOUR_OF, in_words

_MOST_ROWS = 30
_PARTS = (GroupBy.TENANT, GroupBy.PERSON)


def write(query: GpuTimeQuery, reader: User, now: datetime) -> Iterator[ReportPart]:
    """The costs of the period by tenant and person, with the period before, and by resource."""
    report = cost_selectors.cost(reader, query, now=now)
    if report.priced_since is None:
        yield ReportPart(_("Cost"), _("Nothing has a price yet."))
        return
    for by in _PARTS:
        one = cost_selectors.cost(reader, replace(query, by=by), now=now)
        yield _by(one, _("Cost by tenant") if by is GroupBy.TENANT else _("Cost by person"))
    rows = tuple(
        (
            plain(prices.resource(one.resource, one.model)),
            f"{one.held / HOUR_OF[one.resource]:,.1f}",
            in_words(one.cost, report.currency),
        )
        for one in report.resources[:_MOST_ROWS]
    )
    if rows:
        table = ReportTable(heads=(_("Resource"), _("Hours"), _("Cost")), rows=rows)
        yield ReportPart(_("Cost by resource"), table=table)


def _by(report: CostReport, title: str) -> ReportPart:
    found = [part for part in report.parts if part.total or part.before]
    if not found:
        return ReportPart(title, _("Nothing cost anything in this period."))
    rows = [_row(plain(part.name), [part], report.currency) for part in found[:_MOST_ROWS]]
    if rest := found[_MOST_ROWS:]:
        rows.append(_row(_("%d more") % len(rest), rest, report.currency))
    heads = (str(labels.PARTS[report.query.by]), _("Cost"), _("Wasted"), _("Period before"))
    foot = (
        _("Total"),
        in_words(report.total, report.currency),
        in_words(wasted_of(report.totals), report.currency),
        in_words(sum(report.before.values()), report.currency),
    )
    return ReportPart(title, table=ReportTable(heads, tuple(rows), foot))


def _row(name: str, parts: Sequence[CostPart], currency: str) -> tuple[str, ...]:
    amounts = (
        sum(part.total for part in parts),
        sum(part.wasted for part in parts),
        sum(part.before for part in parts),
    )
    return name, *(in_words(amount, currency) for amount in amounts)
