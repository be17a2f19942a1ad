"""Node groups of queues, by the node label `volcano.sh/nodegroup-name` (`volcano-spec` §5.5).

Arguments: `strict` (true; if false, a queue without affinity may use nodes without a group), `enablePreferredOrder`
(false; if true, the first preferred group scores highest). With the switch `enableHierarchy`, a queue without affinity
inherits that of its nearest ancestor that has one. A queue's annotation `volcano.sh/nodegroup-resource-limits` limits
what it may hold in each group: `{"group": {"cpu": "4"}}`.

In Volcano, a preferred anti-affinity allows a group even against a required anti-affinity, and a queue with only
anti-affinity may use no group. Here a required anti-affinity always excludes, and such a queue may use all other
groups.
"""

import json
from collections.abc import Callable, Sequence

import numpy as np

from hekla.domain.queue_settings import GROUP_LABEL, GROUP_LIMITS
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import EPSILON, Mask, NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need, is_on
from hekla.engine.job_info import ALLOCATED, PodInfo
from hekla.engine.model import NodeGroupAffinity, QueueSpec
from hekla.engine.node_fit import Refusal
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session, limit_vector

_REQUIRED, _PREFERRED, _AVOIDED = 100.0, 50.0, -1.0

NEEDS = (
    Need(
        Input.QUEUE_NODE_GROUPS,
        Lack.REFUSES_ALL,
        gettext_noop("No queue may use any node, so no job starts."),
        is_on("strict", default=True),
    ),
    Need(
        Input.QUEUE_NODE_GROUPS,
        Lack.FALLBACK,
        gettext_noop("All queues use only nodes without a group."),
        lambda option, _policy: not option.truth("strict", default=True),
    ),
    Need(Input.NODE_LABELS, Lack.REFUSES_ALL, gettext_noop("No node has a group, so no job starts.")),
    Need(Input.QUEUE_ANNOTATIONS, Lack.PART, gettext_noop("Queues have no limits in node groups.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse and score nodes by their group, for each queue."""
    groups = _Groups(session.table)
    inherits = option.switches.get("enableHierarchy", False)
    is_strict = option.truth("strict", default=True)
    in_order = option.truth("enablePreferredOrder", default=False)
    follows = session.policy.follows_volcano

    def affinity(pod: PodInfo) -> NodeGroupAffinity | None:
        return _affinity(session, session.queues[pod.job.group.queue], inherits=inherits)

    def refuse(pod: PodInfo, _table: NodeTable) -> list[Refusal]:
        rule = affinity(pod)
        if rule is None:
            refusals = [Refusal(~groups.none, "node group affinity not specified")]
            return [*refusals, Refusal(groups.none, "node group label not found")] if is_strict else refusals
        outside = groups.mask(lambda group: not _may_use(rule, group, follows=follows)) & ~groups.none
        reason = "node does not satisfy the node group affinity"
        return [Refusal(groups.none, "node group label not found"), Refusal(outside, reason)]

    def score(pod: PodInfo, _table: NodeTable, rows: Rows) -> Vector:
        rule = affinity(pod)
        if rule is None:
            return np.zeros(len(groups.of[rows]))
        return groups.values(lambda group: _score(rule, group, in_order=in_order))[rows]

    session.register(ExtensionPoint.TASK_CLASS, option, lambda pod: pod.job.group.queue)
    session.register(ExtensionPoint.PREDICATE, option, refuse)
    session.register(ExtensionPoint.NODE_ORDER, option, score)
    _open_limits(session, option, groups)


class _Groups:
    """The groups of all rows, as numbers; a row without one has the number of the empty name."""

    def __init__(self, table: NodeTable) -> None:
        names = [node.labels.get(GROUP_LABEL, "") for node in table.nodes]
        self.names = sorted({"", *names})
        self.number = {name: at for at, name in enumerate(self.names)}
        self.of = np.array([self.number[name] for name in names], dtype=np.intp)
        self.none: Mask = self.of == self.number[""]

    def values(self, value: Callable[[str], float]) -> Vector:
        """A value per row, by its group."""
        return np.array([value(name) for name in self.names])[self.of]

    def mask(self, holds: Callable[[str], bool]) -> Mask:
        """The rows whose group meets a condition."""
        return np.array([holds(name) for name in self.names])[self.of]


def _affinity(session: Session, queue: QueueSpec, *, inherits: bool) -> NodeGroupAffinity | None:
    visited: set[str] = set()
    while queue.affinity is None and inherits and queue.parent in session.queues and queue.parent not in visited:
        visited.add(queue.parent)
        queue = session.queues[queue.parent]
    return queue.affinity


def _may_use(rule: NodeGroupAffinity, group: str, *, follows: bool) -> bool:
    is_wanted = group in rule.required or group in rule.preferred
    if follows:
        return group in rule.anti_preferred or (is_wanted and group not in rule.anti_required)
    is_open = not rule.required and not rule.preferred
    return group not in rule.anti_required and (is_wanted or is_open or group in rule.anti_preferred)


def _score(rule: NodeGroupAffinity, group: str, *, in_order: bool) -> float:
    score = _REQUIRED if group in rule.required else 0.0
    if group in rule.preferred:
        count = len(rule.preferred)
        score += _PREFERRED * ((count - rule.preferred.index(group)) / count if in_order else 1)
    return score + (_AVOIDED if group in rule.anti_preferred else 0.0)


# Limits of a queue in a group.


def _open_limits(session: Session, option: PluginOption, groups: _Groups) -> None:
    limits = {
        name: _limits(session, queue, groups)
        for name, queue in session.queues.items()
        if GROUP_LIMITS in queue.annotations
    }
    held = {name: np.zeros((len(groups.names), len(session.total_resources))) for name in limits}
    if not limits:
        return
    for job in session.jobs.values():
        for pod in job.pods:
            if job.group.queue in held and pod.status in ALLOCATED and pod.node in session.table.row_of:
                held[job.group.queue][groups.of[session.table.row_of[pod.node]]] += pod.request

    def update(pod: PodInfo, row: int, sign: int) -> None:
        if pod.job.group.queue in held:
            held[pod.job.group.queue][groups.of[row]] += sign * pod.request

    def refuse(pod: PodInfo, table: NodeTable) -> Callable[[], Sequence[Refusal]] | None:
        name = pod.job.group.queue
        if name not in limits:
            return None
        bounds = limits[name]
        if bounds is None:
            everywhere = np.ones(len(table), dtype=bool)
            return lambda: [Refusal(everywhere, "node group resource limit annotation invalid")]

        def over() -> Sequence[Refusal]:
            is_over: Mask = np.any(held[name] + pod.request >= bounds + EPSILON, axis=1)
            return [Refusal(is_over[groups.of], "node group resource limit exceeded")]

        return over

    session.on_change.append(update)
    session.register(ExtensionPoint.WIDE_PREDICATE, option, refuse)


def _limits(session: Session, queue: QueueSpec, groups: _Groups) -> Vector | None:
    """One row of limits per group, infinite where not set. None: the annotation is invalid."""
    bounds = np.full((len(groups.names), len(session.total_resources)), np.inf)
    try:
        written = {
            name: Resources.parse(amounts) for name, amounts in json.loads(queue.annotations[GROUP_LIMITS]).items()
        }
    except (ValueError, TypeError, AttributeError, InvalidQuantity):
        return None
    for name, amounts in written.items():
        if name in groups.number:
            bounds[groups.number[name]] = limit_vector(session, amounts)
    return bounds
