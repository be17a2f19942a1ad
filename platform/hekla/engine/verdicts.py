"""What plugins say of those who might be evicted: who may go, by whose leave, and how many each plugin spared.

In a tier the answers are intersected; an answer that names nobody ends the tier undecided, and an undecided tier leaves
the question to the next (`volcano-spec` §3.2). Asked for each node that comes into question: what is told of it is only
noted on the way, and made up when somebody asks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hekla.engine.gangs import Gang, Member

Voice = tuple[str, Callable[..., Any]]
"""A plugin's name and its answer."""
Trail = list[tuple[str, int]]
"""Who spoke, and how many were left then."""


class Verdict(NamedTuple):
    """Who may go of so many on `offer`. `spoke`: the tier that decided, or the first that did not; before it others
    may have `spared` some, whatever the tiers say."""

    victims: list[Member]
    offer: int = 0
    spoke: Sequence[tuple[str, int]] = ()
    spared: Sequence[tuple[str, int]] = ()

    @property
    def plugins(self) -> tuple[str, ...]:
        """By whose leave they go."""
        return tuple(name for name, _ in self.spoke)

    def spared_by(self) -> Counter[str]:
        """How many each plugin spared, each for the first that did not name it; under no name where nobody spoke."""
        counts, before = Counter[str](), self.offer
        for name, left in (*self.spared, *self.spoke, ("", len(self.victims))):
            counts[name] += before - left
            before = left
        return +counts


def by_tiers(tiers: Iterable[Sequence[Voice]], arguments: tuple[Any, ...], candidates: Sequence[Member]) -> Verdict:
    """The first tier that names somebody decides."""
    undecided: Trail = []
    for voices in tiers:
        chosen, spoke = _of_tier(voices, arguments)
        if chosen:
            return Verdict(chosen, len(candidates), spoke)
        undecided = undecided or spoke
    return Verdict([], len(candidates), undecided)


def _of_tier(voices: Sequence[Voice], arguments: tuple[Any, ...]) -> tuple[list[Member], Trail]:
    chosen: list[Member] = []
    spoke: Trail = []
    for name, answer in voices:
        named = answer(*arguments)
        if named is None:
            continue
        if chosen and named:
            uids = {member.task.uid for member in named}
            chosen = [member for member in chosen if member.task.uid in uids]
        else:  # the first to speak; and as in Volcano also who speaks after the others agreed on nobody
            spoke = spoke if chosen else []
            chosen = named
        spoke.append((name, len(chosen)))
        if not named:
            break
    return chosen, spoke


def in_turn(voices: Iterable[Voice], gang: Gang, candidates: Sequence[Member], action: str) -> Verdict:
    """All must agree on who goes for a whole gang: each is asked about those whom the others left."""
    kept, spoke = list(candidates), Trail()
    for name, answer in voices:
        named = answer(gang, kept, action)
        if named is not None:
            kept = named
            spoke.append((name, len(kept)))
    return Verdict(kept, len(candidates), spoke)


def without_spared(voices: Iterable[Voice], member: Member, candidates: Sequence[Member]) -> tuple[list[Member], Trail]:
    """Those whom no plugin protects from a member."""
    kept, spoke = list(candidates), Trail()
    for name, answer in voices:
        if spared := {one.task.uid for one in answer(member, kept)}:
            kept = [one for one in kept if one.task.uid not in spared]
            spoke.append((name, len(kept)))
    return kept, spoke
