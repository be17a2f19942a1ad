"""What a run of the lab changes: the policy, the weights and quotas of queues, and the nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hekla.domain.errors import Invalid, Problem
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.domain.translation import gettext_noop, translate
from hekla.engine.model import NodeSpec, QueueSpec
from hekla.engine.policy import MAX_POLICY_BYTES, SchedulerPolicy, parse
from hekla.simulation.lab.workload import CapacityChange, Workload

MAX_QUEUES, MAX_NEW_NODES, MAX_REMOVED = 100, 5000, 5000
MAX_WEIGHT = 1_000_000
_AMOUNTS = ("capability", "deserved", "guarantee")
_FIELDS = frozenset({"policy", "queues", "nodes", "remove_nodes", "goal"})
MAX_GOAL_NODES = 500
"""So at most ten runs find the number of nodes."""
MAX_GOAL_SECONDS = 366 * 24 * 3600
_EXTENDER = "extender"
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueChange:
    """New settings of a queue. `amounts`: quotas by field, None removes one; `weight` None: as it is."""

    weight: int | None = None
    amounts: Mapping[str, Resources | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewNodes:
    """`count` more nodes like the node of this name."""

    like: str
    count: int


@dataclass(frozen=True, slots=True)
class CapacityGoal:
    """Find the smallest number of more nodes like this one, up to `most`, with which 90 % of the jobs wait at most
    `wait_p90` seconds.
    """

    like: str
    most: int
    wait_p90: int


@dataclass(frozen=True, slots=True)
class LabChange:
    """Everything that one run changes. `policy`: the text of another policy; empty: that in force. `goal`: more nodes,
    as many as are needed, beside `nodes`.
    """

    policy: str = ""
    queues: Mapping[str, QueueChange] = field(default_factory=dict)
    nodes: tuple[NewNodes, ...] = ()
    removed: frozenset[str] = frozenset()
    goal: CapacityGoal | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.policy or self.queues or self.nodes or self.removed or self.goal)


def read_change(data: object) -> LabChange:
    """Read a change from JSON:

        {"policy": "…", "queues": {"vision": {"weight": 3, "capability": {"cpu": "64"}, "deserved": null}},
         "nodes": [{"like": "node-1", "count": 8}], "remove_nodes": ["node-2"],
         "goal": {"like": "node-1", "most": 64, "wait_p90": 600}}

    Raises Invalid.
    """
    if not isinstance(data, Mapping):
        raise Invalid([Problem("change", translate("This is not a change."))])
    problems = [Problem(str(name)[:40], translate("Unknown field.")) for name in data if name not in _FIELDS]
    policy, queues = data.get("policy") or "", data.get("queues") or {}
    nodes, removed = data.get("nodes") or [], data.get("remove_nodes") or []
    if not isinstance(policy, str) or len(policy.encode()) > MAX_POLICY_BYTES:
        problems.append(Problem("policy", translate("The policy is too long.")))
    if not isinstance(queues, Mapping) or len(queues) > MAX_QUEUES:
        problems.append(Problem("queues", translate("At most {n} queues.", n=MAX_QUEUES)))
    if not isinstance(nodes, list) or len(nodes) > MAX_QUEUES:
        problems.append(Problem("nodes", translate("At most {n} kinds of nodes.", n=MAX_QUEUES)))
    if not isinstance(removed, list) or len(removed) > MAX_REMOVED or not all(isinstance(one, str) for one in removed):
        problems.append(Problem("remove_nodes", translate("At most {n} names of nodes.", n=MAX_REMOVED)))
    if problems:
        raise Invalid(problems)
    return LabChange(policy, _queues(queues), _nodes(nodes), frozenset(removed), _goal(data.get("goal")))


def _goal(data: object) -> CapacityGoal | None:
    if not data:
        return None
    if not isinstance(data, Mapping) or data.keys() != {"like", "most", "wait_p90"} or not _is_goal(data):
        sentence = gettext_noop("A goal names a node (like), at most {n} more of them (most), and seconds (wait_p90).")
        raise Invalid([Problem("goal", translate(sentence, n=MAX_GOAL_NODES))])
    return CapacityGoal(data["like"], data["most"], data["wait_p90"])


def _is_goal(data: Json) -> bool:
    most, wait = data["most"], data["wait_p90"]
    if not isinstance(data["like"], str) or type(most) is not int or type(wait) is not int:
        return False
    return 1 <= most <= MAX_GOAL_NODES and 0 <= wait <= MAX_GOAL_SECONDS


def _queues(data: Json) -> dict[str, QueueChange]:
    found, problems = {}, []
    for name, one in data.items():
        try:
            found[str(name)] = _queue(one)
        except (TypeError, ValueError, AttributeError) as error:
            message = (
                str(error) if isinstance(error, InvalidQuantity) else translate("This is not a change of a queue.")
            )
            problems.append(Problem(f"queues.{str(name)[:63]}", message))
    if problems:
        raise Invalid(problems)
    return found


def _queue(data: Json) -> QueueChange:
    if data.keys() - {"weight", *_AMOUNTS}:
        raise ValueError
    weight = data.get("weight")
    if weight is not None and (type(weight) is not int or not 1 <= weight <= MAX_WEIGHT):
        raise ValueError
    return QueueChange(weight, {name: _amounts(name, data[name]) for name in _AMOUNTS if name in data})


def _amounts(name: str, data: Json | None) -> Resources | None:
    if not data:
        return None
    read = Resources.parse_limits if name == "capability" else Resources.parse
    return read({str(key): str(one) for key, one in data.items()})


def _nodes(data: Sequence[Any]) -> tuple[NewNodes, ...]:
    found = []
    for one in data:
        is_right = isinstance(one, Mapping) and one.keys() == {"like", "count"} and isinstance(one["like"], str)
        if not is_right or type(one["count"]) is not int or not 1 <= one["count"] <= MAX_NEW_NODES:
            raise Invalid([Problem("nodes", translate("Each entry names a node (like) and how many more (count)."))])
        found.append(NewNodes(one["like"], one["count"]))
    if sum(one.count for one in found) > MAX_NEW_NODES:
        raise Invalid([Problem("nodes", translate("At most {n} more nodes.", n=MAX_NEW_NODES))])
    return tuple(found)


def change_as_json(change: LabChange) -> dict[str, Any]:
    """The change as `read_change` reads it."""
    queues = {
        name: ({} if one.weight is None else {"weight": one.weight})
        | {key: None if amounts is None else amounts.quantities() for key, amounts in one.amounts.items()}
        for name, one in change.queues.items()
    }
    return {
        "policy": change.policy,
        "queues": queues,
        "nodes": [{"like": one.like, "count": one.count} for one in change.nodes],
        "remove_nodes": sorted(change.removed),
        **({"goal": asdict(change.goal)} if change.goal else {}),
    }


class UnknownNames(Invalid):
    """The change names queues or nodes that the workload does not have."""

    def __init__(self, problems: Sequence[Problem], queues: Sequence[str], nodes: Sequence[str]) -> None:
        super().__init__(problems)
        self.queues, self.nodes = queues, nodes


def changed(workload: Workload, change: LabChange) -> Workload:
    """The workload in the changed cluster. Raises UnknownNames."""
    known = {node.name: node for node in workload.state.nodes} | {
        one.name: one.node for one in workload.changes if one.node is not None
    }
    existing = {queue.name for queue in workload.state.queues}
    missing = [name for name in change.queues if name not in existing]
    named = [*(one.like for one in change.nodes), *sorted(change.removed)]
    named += [change.goal.like] if change.goal else []
    names = [name for name in named if name not in known]
    if missing or names:
        problems = [Problem("queues", translate("This cluster has no queue {name}.", name=name)) for name in missing]
        problems += [Problem("nodes", translate("This cluster has no node {name}.", name=name)) for name in names]
        raise UnknownNames(problems, missing, names)
    nodes = [node for node in workload.state.nodes if node.name not in change.removed]
    for one in change.nodes:  # several may be like the same node, and no two nodes have one name
        made = _like(known[one.like], one.count, known)
        known |= {node.name: node for node in made}
        nodes += made
    queues = tuple(_changed_queue(queue, change.queues.get(queue.name)) for queue in workload.state.queues)
    state = replace(workload.state, nodes=tuple(nodes), queues=queues)
    later = tuple(
        one._replace(queue=_changed_queue(one.queue, change.queues.get(one.queue.name))) for one in workload.queues
    )
    return replace(workload, state=state, changes=_without(workload.changes, change.removed), queues=later)


def _like(node: NodeSpec, count: int, known: Mapping[str, NodeSpec]) -> list[NodeSpec]:
    names = (f"{node.name}-lab-{at}" for at in range(1, count + len(known) + 1))
    free = [name for name, _at in zip((one for one in names if one not in known), range(count), strict=False)]
    host = "kubernetes.io/hostname"
    labels = [{**node.labels, host: name} if host in node.labels else node.labels for name in free]
    return [
        replace(node, name=name, labels=own, unschedulable=False, is_ready=True)
        for name, own in zip(free, labels, strict=True)
    ]


def _without(changes: Sequence[CapacityChange], removed: frozenset[str]) -> tuple[CapacityChange, ...]:
    return tuple(one for one in changes if one.name not in removed)


def _changed_queue(queue: QueueSpec, change: QueueChange | None) -> QueueSpec:
    if change is None:
        return queue
    amounts = {name: getattr(queue, name) for name in _AMOUNTS} | dict(change.amounts)
    return replace(
        queue,
        weight=queue.weight if change.weight is None else change.weight,
        capability=amounts["capability"],
        deserved=amounts["deserved"],
        guarantee=amounts["guarantee"],
    )


def read_policy(text: str) -> SchedulerPolicy:
    """The policy for a run: without extenders, which a simulation does not call. Raises Invalid."""
    found = parse(text)
    tiers = (tuple(option for option in tier if option.name != _EXTENDER) for tier in found.tiers)
    return replace(found, tiers=tuple(tiers))


def has_extenders(text: str) -> bool:
    """Whether the policy lets extenders decide, which the lab leaves out. Raises Invalid."""
    return any(option.name == _EXTENDER for tier in parse(text).tiers for option in tier)
