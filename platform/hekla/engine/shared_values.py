"""Values by job when a million jobs have a few different ones: a dictionary of them all costs more than to decide.

Below `MANY` jobs plain dictionaries are used: they are read faster.
"""

from collections.abc import Collection, ItemsView, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TypeVar

from hekla.engine.decisions import PendingReason

MANY = 50_000
"""So many jobs share a value without an entry each."""

Value = TypeVar("Value")
Reasons = tuple[PendingReason, ...]


class SharedValues(Mapping[str, Value]):
    """`own` values by uid, and before them those that many uids share; the last that has a uid counts.

    The collections of uids must be sets or mappings, and must not change.
    """

    __slots__ = ("_own", "_shared")

    def __init__(self, own: Mapping[str, Value], shared: Sequence[tuple[Collection[str], Value]]) -> None:
        self._own, self._shared = own, shared

    def with_own(self, own: Mapping[str, Value]) -> "SharedValues[Value]":
        """The same with these values of single jobs."""
        return SharedValues({**self._own, **own}, self._shared)

    def __getitem__(self, uid: str) -> Value:
        if uid in self._own:
            return self._own[uid]
        for uids, value in reversed(self._shared):
            if uid in uids:
                return value
        raise KeyError(uid)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[str, Value]:
        """All uids and values. Much faster than `Mapping.items`, which looks up each uid."""
        return self._all().items()

    def _all(self) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for uids, value in self._shared:
            found.update(dict.fromkeys(uids, value))
        return found | dict(self._own)


class ReasonsByJob(dict[str, Reasons]):
    """Why jobs wait, by uid, during a session; a job without reasons has none."""

    def __init__(self) -> None:
        super().__init__()
        self._shared: list[tuple[set[str], Reasons]] = []

    def __missing__(self, uid: str) -> Reasons:
        return next((reasons for uids, reasons in reversed(self._shared) if uid in uids), ())

    def share(self, uids: Collection[str], reasons: Reasons) -> None:
        """Give all these jobs the same reasons, or none."""
        if not reasons:
            for uid in uids:
                self.discard(uid)
            return
        if len(uids) < MANY:
            self.update(zip(uids, repeat(reasons)))
            return
        members = set(uids)
        for uid in self.keys() & members:
            del self[uid]
        self._shared.append((members, reasons))

    def discard(self, uid: str) -> None:
        """Remove the reasons of a job."""
        self.pop(uid, None)
        for uids, _reasons in self._shared:
            uids.discard(uid)

    def all(self) -> Mapping[str, Reasons]:
        """The reasons of all jobs that have some."""
        own = {uid: reasons for uid, reasons in self.items() if reasons} if not all(self.values()) else dict(self)
        if not self._shared:
            return own
        for uid in self.keys() - own.keys():  # they have none, whatever was shared with them before
            self.discard(uid)
        return SharedValues(own, self._shared)
