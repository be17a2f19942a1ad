"""Things that wait for one another in a circle, so that none of them ever begins."""

from collections.abc import Mapping, Sequence


def find_cycle(waits: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The first circle that is met, its beginning named again at its end; empty where there is none."""
    settled: set[str] = set()
    return next((circle for name in waits if (circle := _from(name, waits, settled, ()))), ())


def _from(name: str, waits: Mapping[str, Sequence[str]], settled: set[str], way: tuple[str, ...]) -> tuple[str, ...]:
    """A circle that is met on the ways from here; `settled` are things from which none is."""
    if name in way:
        return (*way[way.index(name) :], name)
    if name in settled:
        return ()
    for other in waits.get(name, ()):
        if circle := _from(other, waits, settled, (*way, name)):
            return circle
    settled.add(name)
    return ()
