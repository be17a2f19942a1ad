"""What the plugins of a policy need, and what the cluster supplies, for the page of the policy."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.clusters.models import Cluster
from hekla.domain.errors import Invalid
from hekla.domain.scheduling_inputs import Input
from hekla.engine import policy
from hekla.engine.input_check import PluginInputs
from hekla.engine.inputs import Lack
from hekla.scheduling import policy_check
from hekla.scheduling.policy_check import PolicyWarning
from hekla.scheduling.supplies import supplied

_MAX_ROWS = 100
_EFFECTS: Mapping[Lack | None, tuple[str, Promise]] = {
    None: ("done", gettext_lazy("Works")),
    Lack.PART: ("neutral", gettext_lazy("Works in part")),
    Lack.FALLBACK: ("waiting", gettext_lazy("Uses a fallback")),
    Lack.REFUSES_SOME: ("waiting", gettext_lazy("Holds some jobs")),
    Lack.NOTHING: ("waiting", gettext_lazy("No effect")),
    Lack.REFUSES_ALL: ("failed", gettext_lazy("No job starts")),
    Lack.WRONG: ("failed", gettext_lazy("Wrong decisions")),
}


@dataclass(frozen=True, slots=True)
class InputView:
    """An input of a plugin, and where it comes from, or what happens without it."""

    label: str
    note: str
    is_supplied: bool


@dataclass(frozen=True, slots=True)
class PluginInputsView:
    """A row of the table: a plugin, its effect as a badge, and its inputs, those that are lacking first."""

    name: str
    state: str
    effect: str
    inputs: tuple[InputView, ...]
    is_declared: bool


@dataclass(frozen=True, slots=True)
class PolicyInputsView:
    """The table, and the warnings above it. `problem`: why there is no table; `hidden`: the number of further rows.

    `is_serious`: the policy cannot be activated.
    """

    plugins: tuple[PluginInputsView, ...] = ()
    hidden: int = 0
    warnings: tuple[PolicyWarning, ...] = ()
    is_serious: bool = False
    has_plugins: bool = False
    problem: str = ""


def view_of(cluster: Cluster, text: str) -> PolicyInputsView:
    """The inputs of this policy in this cluster."""
    try:
        wanted = policy.parse(text)
    except Invalid as error:
        return PolicyInputsView(problem=error.message)
    sources = supplied(cluster, wanted)
    found = policy_check.inputs_of(cluster, wanted, sources)
    rows = tuple(_row(one, sources) for one in found[:_MAX_ROWS])
    warnings = tuple(policy_check.warnings_about(found))
    return PolicyInputsView(
        rows,
        len(found) - len(rows),
        warnings[:_MAX_ROWS],
        is_serious=any(warning.lack.forbids for warning in warnings),
        has_plugins=any(wanted.tiers),
    )


def _row(found: PluginInputs, sources: Mapping[Input, str]) -> PluginInputsView:
    state, effect = _EFFECTS[found.lack] if found.is_declared else ("neutral", gettext_lazy("Unknown"))
    inputs = (*_lacking(found), *_supplied((need.input for need in found.supplied), sources))
    return PluginInputsView(found.name, state, str(effect), inputs, found.is_declared)


def _lacking(found: PluginInputs) -> Iterator[InputView]:
    for need in found.lacking:
        yield InputView(need.input.label, need.message, is_supplied=False)


def _supplied(inputs: Iterable[Input], sources: Mapping[Input, str]) -> Iterator[InputView]:
    for one in inputs:
        yield InputView(one.label, _("From: %(source)s") % {"source": sources[one]}, is_supplied=True)
