"""What plugins say of those who might be evicted: who may go, by whose leave, and how many each plugin spared.

In a tier the answers are intersected; an answer that names nobody ends the tier undecided, and an undecided tier leaves
the question to the next (`volcano-spec` §3.2).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hekla.engine.gangs import Member

Voice = tuple[str, Callable[..., Any]]
"""A plugin's name and its answer."""
Counts = tuple[tuple[str, int], ...]


class Verdict(NamedTuple):
    """`plugins` chose the victims. `spared` counts by plugin the others, each once: for the first that did not name it.

    Where no plugin said anything they are counted under no name.
    """

    victims: list[Member]
    plugins: tuple[str, ...] = ()
    spared: Counts = ()


def by_tiers(
    tiers: Iterable[Sequence[Voice]], candidates: Sequence[Member], ask: Callable[[Any], list[Member] | None]
) -> Verdict:
    """The first tier that names somebody decides; `ask` puts the question to an answer."""
    undecided = None
    for voices in tiers:
        found = _of_tier(voices, candidates, ask)
        if found.victims:
            return found
        if undecided is None and found.plugins:
            undecided = found
    return undecided or Verdict([], (), (("", len(candidates)),))


def _of_tier(
    voices: Sequence[Voice], candidates: Sequence[Member], ask: Callable[[Any], list[Member] | None]
) -> Verdict:
    chosen: list[Member] = []
    plugins: list[str] = []
    spared: list[tuple[str, int]] = []
    for name, answer in voices:
        named = ask(answer)
        if named is None:
            continue
        before = len(chosen) or len(candidates)
        if chosen and named:
            uids = {member.task.uid for member in named}
            chosen = [member for member in chosen if member.task.uid in uids]
        else:  # the first to speak; and as in Volcano also who speaks when the others agreed on nobody
            chosen, spared = named, spared if chosen else []
        plugins.append(name)
        spared.append((name, before - len(chosen)))
        if not named:
            break
    return Verdict(chosen, tuple(plugins), tuple(spared))


def in_turn(
    voices: Iterable[Voice], candidates: Sequence[Member], ask: Callable[[Any, list[Member]], list[Member] | None]
) -> Verdict:
    """All must agree: each is asked about those whom the plugins before it left."""
    kept, plugins, spared = list(candidates), list[str](), list[tuple[str, int]]()
    for name, answer in voices:
        left = ask(answer, kept)
        if left is not None:
            plugins.append(name)
            spared.append((name, len(kept) - len(left)))
            kept = left
    return Verdict(kept, tuple(plugins), tuple(spared))
