"""How close in the network the pods of a job must be, as one choice of the form."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.network_topology import NetworkTopologySpec, TopologyMode

_SOFT, _HARD, _TIER, _NUMBER = "soft", "hard", "tier:", "number:"
ANYWHERE = ("", gettext_lazy("anywhere"))
OTHER = gettext_lazy("as before (%s)")


def choices(tiers: Iterable[str]) -> list[tuple[str, str | Promise]]:
    """What people can choose, if the clusters of their queues have these tiers; nothing without tiers."""
    named = [(_TIER + tier, gettext_lazy("within one “%s”") % tier) for tier in tiers]
    return [ANYWHERE, (_SOFT, gettext_lazy("as close together as possible")), *named] if named else [ANYWHERE]


def words(topology: NetworkTopologySpec | None) -> str:
    """The choice in words; empty if the pods may be anywhere."""
    if topology is None:
        return ""
    if topology.mode is TopologyMode.SOFT:
        return _("as close together as possible")
    if topology.highest_tier_name:
        return _("within one “%s”") % topology.highest_tier_name
    if topology.highest_tier_allowed is None:
        return _("within one hypernode")
    return _("within one hypernode of tier %s") % topology.highest_tier_allowed


def value_of(topology: object) -> str:
    """The choice that is this network topology, a document that may come from a browser; empty for None."""
    if not isinstance(topology, Mapping):
        return ""
    if topology.get("mode") == _SOFT:
        return _SOFT
    if name := topology.get("highest_tier_name"):
        return f"{_TIER}{name}"
    number = topology.get("highest_tier_allowed")
    return _HARD if number is None else f"{_NUMBER}{number}"


def chosen(value: str, before: Any) -> Any:  # noqa: ANN401  (the JobSpec judges it)
    """The network topology of a choice; the one from before if it is the same choice."""
    if before is not None and value_of(before) == value:
        return before
    if value in ("", _SOFT, _HARD):
        return {"mode": value} if value else None
    if value.startswith(_TIER):
        return {"highest_tier_name": value.removeprefix(_TIER)}
    number = value.removeprefix(_NUMBER)
    return {"highest_tier_allowed": int(number) if number.isascii() and number.isdigit() else number}
