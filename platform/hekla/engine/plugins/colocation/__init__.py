"""Online and offline pods on the same nodes: offline pods also use what online pods requested and leave idle.

A pod is offline if its annotation `volcano.sh/qos-level` is `BE`; all others are online. Online pods together must fit
the node's size; all pods together must fit size and oversubscription. Queue shares are computed without
oversubscription.

The oversubscription of a node is in its annotations `volcano.sh/oversubscription-cpu` and `-memory`, if an agent writes
them, or follows from its measured usage:

    oversubscription.cpu: 60, oversubscription.memory: 50     per cent: offline pods are placed until the usage of a
                                                              node would reach this; 0, the default: none
    evictingCPUHighWatermark: 80, evictingMemoryHighWatermark: 60     per cent, as of Volcano's agent: above this usage
                                                              an offline pod is evicted
    evictingInterval: 1m                                      time for the usage to show the effect of an eviction

Online jobs come before offline ones. For an online pod, offline pods are evicted if they suffice; for an offline pod,
online pods are never evicted. The action `shuffle` takes oversubscription back. If that in annotations shrinks below
what is allocated, it evicts preemptable offline pods, the least important first, until the rest fits. If the measured
usage is too high, it evicts one such pod of each node, and another one after the interval.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hekla.domain.resources import InvalidQuantity, parse_quantity
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import EPSILON, Mask, NodeTable, Rows, Vector, fits
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.model import NodeSpec, PodStatus
from hekla.engine.node_fit import Refusal
from hekla.engine.plugins.colocation import measured
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

LEVEL, OFFLINE = "volcano.sh/qos-level", "BE"
_MORE = {"cpu": "volcano.sh/oversubscription-cpu", "memory": "volcano.sh/oversubscription-memory"}
NODE_ANNOTATIONS = tuple(_MORE.values())

READS_CLOCK = True
NEEDS = (
    Need(Input.POD_ANNOTATIONS, Lack.NOTHING),
    Need(Input.NODE_ANNOTATIONS, Lack.PART, gettext_noop("Agents of nodes cannot oversubscribe them.")),
    Need(
        Input.NODE_USAGE,
        Lack.FALLBACK,
        gettext_noop("Only annotations oversubscribe nodes, and busy nodes keep their offline pods."),
        lambda option, _policy: measured.has_targets(option),
    ),
    Need(
        Input.PLACEMENT_TIMES,
        Lack.PART,
        gettext_noop("New pods count as if they had been measured."),
        lambda option, _policy: measured.has_targets(option),
    ),
    Need(
        Input.SHUFFLE_TIME,
        Lack.WRONG,
        gettext_noop("It evicts offline pods of busy nodes in every cycle instead of once per interval."),
        lambda option, policy: measured.has_targets(option) and "shuffle" in policy.actions,
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Enlarge the nodes for offline pods, and make offline pods yield."""
    has_targets, room = measured.has_targets(option), measured.measured_room(session, option)
    written = _written(session.table.nodes)
    is_written: Mask = np.asarray(~np.isnan(written).all(axis=1))
    room = room.without(is_written)
    _enlarge(session, option, np.where(np.isnan(written), room.more, written))
    offline = {uid for uid, job in session.jobs.items() if job.pods and all(map(is_offline, job.pods))}

    def is_crowded(pod: PodInfo, _table: NodeTable) -> list[Refusal]:
        if not is_offline(pod):
            return []
        return [
            Refusal(room.crowded[:, at], f"{name} usage is too high", is_lasting=False) for at, name in enumerate(_MORE)
        ]

    def online_first(job: JobInfo) -> bool:
        return job.group.uid in offline

    def leavers(pods: Sequence[PodInfo]) -> list[PodInfo]:
        over = (session.table.idle < -EPSILON).any(axis=1) & (is_written | (not has_targets))
        busy = room.busy.any(axis=1) & measured.may_evict(session, option)
        return [
            *(victim for row in np.flatnonzero(over).tolist() for victim in _leavers(session, pods, row)),
            *(victim for row in np.flatnonzero(busy).tolist() for victim in _offline(session, pods, row)[:1]),
        ]

    session.register(ExtensionPoint.TASK_CLASS, option, is_offline)
    session.register(ExtensionPoint.PREDICATE, option, is_crowded)
    session.register(ExtensionPoint.JOB_ORDER, option, online_first)
    session.register(ExtensionPoint.PREEMPTABLE, option, lambda pod, candidates: _yielding(session, pod, candidates))
    session.register(ExtensionPoint.RECLAIMABLE, option, lambda pod, candidates: _yielding(session, pod, candidates))
    session.register(ExtensionPoint.SPARED, option, _spared)
    session.register(ExtensionPoint.VICTIM_TASKS, option, leavers)


