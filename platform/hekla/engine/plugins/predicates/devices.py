"""DynamicResources: devices for a pod's claims must be free on the node, or reachable if already allocated.

Devices are assumed for placements of this session, and for running pods whose claims have no recorded allocation. With
`compatibility: volcano`, other pods with such a claim wait until its allocation is recorded.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from hekla.engine.columns import Mask
from hekla.engine.device_allocator import MAX_STEPS, AllocatedDevice, DeviceAllocator, DevicesUnavailable, SearchTooLong
from hekla.engine.device_selectors import SelectorError
from hekla.engine.devices import Counter as DeviceCounter
from hekla.engine.devices import Device, Key
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import Refusal
from hekla.engine.plugins.predicates.used_claims import UsedClaims
from hekla.engine.session import Session

Names = tuple[str, ...]
_NONE, _FAILS = "no device to claim", "device selector fails"
_LONG_SEARCHES, _FEW_STEPS = 10, 1000
"""After so many nodes where the search for some claims was given up, others get so many steps: most need far fewer."""


class AssumedDevices(UsedClaims):
    """The devices that claims have or would get. They are computed when the first pod with claims is considered."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._claims = session.devices.claims
        self._allocated: set[Key] = set()
        self._counters: dict[DeviceCounter, float] = {}
        """What is left of the counters that devices share."""
        self._assumed: dict[str, tuple[AllocatedDevice, ...]] = {}
        self._users: Counter[str] = Counter()
        self._by_row: dict[int, list[Device]] = defaultdict(list)
        self._rows_by_counter: dict[DeviceCounter, set[int]] = defaultdict(set)
        self._changed: list[int] = []
        """Rows where devices were allocated or released."""
        self._refused: dict[Names, tuple[int, dict[int, str]]] = {}
        """By claims: how many changes were processed, and the rows that refuse them, with the reason."""
        if self._claims:
            session.on_change.append(self._update)

    def _claims_of(self, pod: PodInfo) -> Collection[str]:
        return pod.spec.constraints.device_claims

    def _load(self) -> None:
        self._allocated.update(key for claim in self._claims.values() for key in claim.allocated or ())
        for device in self._session.devices.devices:
            for row in self._rows(device):
                self._by_row[row].append(device)
            for counter in device.consumes:
                self._rows_by_counter[counter].update(self._rows(device))
        self._counters = self._session.devices.free_counters(self._allocated)
        super()._load()

    def _rows(self, device: Device) -> Sequence[int]:
        """The rows that can use a device. Most devices belong to one node, which they name."""
        if device.node_terms and (name := device.node_terms[0].node_name) and len(device.node_terms) == 1:
            row = self._session.table.row_of.get(name)
            return () if row is None else (row,)
        rows: list[int] = np.flatnonzero(self._session.node_index.matching_any(device.node_terms)).tolist()
        return rows

    def predicate(self, _session: Session, pod: PodInfo) -> Callable[[], Iterator[Refusal]] | None:
        """Refuse nodes where a claim would get no devices, or from which its devices cannot be reached."""
        names = pod.spec.constraints.device_claims
        if names and self._claims and not self._is_loaded:
            self._load()
        return (lambda: self._refusals(names)) if names else None

    def _refusals(self, names: Names) -> Iterator[Refusal]:
        if any(name not in self._claims for name in names):
            yield Refusal(np.ones(len(self._session.table), dtype=bool), "device claim not found")
            return
        if self._session.policy.follows_volcano and any(name in self._assumed for name in names):
            yield Refusal(np.ones(len(self._session.table), dtype=bool), "device claim is being allocated")
            return
        for name in names:
            if not self._is_unallocated(name):
                yield Refusal(~self._reachable(name), "claimed devices out of reach")
        why = self._check(tuple(filter(self._is_unallocated, names)))
        for reason in sorted(set(why.values())):
            yield Refusal(np.array([why.get(row) == reason for row in range(len(self._session.table))]), reason)

    def _is_unallocated(self, name: str) -> bool:
        return self._claims[name].allocated is None and name not in self._assumed

    def _reachable(self, name: str) -> Mask:
        """The rows from which a claim's devices can be used."""
        claim, found = self._claims[name], np.ones(len(self._session.table), dtype=bool)
        if claim.allocated is not None:
            return self._session.node_index.matching_any(claim.node_terms)
        for one in self._assumed[name]:
            found = found & self._session.node_index.matching_any(one.device.node_terms)
        return found

    def _check(self, names: Names) -> dict[int, str]:
        """Rows without devices for these unallocated claims, with the reason; only changed rows are checked again."""
        position, why = self._refused.get(names, (None, {}))
        abandoned = 0
        for row in range(len(self._session.table)) if position is None else set(self._changed[position:]):
            why.pop(row, None)
            try:
                self._find(names, row, MAX_STEPS if abandoned < _LONG_SEARCHES else _FEW_STEPS)
            except SearchTooLong:
                abandoned += 1
                why[row] = _NONE
            except DevicesUnavailable:
                why[row] = _NONE
            except SelectorError:
                why[row] = _FAILS
        self._refused[names] = len(self._changed), why
        return why

    def _find(self, names: Names, row: int, max_steps: int = MAX_STEPS) -> dict[str, tuple[AllocatedDevice, ...]]:
        allocator = DeviceAllocator(self._by_row.get(row, ()), self._allocated, self._counters, max_steps=max_steps)
        return allocator.find({name: self._claims[name] for name in names})

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        names = tuple(name for name in pod.spec.constraints.device_claims if name in self._claims)
        for name in names:
            self._users[name] += sign
        if sign > 0:
            self._assume(tuple(filter(self._is_unallocated, names)), row)
        else:
            self._release(name for name in names if not self._users[name])

    def _assume(self, names: Names, row: int) -> None:
        """Assume devices for these claims; a pod that runs without its devices, for whatever reason, gets none."""
        try:
            found = self._find(names, row)
        except (DevicesUnavailable, SelectorError):
            return
        self._assumed.update(found)
        self._mark([one for devices in found.values() for one in devices], is_allocated=True)

    def _release(self, names: Iterator[str]) -> None:
        self._mark([one for name in names for one in self._assumed.pop(name, ())], is_allocated=False)

    def _mark(self, assumed: list[AllocatedDevice], *, is_allocated: bool) -> None:
        devices = [one.device for one in assumed if not one.request.is_admin]
        change = self._allocated.update if is_allocated else self._allocated.difference_update
        change(device.key for device in devices)
        if any(device.consumes for device in devices):
            self._counters = self._session.devices.free_counters(self._allocated)
        for device in devices:
            self._changed += self._rows(device)
            for counter in device.consumes:
                self._changed += self._rows_by_counter[counter]
