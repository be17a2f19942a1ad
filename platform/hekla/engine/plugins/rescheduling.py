"""Balances the load: evicts pods from busy nodes while others are idle (`volcano-spec` §5.6).

Names victims for the action `shuffle`. Nodes below all `thresholds` are idle, nodes above any of `targetThresholds`
busy (per cent of cpu, memory and pods; the default is 100). From the busiest node on, the least important pods are
evicted until their node is within its targets or the idle nodes are full up to theirs.

    interval: 5m
    strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}}]

The load is the measured usage if fresh, else the requests. The state contains the time of the last such eviction; until
`interval` has passed, no pod is evicted. Victims are preemptable pods that no other plugin spares (a job is not cut
below its minimum) and that have room on an idle node.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import Mask, Vector, fits
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.policy import Argument, PluginOption, number
from hekla.engine.session import Session
from hekla.lib.durations import seconds

_INTERVAL = 300.0
_STRATEGY = "lowNodeUtilization"
_NAMES = ("cpu", "memory", "pods")
_ALL = 100.0

READS_CLOCK = True
NEEDS = (
    Need(
        Input.SHUFFLE_TIME,
        Lack.WRONG,
        gettext_noop("It evicts pods in every cycle instead of once per interval."),
        lambda _option, policy: "shuffle" in policy.actions,
    ),
    Need(Input.NODE_USAGE, Lack.FALLBACK, gettext_noop("The load of a node is what its pods request.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Name victims once the interval has passed."""
    last, interval = session.state.last_shuffle_at, seconds(str(option.arguments.get("interval", ""))) or _INTERVAL
    if last is not None and session.now - last < interval:
        return
    low, target = _thresholds(option)

    def victims(pods: Sequence[PodInfo]) -> list[PodInfo]:
        return _victims(session, pods, low, target)

    session.register(ExtensionPoint.VICTIM_TASKS, option, victims)


def _thresholds(option: PluginOption) -> tuple[Vector, Vector]:
    written = option.arguments.get("strategies")
    strategies = written if isinstance(written, list | tuple) else ()
    found = next((s for s in strategies if isinstance(s, Mapping) and s.get("name") == _STRATEGY), None)
    params = found.get("params") if found is not None else option.arguments
    return _row(params, "thresholds"), _row(params, "targetThresholds")


def _row(params: Argument | Mapping[str, Argument] | None, name: str) -> Vector:
    written = params.get(name) if isinstance(params, Mapping) else None
    amounts = written if isinstance(written, Mapping) else {}
    return np.array([number(amounts.get(resource), _ALL) for resource in _NAMES])


def _victims(session: Session, pods: Sequence[PodInfo], low: Vector, target: Vector) -> list[PodInfo]:
    table, load = session.table, _load(session)
    whole = table.allocatable[:, :3]
    open_rows = np.array([not node.unschedulable for node in table.nodes], dtype=bool)
    idle = (load < low).all(axis=1) & open_rows
    busy: Mask = (load > target).any(axis=1) & ~idle
    room = ((target / 100 - load / 100) * whole)[idle].clip(min=0).sum(axis=0)
    chosen: list[PodInfo] = []
    for row in sorted(np.flatnonzero(busy).tolist(), key=lambda at: -load[at, :2].sum()):
        for victim in _leavers(session, pods, row):
            if (load[row] <= target).all():
                break
            request = victim.request[:3]
            if (request > room).any() or not _fits_somewhere(session, victim, idle):
                continue
            room -= request
            load[row] -= np.divide(request, whole[row], out=np.zeros(3), where=whole[row] > 0) * 100
            chosen.append(victim)
    return chosen if session.policy.follows_volcano else _unspared(session, chosen)


def _load(session: Session) -> Vector:
    """Per cent of cpu, memory and pods used, one row per node."""
    table = session.table
    whole = table.allocatable[:, :3]
    load: Vector = np.divide(table.used[:, :3], whole, out=np.zeros_like(whole), where=whole > 0) * 100
    for row, node in enumerate(table.nodes):
        if node.usage is not None and node.usage.is_fresh(session.now):
            load[row, :2] = node.usage.cpu, node.usage.memory
    return load


def _leavers(session: Session, pods: Sequence[PodInfo], row: int) -> Iterator[PodInfo]:
    """The pods of a node that may be evicted, the least important first."""
    name = session.table.nodes[row].name
    here = [m for m in pods if m.node == name and m.status is PodStatus.RUNNING and m.spec.preemptable]
    yield from sorted(here, key=lambda m: (not m.best_effort, m.job.group.priority, m.spec.priority, m.spec.uid))


def _fits_somewhere(session: Session, pod: PodInfo, idle: Mask) -> bool:
    allowed = session.node_fit(pod).feasible & idle
    return bool((allowed & fits(pod.request, session.table.idle)).any())


def _unspared(session: Session, chosen: list[PodInfo]) -> list[PodInfo]:
    """The pods without those that a plugin spares even for the most important of them."""
    if not chosen:
        return []
    top = max(chosen, key=lambda pod: (pod.job.group.priority, pod.spec.priority))
    for answer in session.functions(ExtensionPoint.SPARED):
        spared = {one.spec.uid for one in answer(top, chosen)}
        chosen = [one for one in chosen if one.spec.uid not in spared]
    return chosen
