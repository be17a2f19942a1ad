"""A strategy per resource: fill nodes by one resource, spread over nodes by another (`volcano-spec` §5.6).

    resourceStrategyFitWeight: 10
    resources:
      nvidia.com/gpu: {type: MostAllocated, weight: 2}      a name may end with *; the longest match applies
      cpu: {type: LeastAllocated, weight: 1}                without `resources`: cpu and memory, LeastAllocated, 1

A pod may choose another strategy with the annotations `volcano.sh/resource-strategy-scoring-type`, a type, and
`volcano.sh/resource-strategy-scoring-weight`, JSON like `{"cpu": 2}`. Two more parts are off unless enabled:

    sra: {enable: true, resources: "a, b", weight: 1, resourceWeight: {a: 2}}
        a node scores lower, the more of these scarce resources it has
    proportional: {enable: true, resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 4, …memory: 8}}
        pods without gpus leave 4 cores and 8 GB free on a node for each idle gpu
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import NodeResources, NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import Refusal
from hekla.engine.policy import Argument, PluginOption, is_true, number
from hekla.engine.session import Session
from hekla.engine.state_scores import ResourceScorer

LEAST, MOST = "LeastAllocated", "MostAllocated"
_TYPE, _WEIGHT = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-scoring-weight"
_DEFAULT_WEIGHT = 10
_ONE = 1000.0
"""Devices count in thousandths."""
_GIGABYTE = 1e9
Maker = Callable[[PodInfo], ResourceScorer]
_NOTHING: Mapping[str, Argument] = {}


@dataclass(frozen=True, slots=True)
class _Strategy:
    """Weights over the dimensions, and which dimensions fill nodes instead of spreading."""

    weights: Vector
    fills: Vector


NEEDS = (Need(Input.POD_ANNOTATIONS, Lack.PART, gettext_noop("No pod can choose another strategy.")),)


def open_session(session: Session, option: PluginOption) -> None:
    """Score by strategy and by scarcity, and reserve cpu and memory for devices."""
    makers = [one for one in (_by_strategy(session, option), _by_scarcity(session, option)) if one is not None]

    def scorer(pod: PodInfo) -> ResourceScorer:
        scorers = [make(pod) for make in makers]
        return lambda node: sum((one(node) for one in scorers), np.zeros(len(node.used)))

    if makers:
        session.register(ExtensionPoint.USE_ORDER, option, scorer)
        session.register(ExtensionPoint.TASK_CLASS, option, _annotations)
    _keep_for_devices(session, option)


# By strategy.


def _by_strategy(session: Session, option: PluginOption) -> Maker | None:
    weight = option.whole("resourceStrategyFitWeight", _DEFAULT_WEIGHT)
    names = session.dimensions.names
    default = _strategy(names, _mapping(option.arguments.get("resources")))

    def scorer(pod: PodInfo) -> ResourceScorer:
        chosen = _changed(default, names, *_annotations(pod))
        wanted = (pod.request > 0) & (chosen.weights > 0)
        request, weights, fills = pod.request[wanted], chosen.weights[wanted], chosen.fills[wanted] > 0

        def score(node: NodeResources) -> Vector:
            whole = node.allocatable[:, wanted]
            after = node.used[:, wanted] + request
            counted = np.where(fills, after, whole - after)
            parts = np.divide(counted, whole, out=np.zeros_like(whole), where=(whole > 0) & (after <= whole))
            result: Vector = (parts * weights).sum(axis=1) / (weights.sum() or 1.0) * 100 * weight
            return result

        return score

    return scorer if weight else None


def _annotations(pod: PodInfo) -> tuple[str, str]:
    annotations = pod.spec.annotations
    return annotations.get(_TYPE, ""), annotations.get(_WEIGHT, "")


def _strategy(names: Sequence[str], resources: Mapping[str, Argument]) -> _Strategy:
    written = resources or {"cpu": {"type": LEAST, "weight": 1}, "memory": {"type": LEAST, "weight": 1}}
    found = [_mapping(written.get(_best_match(name, written))) for name in names]
    weights = [max(number(one.get("weight"), 1.0), 0.0) if one else 0.0 for one in found]
    return _Strategy(np.array(weights), np.array([float(one.get("type") == MOST) for one in found]))


def _best_match(name: str, written: Mapping[str, Argument]) -> str:
    """The name itself, or the longest pattern with a final * that matches."""
    if name in written:
        return name
    fitting = [pattern for pattern in written if pattern.endswith("*") and name.startswith(pattern[:-1])]
    return max(fitting, key=len, default="")


def _changed(default: _Strategy, names: Sequence[str], kind: str, weights: str) -> _Strategy:
    """The default strategy with the pod's annotations applied; invalid annotations are ignored."""
    fills, row = default.fills, default.weights
    if kind in (LEAST, MOST):
        fills = np.full_like(fills, float(kind == MOST))
    try:
        stated = json.loads(weights) if weights else {}
        row = np.array([max(float(stated.get(name, 0.0)), 0.0) for name in names]) if stated else row
    except (ValueError, TypeError, AttributeError):
        pass
    return _Strategy(row, fills)


# By scarcity.


def _by_scarcity(session: Session, option: PluginOption) -> Maker | None:
    arguments = _mapping(option.arguments.get("sra"))
    weight = number(arguments.get("weight"), 1.0)
    weights = _mapping(arguments.get("resourceWeight"))
    by_name = {name: number(weights.get(name), 1.0) for name in _list(arguments.get("resources"))}
    total = sum(by_name.values())
    if not is_true(arguments.get("enable"), default=False) or total <= 0 or not weight:
        return None
    row = np.array([by_name.get(name, 0.0) for name in session.dimensions.names])

    def score(node: NodeResources) -> Vector:
        owned = ((node.allocatable > 0) * row).sum(axis=1)
        result: Vector = (1 - owned / total) * 100 * weight
        return result

    return lambda _pod: score


# In proportion to devices.


def _keep_for_devices(session: Session, option: PluginOption) -> None:
    arguments = _mapping(option.arguments.get("proportional"))
    if not is_true(arguments.get("enable"), default=False):
        return
    rates = _mapping(arguments.get("resourceProportion"))
    names = session.dimensions.names
    reserves = []
    for name in _list(arguments.get("resources")):
        if name in names:
            each = np.zeros(len(names))
            each[names.index("cpu")] = number(rates.get(f"{name}.cpu"), 0.0)
            each[names.index("memory")] = number(rates.get(f"{name}.memory"), 0.0) * _GIGABYTE / _ONE
            reserves.append((names.index(name), each))

    def refuse(pod: PodInfo, table: NodeTable) -> Callable[[Rows], list[Refusal]] | None:
        requested = pod.request[:2] > 0
        if any(pod.request[at] > 0 for at, _ in reserves) or not requested.any():
            return None

        def without_reserve(rows: Rows) -> list[Refusal]:
            idle = table.idle[rows]
            left = idle - pod.request
            short = np.zeros(len(idle), dtype=bool)
            for at, each in reserves:
                reserve = np.maximum(idle[:, at : at + 1], 0.0) * each
                short |= ((left < reserve) & (reserve > 0))[:, :2][:, requested].any(axis=1)
            return [Refusal(short, "cpu and memory are kept for devices")]

        return without_reserve

    session.register(ExtensionPoint.CHANGING_PREDICATE, option, refuse)


def _mapping(value: object) -> Mapping[str, Argument]:
    return value if isinstance(value, Mapping) else _NOTHING


def _list(value: object) -> list[str]:
    return [name.strip() for name in str(value or "").split(",") if name.strip()]