def _enlarge(session: Session, option: PluginOption, room: Vector) -> None:
    """Add this room for CPU and memory to the nodes. Online pods still get no more than the size of a node."""
    table = session.table
    size, more = table.allocatable.copy(), np.zeros_like(table.allocatable)
    more[:, : len(_MORE)] = room
    table.enlarge(more)
    online = np.zeros_like(size)
    for row, residents in enumerate(session.node_pods):
        for pod in residents.values():
            if pod.status in ALLOCATED and not is_offline(pod):
                online[row] += pod.request

    def update(pod: PodInfo, row: int, sign: int) -> None:
        if not is_offline(pod):
            online[row] += sign * pod.request

    def within_size(pod: PodInfo, _table: NodeTable) -> Callable[[Rows], list[Refusal]] | None:
        if is_offline(pod) or not more.any():
            return None
        return lambda rows: [
            Refusal(~fits(pod.request, size[rows] - online[rows]), "full of online work", is_unresolvable=False)
        ]

    session.on_change.append(update)
    session.register(ExtensionPoint.CHANGING_PREDICATE, option, within_size)


def is_offline(pod: PodInfo) -> bool:
    """Whether the pod is offline."""
    return pod.spec.annotations.get(LEVEL) == OFFLINE


def _written(nodes: Sequence[NodeSpec]) -> Vector:
    """The oversubscription that annotations give, one row for each node; not a number where there is none."""
    found = [[_amount(name, node.annotations.get(key)) for name, key in _MORE.items()] for node in nodes]
    return np.array(found, dtype=float).reshape(len(nodes), len(_MORE))


def _amount(name: str, text: str | None) -> float:
    try:
        return np.nan if text is None else parse_quantity(name, text)
    except InvalidQuantity:
        return 0.0


def _yielding(session: Session, pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo] | None:
    """The offline victims if they make enough room; else None: abstain. For an offline pod: all offline victims."""
    offline = [victim for victim in candidates if is_offline(victim)]
    if is_offline(pod):
        return offline
    if not offline:
        return None
    row = session.table.row_of[offline[0].node]
    room = session.table.future_idle(row) + sum(victim.request for victim in offline)
    return offline if fits(pod.request, room) else None


def _spared(pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
    return [victim for victim in candidates if is_offline(pod) and not is_offline(victim)]


def _leavers(session: Session, pods: Sequence[PodInfo], row: int) -> list[PodInfo]:
    """The least important offline pods of the node, until the remaining pods fit."""
    missing, chosen = -session.table.future_idle(row), []
    for victim in _offline(session, pods, row):
        if not (missing > EPSILON).any():
            break
        if ((missing > EPSILON) & (victim.request > 0)).any():
            missing = missing - victim.request
            chosen.append(victim)
    return chosen


def _offline(session: Session, pods: Sequence[PodInfo], row: int) -> list[PodInfo]:
    """The offline pods of the node that may be evicted, the least important first.

    Pods that are not preemptable stay, as in every eviction: by their own setting, or because a budget protects them
    now.
    """
    name = session.table.nodes[row].name
    offline = [m for m in pods if m.node == name and m.status is PodStatus.RUNNING and is_offline(m)]
    here = [m for m in offline if m.spec.preemptable]
    return sorted(here, key=lambda m: (m.job.group.priority, m.spec.priority, -m.spec.created_at, m.spec.uid))
