"""Combines the victims that plugins name: which pods may be evicted, and how many each plugin spared.

Within a tier results are intersected. An empty result ends the tier undecided, and the next tier decides
(`volcano-spec` §3.2). This runs for each candidate node, so counts are only recorded here and evaluated on demand.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hekla.engine.job_info import JobInfo, PodInfo

NamedFunction = tuple[str, Callable[..., Any]]
"""A plugin's name and its function."""
Trail = list[tuple[str, int]]
"""Plugins in order, each with the number of victims left after it."""


class VictimSelection(NamedTuple):
    """The victims among `candidates`, and how many each plugin left.

    `trail`: of the deciding tier, or of the first undecided one; `spared_trail`: of the plugins that spared pods
    before.
    """

    victims: list[PodInfo]
    candidates: int = 0
    trail: Sequence[tuple[str, int]] = ()
    spared_trail: Sequence[tuple[str, int]] = ()

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that allowed the evictions."""
        return tuple(name for name, _ in self.trail)

    def spared_by(self) -> Counter[str]:
        """Spared pods by the first plugin that did not name them; under "" if no plugin answered."""
        counts, before = Counter[str](), self.candidates
        for name, left in (*self.spared_trail, *self.trail, ("", len(self.victims))):
            counts[name] += before - left
            before = left
        return +counts


def by_tiers(
    tiers: Iterable[Sequence[NamedFunction]], arguments: tuple[Any, ...], candidates: Sequence[PodInfo]
) -> VictimSelection:
    """The victims of the first tier that names any."""
    undecided: Trail = []
    for functions in tiers:
        chosen, trail = _by_tier(functions, arguments)
        if chosen:
            return VictimSelection(chosen, len(candidates), trail)
        undecided = undecided or trail
    return VictimSelection([], len(candidates), undecided)


def _by_tier(functions: Sequence[NamedFunction], arguments: tuple[Any, ...]) -> tuple[list[PodInfo], Trail]:
    chosen: list[PodInfo] = []
    trail: Trail = []
    for name, function in functions:
        named = function(*arguments)
        if named is None:
            continue
        if chosen and named:
            uids = {pod.spec.uid for pod in named}
            chosen = [pod for pod in chosen if pod.spec.uid in uids]
        else:  # the first answer; as in Volcano, also the answer after an empty intersection
            trail = trail if chosen else []
            chosen = named
        trail.append((name, len(chosen)))
        if not named:
            break
    return chosen, trail


def by_all(
    functions: Iterable[NamedFunction], job: JobInfo, candidates: Sequence[PodInfo], action: str
) -> VictimSelection:
    """The victims for a whole job that all plugins name; each plugin gets those that the plugins before it named."""
    remaining, trail = list(candidates), Trail()
    for name, function in functions:
        named = function(job, remaining, action)
        if named is not None:
            remaining = named
            trail.append((name, len(remaining)))
    return VictimSelection(remaining, len(candidates), trail)


def without_spared(
    functions: Iterable[NamedFunction], pod: PodInfo, candidates: Sequence[PodInfo]
) -> tuple[list[PodInfo], Trail]:
    """The candidates that no plugin spares, and the trail."""
    remaining, trail = list(candidates), Trail()
    for name, function in functions:
        if spared := {one.spec.uid for one in function(pod, remaining)}:
            remaining = [one for one in remaining if one.spec.uid not in spared]
            trail.append((name, len(remaining)))
    return remaining, trail
