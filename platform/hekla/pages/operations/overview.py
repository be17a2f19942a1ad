"""The overview: a tile for each figure that a manager looks at first, with a link to its dashboard."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.measures import job_labels
from hekla.apps.reports.overview import OF_THIS_MOMENT, UNITS, Overview, OverviewFigure, OverviewValue
from hekla.domain.gpu_time import GpuClass
from hekla.domain.job_measures import MomentKind
from hekla.pages.operations import queries

NAMES: Mapping[OverviewFigure, str | Promise] = {
    OverviewFigure.USEFUL: gettext_lazy("GPU time in use"),
    OverviewFigure.HELD: gettext_lazy("GPU time held by pods"),
    OverviewFigure.WASTED: gettext_lazy("Wasted GPU hours"),
    OverviewFigure.WAIT_HALF: gettext_lazy("Half of the jobs waited up to"),
    OverviewFigure.WAIT_MOST: gettext_lazy("9 of 10 jobs waited up to"),
    OverviewFigure.WAITING: gettext_lazy("Jobs waiting now"),
    OverviewFigure.COMPLETED: gettext_lazy("Completed jobs"),
    OverviewFigure.FAILED: gettext_lazy("Failed jobs"),
    OverviewFigure.STARVED: gettext_lazy("Queues below their share"),
    OverviewFigure.ALERTS: gettext_lazy("Open alerts"),
    OverviewFigure.NODES_DOWN: gettext_lazy("Nodes down now"),
}
_LINKS: Mapping[OverviewFigure, tuple[str, str]] = {
    OverviewFigure.USEFUL: ("operations:gpu_time", ""),
    OverviewFigure.HELD: ("operations:gpu_time", ""),
    OverviewFigure.WASTED: ("operations:holdings", GpuClass.IDLE.value),
    OverviewFigure.WAIT_HALF: ("operations:waiting", ""),
    OverviewFigure.WAIT_MOST: ("operations:waiting", ""),
    OverviewFigure.WAITING: ("operations:waiting_now", ""),
    OverviewFigure.COMPLETED: ("operations:counted", MomentKind.COMPLETED.value),
    OverviewFigure.FAILED: ("operations:failures", ""),
    OverviewFigure.STARVED: ("operations:queues", ""),
    OverviewFigure.ALERTS: ("alerts:list", ""),
    OverviewFigure.NODES_DOWN: ("operations:nodes", ""),
}
"""Route of each figure's dashboard or rows, and what it lists."""


@dataclass(frozen=True, slots=True)
class OverviewTile:
    """A figure in words. `note`: the period before, or what else belongs to it. `address`: where it leads."""

    what: OverviewFigure
    name: str
    value: str
    note: str
    address: str


def tiles(found: Overview, chosen: Sequence[OverviewFigure] | None) -> list[OverviewTile]:
    """A tile for each chosen figure that the person can see, in this order; None: for all."""
    return [
        OverviewTile(what, str(NAMES[what]), words(what, one.value), _note(found, what, one), _address(found, what))
        for what, one in ((what, found.figures[what]) for what in chosen or OverviewFigure if what in found.figures)
    ]


@dataclass(frozen=True, slots=True)
class ArrangedTile:
    """A figure in the form that arranges the overview. `moves`: whether it can go up and down."""

    what: OverviewFigure
    name: str
    is_visible: bool
    moves: tuple[bool, bool]


def arranged(chosen: Sequence[OverviewFigure] | None) -> list[ArrangedTile]:
    """All figures: the chosen ones in their order, then the others."""
    visible = list(OverviewFigure) if chosen is None else list(chosen)
    order = [*visible, *(what for what in OverviewFigure if what not in visible)]
    last = len(order) - 1
    return [ArrangedTile(what, str(NAMES[what]), what in visible, (at > 0, at < last)) for at, what in enumerate(order)]


def words(what: OverviewFigure, value: float | None) -> str:
    """A value with its unit."""
    if value is None:
        return _("not known")
    match UNITS.get(what):
        case "percent":
            return f"{value:.0f} %"
        case "gpu_hours":
            return f"{value:,.1f}"
        case "seconds":
            return job_labels.seconds(value)
    return f"{value:,.0f}"


def _note(found: Overview, what: OverviewFigure, one: OverviewValue) -> str:
    if what is OverviewFigure.NODES_DOWN:
        return _("of %(n)d nodes") % {"n": found.nodes}
    if what in OF_THIS_MOMENT:
        return ""
    return _("Period before: %(value)s") % {"value": words(what, one.before)}


def _address(found: Overview, what: OverviewFigure) -> str:
    route, of = _LINKS[what]
    if route == "alerts:list":
        return reverse(route)
    return reverse(route) + queries.overview_address(found.query, of=of)


def file_rows(found: Overview) -> Iterator[list[object]]:
    """The figures as a table, with a head."""
    yield ["figure", "unit", "value", "before"]
    for what, one in found.figures.items():
        numbers = ("" if number is None else f"{number:.6g}" for number in (one.value, one.before))
        yield [what.value, UNITS.get(what, "count"), *numbers]
