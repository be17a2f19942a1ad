"""DynamicResources: the devices that a pod's claims name must be free on the node, or be those that the claims have.

What a placement of this session would use is kept for it, and so is what pods that run have been given but do not say.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from hekla.engine.columns import Mask
from hekla.engine.device_search import Search, Unmet
from hekla.engine.device_selectors import SelectorError
from hekla.engine.devices import Device, Key
from hekla.engine.gangs import Member
from hekla.engine.places import Refusal
from hekla.engine.session import Session

Names = tuple[str, ...]
_NONE, _FAILS = "no device to claim", "device selector fails"


class Promises:
    """Which devices claims have or would get."""

    def __init__(self, session: Session) -> None:
        self._session, self._claims = session, session.devices.claims
        self._taken: set[Key] = {key for claim in self._claims.values() for key in claim.allocated or ()}
        self._promised: dict[str, tuple[Device, ...]] = {}
        self._users: Counter[str] = Counter()
        self._on: list[list[Device]] = [[] for _ in session.table.nodes]
        for device in session.devices.devices:
            for row in self._rows(device):
                self._on[row].append(device)
        self._changed: list[int] = []
        """Rows on which something was taken or given back."""
        self._refused: dict[Names, tuple[int, dict[int, str]]] = {}
        """By claims: how many changes were looked at, and the rows that refuse them, and why."""
        if self._claims:
            self._seat()
            session.on_change.append(self._hear)

    def _seat(self) -> None:
        for row, residents in enumerate(self._session.residents):
            for member in residents.values():
                self._hear(member, row, 1)

    def _rows(self, device: Device) -> list[int]:
        rows: list[int] = np.flatnonzero(self._session.nodes.in_one_of(device.node_terms)).tolist()
        return rows

    def refusals_now(self, _session: Session, member: Member) -> Callable[[], Iterator[Refusal]] | None:
        """Refuse nodes on which a claim of the pod would not get its devices, or from which it cannot reach them."""
        names = member.task.conditions.device_claims
        return (lambda: self._refusals(names)) if names else None

    def _refusals(self, names: Names) -> Iterator[Refusal]:
        if any(name not in self._claims for name in names):
            yield Refusal(np.ones(len(self._on), dtype=bool), "device claim not found")
            return
        for name in names:
            if not self._is_open(name):
                yield Refusal(~self._within_reach(name), "claimed devices out of reach")
        why = self._look(tuple(filter(self._is_open, names)))
        for reason in sorted(set(why.values())):
            yield Refusal(np.array([why.get(row) == reason for row in range(len(self._on))]), reason)

    def _is_open(self, name: str) -> bool:
        return self._claims[name].allocated is None and name not in self._promised

    def _within_reach(self, name: str) -> Mask:
        """The rows from which a claim's devices can be used."""
        claim, found = self._claims[name], np.ones(len(self._on), dtype=bool)
        if claim.allocated is not None:
            return self._session.nodes.in_one_of(claim.node_terms)
        for device in self._promised[name]:
            found = found & self._session.nodes.in_one_of(device.node_terms)
        return found

    def _look(self, names: Names) -> dict[int, str]:
        """The rows that have no devices for claims without any; only those that changed are asked again."""
        seen, why = self._refused.get(names, (None, {}))
        for row in range(len(self._on)) if seen is None else set(self._changed[seen:]):
            why.pop(row, None)
            try:
                self._find(names, row)
            except Unmet:
                why[row] = _NONE
            except SelectorError:
                why[row] = _FAILS
        self._refused[names] = len(self._changed), why
        return why

    def _find(self, names: Names, row: int) -> dict[str, tuple[Device, ...]]:
        return Search(self._on[row], self._taken).find({name: self._claims[name] for name in names})

    def _hear(self, member: Member, row: int, sign: int) -> None:
        names = tuple(name for name in member.task.conditions.device_claims if name in self._claims)
        for name in names:
            self._users[name] += sign
        if sign > 0:
            self._take(tuple(filter(self._is_open, names)), row)
        else:
            self._give_back(name for name in names if not self._users[name])

    def _take(self, names: Names, row: int) -> None:
        """Who runs already without what it claims, for whatever reason, takes nothing."""
        try:
            found = self._find(names, row)
        except (Unmet, SelectorError):
            return
        self._promised.update(found)
        self._mark([device for devices in found.values() for device in devices], is_taken=True)

    def _give_back(self, names: Iterator[str]) -> None:
        self._mark([device for name in names for device in self._promised.pop(name, ())], is_taken=False)

    def _mark(self, devices: list[Device], *, is_taken: bool) -> None:
        change = self._taken.update if is_taken else self._taken.difference_update
        change(device.key for device in devices)
        self._changed += [row for device in devices for row in self._rows(device)]
