"""Recorded scenarios in Kubernetes' own objects: read as a state and a policy, played for as many cycles as they say.

A pod finds its gang by annotation and namespace, as Volcano's do. What a scenario uses and the engine does not have is
named by `Unsupported` instead of being passed over, so that no answer rests on an ignored condition.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import claims, device_objects, registry, scenario_extras
from hekla.engine.cycle import cycle
from hekla.engine.decisions import Bind, Decisions
from hekla.engine.model import (
    ClusterState,
    HyperNode,
    Job,
    NetworkTopology,
    Node,
    Queue,
    SubGroupPolicy,
    Taint,
    Task,
    TaskStatus,
    Toleration,
)
from hekla.engine.pod_conditions import conditions, counted, label_selector
from hekla.engine.policy import SWITCHES, PluginOption, Policy
from hekla.engine.storage_objects import storage

Object = Mapping[str, Any]
"""A Kubernetes object, or a part of one, as JSON."""

MAX_CYCLES = 100
RECORDED_AT = datetime(2026, 8, 1, tzinfo=UTC).timestamp()
"""The time of every recorded cycle. All jobs were made in January 2024; the waiting times they name are long over then
or end in a hundred years, so that any instant between gives the same answers (`conformance/FORMAT` §3)."""
_GROUP = "scheduling.k8s.io/group-name"
_ROLE = "volcano.sh/task-spec"
_TASK_PRIORITY = "volcano.sh/task-priority"
_PREEMPTABLE = "volcano.sh/preemptable"
_OUTSIDERS = ""
_STATUS = {"Running": TaskStatus.RUNNING, "Succeeded": TaskStatus.SUCCEEDED, "Failed": TaskStatus.FAILED}
_CLAIMS_SWITCH = "predicate.DynamicResourceAllocationEnable"


class Unsupported(Exception):
    """The scenario rests on something that the engine does not have; the text names it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A state, a policy, and how many cycles to play."""

    state: ClusterState
    policy: Policy
    cycles: int


def read(document: Object) -> Scenario:
    """Raises Unsupported, or KeyError, TypeError and ValueError where the document is no scenario."""
    cluster = document["cluster"]
    _refuse_unknown(document)
    cycles = int(document.get("cycles", 1))
    if not 1 <= cycles <= MAX_CYCLES:
        raise ValueError(f"A scenario has 1 to {MAX_CYCLES} cycles.")
    state = ClusterState(
        nodes=tuple(_node(node) for node in cluster.get("nodes", ())),
        queues=tuple(_queue(queue) for queue in cluster.get("queues", ())),
        jobs=tuple(_jobs(cluster)),
        storage=storage(cluster),
        devices=device_objects.devices(cluster),
        hyper_nodes=tuple(_hyper_nodes(cluster)),
        quotas=scenario_extras.quotas(cluster),
        budgets=scenario_extras.budgets(cluster),
        shard=scenario_extras.shard(document.get("options") or {}),
    )
    return Scenario(state, _policy(document), cycles)


def play(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """The outcome of each cycle; what was bound runs in the next one, what was evicted is gone."""
    state = scenario.state
    for _ in range(scenario.cycles):
        decisions = cycle(state, scenario.policy, RECORDED_AT, is_detailed=True)
        for fault in decisions.faults:
            raise ValueError(f"{fault.name} failed at {fault.point}: {fault.error}")
        yield _outcome(state, decisions)
        state = _after(state, decisions)


def _outcome(state: ClusterState, decisions: Decisions) -> dict[str, Any]:
    names = {task.uid: f"{job.namespace}/{task.name}" for job in state.jobs for task in job.tasks}
    return {
        "binds": {names[bind.task]: bind.node for bind in decisions.binds},
        "evicted": sorted(names[eviction.task] for eviction in decisions.evictions),
        "pipelined": {names[task]: node for task, node in decisions.pipelined.items()},
        "podGroups": {job.uid: _group_outcome(job, decisions) for job in state.jobs if job.uid != _OUTSIDERS},
    }


def _group_outcome(job: Job, decisions: Decisions) -> dict[str, Any]:
    counts = decisions.counts.get(job.uid, {})
    outcome: dict[str, Any] = {"phase": str(decisions.phases.get(job.uid, job.phase)).capitalize()}
    if job.uid in decisions.phases_before_close:
        outcome["phaseBeforeClose"] = str(decisions.phases_before_close[job.uid]).capitalize()
    return outcome | {"taskStatus": {str(status).capitalize(): count for status, count in counts.items()}}


def _after(state: ClusterState, decisions: Decisions) -> ClusterState:
    bound = {bind.task: bind for bind in decisions.binds}
    gone = {eviction.task for eviction in decisions.evictions}
    jobs = tuple(
        replace(
            job,
            phase=decisions.phases.get(job.uid, job.phase),
            tasks=tuple(_moved(task, bound, decisions.nominated) for task in job.tasks if task.uid not in gone),
        )
        for job in state.jobs
    )
    return replace(state, jobs=jobs)


def _moved(task: Task, bound: Mapping[str, Bind], nominated: Mapping[str, str]) -> Task:
    if task.uid in bound:
        bind = bound[task.uid]
        annotations = {**task.annotations, **bind.annotations}
        return replace(task, status=TaskStatus.RUNNING, node=bind.node, nominated_node="", annotations=annotations)
    return replace(task, nominated_node=nominated[task.uid]) if task.uid in nominated else task


# Objects.


def _node(node: Object) -> Node:
    spec, metadata = node.get("spec", {}), node["metadata"]
    return Node(
        name=metadata["name"],
        allocatable=Resources.parse(node["status"].get("allocatable", {})),
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        taints=tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in spec.get("taints", ())),
        unschedulable=bool(spec.get("unschedulable", False)),
        images={name: float(i["sizeBytes"]) for i in node["status"].get("images", ()) for name in i.get("names", ())},
        usage=scenario_extras.usage(node["status"]),
        numa=scenario_extras.numa(node["status"]),
    )


def _queue(queue: Object) -> Queue:
    spec, metadata = queue.get("spec", {}), queue["metadata"]
    return Queue(
        name=metadata["name"],
        weight=int(spec.get("weight", 0)),
        capability=_amounts(spec.get("capability")),
        guarantee=_amounts(spec.get("guarantee", {}).get("resource")),
        deserved=_amounts(spec.get("deserved")),
        reclaimable=spec.get("reclaimable") is not False,
        priority=int(spec.get("priority", 0)),
        parent=spec.get("parent", ""),
        is_open=queue.get("status", {}).get("state", "Open") == "Open",
        created_at=_time(metadata),
        annotations=metadata.get("annotations", {}),
        affinity=scenario_extras.affinity(spec),
    )


def _jobs(cluster: Object) -> Iterator[Job]:
    """One job a pod group, and one without a queue for the pods that belong to none: they hold their places."""
    values = {c["metadata"]["name"]: int(c.get("value", 0)) for c in cluster.get("priorityClasses", ())}
    default = next((int(c.get("value", 0)) for c in cluster.get("priorityClasses", ()) if c.get("globalDefault")), 0)
    groups = {_key(group["metadata"]): group for group in cluster.get("podGroups", ())}
    tasks: dict[str, list[Task]] = {key: [] for key in (*groups, _OUTSIDERS)}
    for pod in cluster.get("pods", ()):
        metadata = pod["metadata"]
        key = f"{metadata['namespace']}/{metadata.get('annotations', {}).get(_GROUP, '')}"
        task = replace(_task(pod), claims=claims.of_pod(cluster, pod))
        tasks[key if key in groups else _OUTSIDERS].append(task)
    for key, group in groups.items():
        yield _job(key, group, values.get(group["spec"].get("priorityClassName", ""), default), tasks[key])
    if tasks[_OUTSIDERS]:
        yield Job(_OUTSIDERS, _OUTSIDERS, queue="", tasks=tuple(tasks[_OUTSIDERS]))


def _job(key: str, group: Object, priority: int, tasks: Sequence[Task]) -> Job:
    spec, metadata = group["spec"], group["metadata"]
    return Job(
        uid=key,
        name=metadata["name"],
        namespace=metadata["namespace"],
        queue=spec.get("queue", "default"),
        priority=priority,
        min_available=int(spec.get("minMember", 0)),
        min_task_member=spec.get("minTaskMember", {}),
        min_resources=_amounts(spec.get("minResources")),
        phase=GangPhase(group.get("status", {}).get("phase", "Pending").lower()),
        preemptable=_is_preemptable(metadata.get("annotations", {}), metadata.get("labels", {}), "false"),
        created_at=_time(metadata),
        tasks=tuple(tasks),
        annotations=metadata.get("annotations", {}),
        topology=_topology(spec),
        sub_groups=tuple(_sub_group(policy) for policy in spec.get("subGroupPolicy", ())),
    )


def _sub_group(policy: Object) -> SubGroupPolicy:
    return SubGroupPolicy(
        name=policy["name"],
        keys=tuple(policy.get("matchLabelKeys", ())),
        selector=label_selector(policy.get("labelSelector") or {}),
        size=int(policy.get("subGroupSize", 1)),
        at_least=int(policy.get("minSubGroups", 0)),
        topology=_topology(policy),
    )


def _topology(spec: Object) -> NetworkTopology | None:
    wish = spec.get("networkTopology")
    if wish is None:
        return None
    return NetworkTopology(
        is_hard=wish.get("mode", "hard") != "soft",
        highest_tier=wish.get("highestTierAllowed"),
        highest_tier_name=wish.get("highestTierName", ""),
    )


def _hyper_nodes(cluster: Object) -> Iterator[HyperNode]:
    """Those that the tiers name; the objects, where they are given, know what a tier is called."""
    names = {h["name"]: h["hyperNode"]["spec"].get("tierName", "") for h in cluster.get("hyperNodes", ())}
    nodes = cluster.get("hyperNodeRealNodes", {})
    for tier, members in cluster.get("hyperNodesByTier", {}).items():
        for name in members:
            yield HyperNode(name, int(tier), frozenset(nodes.get(name, ())), names.get(name, ""))


def _task(pod: Object) -> Task:
    spec, metadata = pod["spec"], pod["metadata"]
    annotations, labels = metadata.get("annotations", {}), metadata.get("labels", {})
    return Task(
        uid=metadata.get("uid") or _key(metadata),
        name=metadata["name"],
        role=annotations.get(_ROLE) or labels.get(_ROLE, ""),
        request=_amount_of(spec, "requests") + Resources.parse(spec.get("overhead", {})),
        limits=_amount_of(spec, "limits"),
        device_limits=_device_limits(spec),
        status=_status(pod),
        node=spec.get("nodeName", ""),
        priority=int(annotations.get(_TASK_PRIORITY, spec.get("priority", 1))),
        preemptable=_is_preemptable(annotations, labels),
        never_preempts=spec.get("preemptionPolicy") == "Never",
        priority_class=spec.get("priorityClassName", ""),
        nominated_node=pod.get("status", {}).get("nominatedNodeName", ""),
        created_at=_time(metadata),
        node_selector=spec.get("nodeSelector", {}),
        tolerations=tuple(
            Toleration(t.get("key", ""), t.get("operator", "Equal"), t.get("value", ""), t.get("effect", ""))
            for t in spec.get("tolerations", ())
        ),
        conditions=conditions(pod),
        namespace=metadata["namespace"],
        counted=counted(spec, Resources.parse(spec.get("overhead", {}))),
        labels=labels,
        annotations=annotations,
        scheduled_at=scenario_extras.scheduled_at(pod),
    )


def _is_preemptable(annotations: Object, labels: Object, default: str = "true") -> bool:
    return str(annotations.get(_PREEMPTABLE, labels.get(_PREEMPTABLE, default))).lower() in ("true", "1", "t")


def _status(pod: Object) -> TaskStatus:
    phase = pod.get("status", {}).get("phase", "Pending")
    if phase in ("Running", "Pending") and "deletionTimestamp" in pod["metadata"]:
        return TaskStatus.RELEASING
    if phase == "Pending":
        return TaskStatus.BOUND if pod["spec"].get("nodeName") else TaskStatus.PENDING
    return _STATUS.get(phase, TaskStatus.UNKNOWN)


def _amount_of(spec: Object, kind: str) -> Resources:
    """What the containers need together, or the most that one of the first steps needs."""
    together = sum((_amounts_in(container, kind) for container in spec.get("containers", ())), Resources())
    first = [_amounts_in(container, kind) for container in spec.get("initContainers", ())]
    names = {name for request in (together, *first) for name in request}
    return Resources({name: max(request.amount(name) for request in (together, *first)) for name in names})


def _amounts_in(container: Object, kind: str) -> Resources:
    return Resources.parse(container.get("resources", {}).get(kind, {}))


def _device_limits(spec: Object) -> tuple[Resources, ...]:
    limits = (Resources.parse(c.get("resources", {}).get("limits", {})) for c in spec.get("containers", ()))
    return tuple(one for one in limits if any(name.startswith("volcano.sh/") for name in one))


def _amounts(quantities: Object | None) -> Resources | None:
    return None if quantities is None else Resources.parse(quantities)


def _key(metadata: Object) -> str:
    return f"{metadata['namespace']}/{metadata['name']}"


def _time(metadata: Object) -> float:
    stamp = metadata.get("creationTimestamp")
    return datetime.fromisoformat(stamp).timestamp() if stamp else 0.0


# The policy, and what is not there.


def _policy(document: Object) -> Policy:
    absent = frozenset(document.get("unregisteredPlugins", ()))
    default_on = bool(document["conf"].get("enabledDefault", True))
    tiers = tuple(
        tuple(_option(plugin, default_on) for plugin in tier.get("plugins", ()) if plugin["name"] not in absent)
        for tier in document["conf"].get("tiers", ())
    )
    steps = {step["name"]: step.get("arguments", {}) for step in document["conf"].get("configurations") or ()}
    return Policy(tuple(document["actions"]), tiers, steps, compatibility="volcano")


def _option(plugin: Object, default_on: bool) -> PluginOption:
    switches = {name: bool(value) for name, value in plugin.items() if name in SWITCHES}
    return PluginOption(plugin["name"], switches, plugin.get("arguments") or {}, default_on)


def _refuse_unknown(document: Object) -> None:
    absent = frozenset(document.get("unregisteredPlugins", ()))
    options = [p for tier in document["conf"].get("tiers", ()) for p in tier.get("plugins", ())]
    missing = [f"action {name}" for name in document["actions"] if name not in registry.actions()]
    missing += [
        f"plugin {p['name']}" for p in options if p["name"] not in registry.plugins() and p["name"] not in absent
    ]
    if any(_option(p, default_on=True).truth(_CLAIMS_SWITCH, default=False) for p in options):
        missing += device_objects.not_understood(document["cluster"])
    if missing:
        raise Unsupported(", ".join(dict.fromkeys(missing)))
