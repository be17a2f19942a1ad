"""Measured usage: busy nodes get no more pods, idle ones score higher (`volcano-spec` §5.5).

The state contains the usage of nodes, as means of the last minutes. Values older than five minutes are ignored. Pods
that were placed after the measurement count with an estimate of their usage.

Arguments: `usage.weight` 5, `cpu.weight` 1, `memory.weight` 1, `thresholds: {cpu: 80, mem: 80}` in per cent, and under
`estimator`: `request_ratio` 0.7, `burst_ratio` 0, `risk_threshold` 0.6, `risk_factor` 1.2, `be_cpu` 250m, `be_mem`
200Mi (both for pods without requests).
"""

from collections.abc import Mapping

import numpy as np

from hekla.domain.resources import InvalidQuantity, parse_quantity
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import ALLOCATED, PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.node_fit import Refusal
from hekla.engine.policy import Argument, PluginOption, number
from hekla.engine.session import Session

_DEFAULT_WEIGHT, _DEFAULT_THRESHOLD = 5.0, 80.0
_BOTH = slice(0, 2)
_NAMES = ("cpu", "memory")
_UNDONE = frozenset({PodStatus.PENDING})

READS_CLOCK = True
NEEDS = (
    Need(Input.NODE_USAGE, Lack.NOTHING),
    Need(Input.PLACEMENT_TIMES, Lack.PART, gettext_noop("Pods placed since the measurement do not count.")),
    Need(
        Input.POD_LIMITS,
        Lack.PART,
        gettext_noop("The argument burst_ratio has no effect."),
        lambda option, _policy: number(option.inner("estimator").get("burst_ratio"), 0.0) > 0,
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse busy nodes, and score the others by their idle part."""
    limits = option.inner("thresholds")
    most = np.array([number(limits.get(name), _DEFAULT_THRESHOLD) for name in ("cpu", "mem")])
    weights = np.array([max(option.number(f"{name}.weight", 1.0), 0.0) for name in _NAMES])
    weight = option.number("usage.weight", _DEFAULT_WEIGHT)
    known = np.array(
        [node.usage is not None and node.usage.is_fresh(session.now) for node in session.table.nodes], dtype=bool
    )
    measured = _measured(session, known)
    load = _Load(session, option.inner("estimator"), measured, weights)

    def refuse(_pod: PodInfo, _table: NodeTable) -> list[Refusal]:
        over = measured > most
        return [
            Refusal(known & over[:, at], f"{name} usage is too high", is_lasting=False)
            for at, name in enumerate(_NAMES)
        ]

    def score(_pod: PodInfo, _table: NodeTable, rows: Rows) -> Vector:
        if not weights.sum():
            return np.zeros(len(known[rows]))
        idle = 1 - load.part(rows)
        return np.where(known[rows], idle @ weights / weights.sum() * 100 * weight, 0.0)

    session.on_change.append(load.update)
    session.register(ExtensionPoint.PREDICATE, option, refuse)
    session.register(ExtensionPoint.NODE_ORDER, option, score)


def _measured(session: Session, known: np.ndarray) -> Vector:
    """Per cent of cpu and of memory used, one row per node; zero without a fresh measurement."""
    usages = [node.usage if fresh else None for node, fresh in zip(session.table.nodes, known, strict=True)]
    return np.array([(u.cpu, u.memory) if u else (0.0, 0.0) for u in usages], dtype=float).reshape(len(usages), 2)


class _Load:
    """The load of each node: measured usage, and estimates for pods placed since."""

    def __init__(self, session: Session, arguments: Mapping[str, Argument], measured: Vector, weights: Vector) -> None:
        self._table, self._arguments, self._measured = session.table, arguments, measured / 100
        self._ratio, self._burst = self._number("request_ratio", 0.7), self._number("burst_ratio", 0.0)
        self._idle_pod: Vector = np.array(
            [self._amount("cpu", "be_cpu", "250m"), self._amount("memory", "be_mem", "200Mi")]
        )
        busy = self._measured @ weights >= self._number("risk_threshold", 0.6) * weights.sum()
        self._risk = np.where(busy, self._number("risk_factor", 1.2), 1.0)
        self._shadow = np.zeros_like(measured)
        for row, residents in enumerate(session.node_pods):
            usage = session.table.nodes[row].usage
            for pod in residents.values():
                if usage and pod.status in ALLOCATED and pod.spec.scheduled_at > usage.measured_at:
                    self._shadow[row] += self._estimate(pod, row)

    def part(self, rows: Rows) -> Vector:
        whole = self._table.allocatable[rows, _BOTH]
        shadow = np.divide(self._shadow[rows], whole, out=np.zeros_like(whole), where=whole > 0)
        part: Vector = np.clip(self._measured[rows] + shadow, 0.0, 1.0)
        return part

    def update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Count placements and their undoing. Evictions and their undoing do not count: those pods were measured."""
        if (sign > 0 and pod.status is not PodStatus.RUNNING) or pod.status in _UNDONE:
            self._shadow[row] += sign * self._estimate(pod, row)

    def _estimate(self, pod: PodInfo, row: int) -> Vector:
        if pod.best_effort:
            return self._idle_pod * float(self._risk[row])
        request = pod.request[_BOTH]
        limit = np.array([pod.spec.limits.amount(name) for name in _NAMES])
        guess = (request * self._ratio + np.maximum(limit - request, 0.0) * self._burst) * self._risk[row]
        capped: Vector = np.where(limit > 0, np.minimum(guess, limit), guess)
        return capped

    def _number(self, name: str, default: float) -> float:
        return number(self._arguments.get(name), default)

    def _amount(self, resource: str, name: str, default: str) -> float:
        try:
            return parse_quantity(resource, str(self._arguments.get(name, default)))
        except InvalidQuantity:
            return parse_quantity(resource, default)
