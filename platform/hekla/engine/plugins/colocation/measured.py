"""How much of a node pods request and do not use, by its measured usage, and where that usage is too high.

The usage is a mean. What pods request is averaged in the same way before the two are compared: a pod that was just
placed has hardly been measured. So the oversubscription does not grow when an offline pod is placed, nor shrink when
that pod begins to use what it requested.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hekla.domain.node_usage import MEAN_SECONDS
from hekla.engine.columns import Mask, Vector
from hekla.engine.model import NodeUsage
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.lib.durations import seconds

NAMES = ("cpu", "memory")
TARGETS: Mapping[str, str] = {"cpu": "oversubscription.cpu", "memory": "oversubscription.memory"}
_HIGH = {"cpu": ("evictingCPUHighWatermark", 80.0), "memory": ("evictingMemoryHighWatermark", 60.0)}
_INTERVAL_SECONDS = 60.0
_HUNDRED = 100.0
_NEW_FOR_SECONDS = 5 * MEAN_SECONDS
"""Afterwards, less than a hundredth of a pod's requests is missing."""
_BOTH = slice(0, 2)


@dataclass(frozen=True)
class MeasuredRoom:
    """One row for each node, and one column for each of `NAMES`. `more`: the oversubscription. `crowded`: the usage is
    too high for more offline pods. `busy`: it is too high for those that are there.
    """

    more: Vector
    crowded: Mask
    busy: Mask

    def without(self, rows: Mask) -> "MeasuredRoom":
        """The same, with nothing for these nodes."""
        others = ~rows[:, np.newaxis]
        return MeasuredRoom(self.more * others, self.crowded & others, self.busy & others)


def has_targets(option: PluginOption) -> bool:
    """Whether usage that is measured oversubscribes nodes."""
    return bool(_targets(option).any())


def measured_room(session: Session, option: PluginOption) -> MeasuredRoom:
    """The oversubscription by fresh measurements, up to the target usage of nodes."""
    table, targets = session.table, _targets(option)
    shape = len(table), len(NAMES)
    if not targets.any():
        return MeasuredRoom(np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool))
    high = np.array([option.number(name, default) for name, default in _HIGH.values()]) / _HUNDRED
    targets = np.minimum(targets, high)
    usages = [node.usage if node.usage and node.usage.is_fresh(session.now) else None for node in table.nodes]
    is_known = np.array([usage is not None for usage in usages], dtype=bool)[:, np.newaxis] & (targets > 0)
    size = table.allocatable[:, _BOTH]
    whole = np.array([u.whole if u and u.whole else at for u, at in zip(usages, size, strict=True)]).reshape(shape)
    used = np.array([(u.cpu, u.memory) if u else (0.0, 0.0) for u in usages]).reshape(shape) / _HUNDRED * whole
    others = np.maximum(whole - size, 0.0)  # what is requested outside of these pods, as by the system itself
    requested = table.used[:, _BOTH] - _unmeasured(session, usages) + others
    return MeasuredRoom(
        more=np.where(is_known, np.maximum(requested - used - (1 - targets) * whole, 0.0), 0.0),
        crowded=is_known & (used > targets * whole),
        busy=is_known & (used > high * whole),
    )


def may_evict(session: Session, option: PluginOption) -> bool:
    """Whether the last evictions are long enough ago that the usage shows their effect."""
    last, interval = session.state.last_shuffle_at, seconds(str(option.arguments.get("evictingInterval", "")))
    return last is None or session.now - last >= (interval or _INTERVAL_SECONDS)


def _targets(option: PluginOption) -> Vector:
    """The usage up to which offline pods are placed, for each of `NAMES`; 0: no oversubscription."""
    return np.clip(np.array([option.number(name, 0.0) for name in TARGETS.values()]) / _HUNDRED, 0.0, 1.0)


def _unmeasured(session: Session, usages: Sequence[NodeUsage | None]) -> Vector:
    """The part of the requests on each node that its mean usage does not show yet: of pods that are new there."""
    missing: Vector = np.zeros((len(usages), len(NAMES)))
    for row, usage in enumerate(usages):
        if usage is None:
            continue
        for pod in session.node_pods[row].values():
            age = usage.measured_at - pod.spec.scheduled_at
            if age < _NEW_FOR_SECONDS:
                missing[row] += pod.request[_BOTH] * math.exp(-max(age, 0.0) / MEAN_SECONDS)
    return missing
