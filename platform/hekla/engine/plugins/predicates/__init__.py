"""Feasible nodes of a pod: Kubernetes' filters of the same names (`volcano-spec` §5.5).

Each filter except the first and the pod count can be switched off by `predicate.<name>Enable: false`. With
`compatibility: volcano`, the filter of claimed devices is off unless it is switched on
(`predicate.DynamicResourceAllocationEnable: true`). Free resources are not checked
here: they change with every placement, and the session checks them.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import NodeTable, Rows
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodSpec
from hekla.engine.node_fit import Refusal
from hekla.engine.plugins.predicates import (
    attach_limits,
    devices,
    node_filters,
    pod_affinity,
    pod_filters,
    spread,
    volumes,
)
from hekla.engine.policy import PluginOption, SchedulerPolicy
from hekla.engine.session import Session

Fixed = Callable[[Session, PodInfo], Iterable[Refusal]]
Changing = Callable[[Session, PodInfo], Callable[[Rows], Iterable[Refusal]] | None]
Wide = Callable[[Session, PodInfo], Callable[[], Iterable[Refusal]] | None]

_Filter = TypeVar("_Filter")
_ALWAYS = ""
CLAIMS_SWITCH = "predicate.DynamicResourceAllocationEnable"
_FIXED: tuple[tuple[str, Fixed], ...] = (
    (_ALWAYS, node_filters.unschedulable),
    ("NodeAffinity", node_filters.node_affinity),
    ("TaintToleration", node_filters.taints),
    ("VolumeZone", volumes.volume_zone),
    ("VolumeBinding", volumes.volume_binding),
)
_CHANGING: tuple[tuple[str, Changing], ...] = ((_ALWAYS, pod_filters.pod_count), ("NodePorts", pod_filters.host_ports))


def _checks_claims(option: PluginOption, policy: SchedulerPolicy) -> bool:
    return option.truth(CLAIMS_SWITCH, default=not policy.follows_volcano)


LOOKS_AT_NODES_ONLY = True
NEEDS = (
    Need(
        Input.NODE_LABELS,
        Lack.REFUSES_SOME,
        gettext_noop("Jobs with a node selector do not start."),
        lambda option, _policy: _is_any_on(option, "NodeAffinity"),
    ),
    Need(
        Input.NODE_TAINTS,
        Lack.PART,
        gettext_noop("Taints of nodes are not checked."),
        lambda option, _policy: _is_any_on(option, "TaintToleration"),
    ),
    Need(
        Input.TOLERATIONS,
        Lack.PART,
        gettext_noop("No job can tolerate a taint."),
        lambda option, _policy: _is_any_on(option, "TaintToleration"),
    ),
    Need(
        Input.AFFINITY,
        Lack.PART,
        gettext_noop("Jobs cannot require an affinity or an even spread."),
        lambda option, _policy: _is_any_on(option, "NodeAffinity", "PodAffinity", "PodTopologySpread"),
    ),
    Need(
        Input.HOST_PORTS,
        Lack.PART,
        gettext_noop("Ports of nodes are not checked."),
        lambda option, _policy: _is_any_on(option, "NodePorts"),
    ),
    Need(
        Input.STORAGE,
        Lack.PART,
        gettext_noop("Places of persistent volumes are not checked."),
        lambda option, _policy: _is_any_on(option, "VolumeBinding", "VolumeZone", "NodeVolumeLimits"),
    ),
    Need(
        Input.DEVICES,
        Lack.PART,
        gettext_noop("Jobs that claim devices do not start."),
        _checks_claims,
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse nodes, class by class."""

    def enabled(filters: Iterable[tuple[str, _Filter]]) -> list[_Filter]:
        return [f for name, f in filters if not name or _is_any_on(option, name)]

    limits: tuple[tuple[str, Changing], ...] = (("NodeVolumeLimits", attach_limits.AttachLimits(session).predicate),)
    fixed, changing = enabled(_FIXED), enabled((*_CHANGING, *limits))
    wide = enabled(_wide(session))
    if _checks_claims(option, session.policy):
        wide.append(devices.AssumedDevices(session).predicate)

    refusals: dict[Hashable, Sequence[Refusal]] = {}

    def static(pod: PodInfo, _table: NodeTable) -> Sequence[Refusal]:
        key = _what_fixed_filters_read(pod.spec)
        found = refusals.get(key)
        if found is None:
            found = refusals[key] = [refusal for predicate in fixed for refusal in predicate(session, pod)]
        return found

    def by_node(pod: PodInfo, _table: NodeTable) -> Callable[[Rows], Sequence[Refusal]] | None:
        functions = [function for predicate in changing if (function := predicate(session, pod)) is not None]
        return (lambda rows: [refusal for function in functions for refusal in function(rows)]) if functions else None

    def by_cluster(pod: PodInfo, _table: NodeTable) -> Callable[[], Sequence[Refusal]] | None:
        functions = [function for predicate in wide if (function := predicate(session, pod)) is not None]
        return (lambda: [refusal for function in functions for refusal in function()]) if functions else None

    session.register(ExtensionPoint.PREDICATE, option, static)
    session.register(ExtensionPoint.TRIES_EVICTIONS, option, lambda: True)
    session.register(ExtensionPoint.CHANGING_PREDICATE, option, by_node)
    session.register(ExtensionPoint.WIDE_PREDICATE, option, by_cluster)


def _what_fixed_filters_read(spec: PodSpec) -> Hashable:
    """Many classes of pods differ in other things only, so their refusals are computed once."""
    constraints, selector = spec.constraints, tuple(spec.node_selector.items())
    return selector, constraints.required_node_terms, spec.tolerations, constraints.volume_claims


def _is_any_on(option: PluginOption, *filters: str) -> bool:
    return any(option.truth(f"predicate.{name}Enable", default=True) for name in filters)


def _wide(session: Session) -> tuple[tuple[str, Wide], ...]:
    return (
        ("PodAffinity", pod_affinity.predicate),
        ("PodTopologySpread", spread.predicate),
        ("VolumeBinding", volumes.AssumedVolumes(session).predicate),
    )
