"""Recorded scenarios of Kubernetes objects: reads them as state and policy, and plays some cycles.

A pod belongs to its pod group by annotation and namespace, as in Volcano. Unsupported fields raise `Unsupported`, so no
result depends on an ignored field.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine import device_objects, registry, scenario_objects
from hekla.engine.cycle import cycle
from hekla.engine.decisions import Bind, Decisions
from hekla.engine.model import (
    ClusterState,
    HyperNode,
    NetworkTopology,
    NodeSpec,
    PodGroupSpec,
    PodSpec,
    PodStatus,
    QueueSpec,
    SubGroupPolicy,
)
from hekla.engine.pod_objects import label_selector, nonzero_request, pod_constraints, pod_tolerations
from hekla.engine.policy import SWITCHES, PluginOption, SchedulerPolicy
from hekla.engine.storage_objects import storage

Object = Mapping[str, Any]
"""A Kubernetes object, or a part of one, as JSON."""

MAX_CYCLES = 100
RECORDED_AT = datetime(2026, 8, 1, tzinfo=UTC).timestamp()
"""The time of every recorded cycle.

Jobs were created in January 2024, and their waiting times are over by then or end in a hundred years, so the exact
instant does not matter (`conformance/FORMAT` §3).
"""
_GROUP = "scheduling.k8s.io/group-name"
_ROLE = "volcano.sh/task-spec"
_TASK_PRIORITY = "volcano.sh/task-priority"
_PREEMPTABLE = "volcano.sh/preemptable"
_UNGROUPED = ""
_STATUS = {"Running": PodStatus.RUNNING, "Succeeded": PodStatus.SUCCEEDED, "Failed": PodStatus.FAILED}
_CLAIMS_SWITCH = "predicate.DynamicResourceAllocationEnable"


class Unsupported(Exception):
    """The scenario uses fields, plugins or actions that the engine does not support."""


@dataclass(frozen=True, slots=True)
class ReplayScenario:
    """State, policy, and the number of cycles to play."""

    state: ClusterState
    policy: SchedulerPolicy
    cycles: int


def read(document: Object) -> ReplayScenario:
    """Read a scenario. Raises Unsupported; KeyError, TypeError or ValueError if the document is invalid."""
    cluster = document["cluster"]
    _refuse_unsupported(document)
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
        quotas=scenario_objects.quotas(cluster),
        budgets=scenario_objects.budgets(cluster),
        shard=scenario_objects.shard(document.get("options") or {}),
    )
    return ReplayScenario(state, _policy(document), cycles)


def play(scenario: ReplayScenario) -> Iterator[dict[str, Any]]:
    """The outcome of each cycle. Bound pods run in the next one; evicted pods are gone."""
    state = scenario.state
    for _ in range(scenario.cycles):
        decisions = cycle(state, scenario.policy, RECORDED_AT, is_detailed=True)
        for fault in decisions.faults:
            raise ValueError(f"{fault.name} failed at {fault.point}: {fault.error}")
        yield _outcome(state, decisions)
        state = _after(state, decisions)


def _outcome(state: ClusterState, decisions: Decisions) -> dict[str, Any]:
    names = {pod_spec.uid: f"{job.namespace}/{pod_spec.name}" for job in state.jobs for pod_spec in job.pods}
    return {
        "binds": {names[bind.pod]: bind.node for bind in decisions.binds},
        "evicted": sorted(names[eviction.pod] for eviction in decisions.evictions),
        "pipelined": {names[pod_spec]: node for pod_spec, node in decisions.pipelined.items()},
        "podGroups": {job.uid: _group_outcome(job, decisions) for job in state.jobs if job.uid != _UNGROUPED},
    }


def _group_outcome(job: PodGroupSpec, decisions: Decisions) -> dict[str, Any]:
    counts = decisions.counts.get(job.uid, {})
    outcome: dict[str, Any] = {"phase": str(decisions.phases.get(job.uid, job.phase)).capitalize()}
    if job.uid in decisions.phases_before_close:
        outcome["phaseBeforeClose"] = str(decisions.phases_before_close[job.uid]).capitalize()
    return outcome | {"taskStatus": {str(status).capitalize(): count for status, count in counts.items()}}


def _after(state: ClusterState, decisions: Decisions) -> ClusterState:
    bound = {bind.pod: bind for bind in decisions.binds}
    gone = {eviction.pod for eviction in decisions.evictions}
    jobs = tuple(
        replace(
            job,
            phase=decisions.phases.get(job.uid, job.phase),
            pods=tuple(
                _after_decision(pod_spec, bound, decisions.nominated)
                for pod_spec in job.pods
                if pod_spec.uid not in gone
            ),
        )
        for job in state.jobs
    )
    return replace(state, jobs=jobs)


def _after_decision(pod_spec: PodSpec, bound: Mapping[str, Bind], nominated: Mapping[str, str]) -> PodSpec:
    if pod_spec.uid in bound:
        bind = bound[pod_spec.uid]
        annotations = {**pod_spec.annotations, **bind.annotations}
        return replace(pod_spec, status=PodStatus.RUNNING, node=bind.node, nominated_node="", annotations=annotations)
    return replace(pod_spec, nominated_node=nominated[pod_spec.uid]) if pod_spec.uid in nominated else pod_spec


# Objects.


def _node(node: Object) -> NodeSpec:
    spec, metadata = node.get("spec", {}), node["metadata"]
    return NodeSpec(
        name=metadata["name"],
        allocatable=Resources.parse(node["status"].get("allocatable", {})),
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        taints=tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in spec.get("taints", ())),
        unschedulable=bool(spec.get("unschedulable", False)),
        images={name: float(i["sizeBytes"]) for i in node["status"].get("images", ()) for name in i.get("names", ())},
        usage=scenario_objects.usage(node["status"]),
        numa=scenario_objects.numa(node["status"]),
    )


def _queue(queue: Object) -> QueueSpec:
    spec, metadata = queue.get("spec", {}), queue["metadata"]
    return QueueSpec(
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
        affinity=scenario_objects.affinity(spec),
    )


def _jobs(cluster: Object) -> Iterator[PodGroupSpec]:
    """One job per pod group, and one without a queue for pods without a group, which only hold their resources."""
    values = {c["metadata"]["name"]: int(c.get("value", 0)) for c in cluster.get("priorityClasses", ())}
    default = next((int(c.get("value", 0)) for c in cluster.get("priorityClasses", ()) if c.get("globalDefault")), 0)
    groups = {_key(group["metadata"]): group for group in cluster.get("podGroups", ())}
    tasks: dict[str, list[PodSpec]] = {key: [] for key in (*groups, _UNGROUPED)}
    for pod in cluster.get("pods", ()):
        metadata = pod["metadata"]
        key = f"{metadata['namespace']}/{metadata.get('annotations', {}).get(_GROUP, '')}"
        pod_spec = replace(_task(pod), claimed_devices=device_objects.claimed_devices(cluster, pod))
        tasks[key if key in groups else _UNGROUPED].append(pod_spec)
    for key, group in groups.items():
        yield _job(key, group, values.get(group["spec"].get("priorityClassName", ""), default), tasks[key])
    if tasks[_UNGROUPED]:
        yield PodGroupSpec(_UNGROUPED, _UNGROUPED, queue="", pods=tuple(tasks[_UNGROUPED]))


def _job(key: str, group: Object, priority: int, tasks: Sequence[PodSpec]) -> PodGroupSpec:
    spec, metadata = group["spec"], group["metadata"]
    return PodGroupSpec(
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
        pods=tuple(tasks),
        annotations=metadata.get("annotations", {}),
        topology=_topology(spec),
        sub_groups=tuple(map(sub_group_policy, spec.get("subGroupPolicy", ()))),
    )


def sub_group_policy(policy: Object) -> SubGroupPolicy:
    """A sub-group policy of a PodGroup."""
    return SubGroupPolicy(
        name=policy["name"],
        keys=tuple(policy.get("matchLabelKeys", ())),
        selector=label_selector(policy.get("labelSelector") or {}),
        size=int(policy.get("subGroupSize", 1)),
        at_least=int(policy.get("minSubGroups", 0)),
        topology=_topology(policy),
    )


def _topology(spec: Object) -> NetworkTopology | None:
    topology = spec.get("networkTopology")
    if topology is None:
        return None
    return NetworkTopology(
        is_hard=topology.get("mode", "hard") != "soft",
        highest_tier=topology.get("highestTierAllowed"),
        highest_tier_name=topology.get("highestTierName", ""),
    )


def _hyper_nodes(cluster: Object) -> Iterator[HyperNode]:
    """The hypernodes by tier; names of tiers come from the objects, if given."""
    names = {h["name"]: h["hyperNode"]["spec"].get("tierName", "") for h in cluster.get("hyperNodes", ())}
    nodes = cluster.get("hyperNodeRealNodes", {})
    for tier, pods in cluster.get("hyperNodesByTier", {}).items():
        for name in pods:
            yield HyperNode(name, int(tier), frozenset(nodes.get(name, ())), names.get(name, ""))


def _task(pod: Object) -> PodSpec:
    spec, metadata = pod["spec"], pod["metadata"]
    annotations, labels = metadata.get("annotations", {}), metadata.get("labels", {})
    return PodSpec(
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
        tolerations=pod_tolerations(spec),
        constraints=pod_constraints(pod),
        namespace=metadata["namespace"],
        nonzero_request=nonzero_request(spec, Resources.parse(spec.get("overhead", {}))),
        labels=labels,
        annotations=annotations,
        scheduled_at=scenario_objects.scheduled_at(pod),
    )


def _is_preemptable(annotations: Object, labels: Object, default: str = "true") -> bool:
    return str(annotations.get(_PREEMPTABLE, labels.get(_PREEMPTABLE, default))).lower() in ("true", "1", "t")


def _status(pod: Object) -> PodStatus:
    phase = pod.get("status", {}).get("phase", "Pending")
    if phase in ("Running", "Pending") and "deletionTimestamp" in pod["metadata"]:
        return PodStatus.RELEASING
    if phase == "Pending":
        return PodStatus.BOUND if pod["spec"].get("nodeName") else PodStatus.PENDING
    return _STATUS.get(phase, PodStatus.UNKNOWN)


def _amount_of(spec: Object, kind: str) -> Resources:
    """The sum over containers, or the maximum of an init container if that is more."""
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


# The policy, and unsupported fields.


def _policy(document: Object) -> SchedulerPolicy:
    absent = frozenset(document.get("unregisteredPlugins", ()))
    default_on = bool(document["conf"].get("enabledDefault", True))
    tiers = tuple(
        tuple(_option(plugin, default_on) for plugin in tier.get("plugins", ()) if plugin["name"] not in absent)
        for tier in document["conf"].get("tiers", ())
    )
    steps = {step["name"]: step.get("arguments", {}) for step in document["conf"].get("configurations") or ()}
    return SchedulerPolicy(tuple(document["actions"]), tiers, steps, compatibility="volcano")


def _option(plugin: Object, default_on: bool) -> PluginOption:
    switches = {name: bool(value) for name, value in plugin.items() if name in SWITCHES}
    return PluginOption(plugin["name"], switches, plugin.get("arguments") or {}, default_on)


def _refuse_unsupported(document: Object) -> None:
    absent = frozenset(document.get("unregisteredPlugins", ()))
    options = [p for tier in document["conf"].get("tiers", ()) for p in tier.get("plugins", ())]
    missing = [f"action {name}" for name in document["actions"] if name not in registry.actions()]
    missing += [
        f"plugin {p['name']}" for p in options if p["name"] not in registry.plugins() and p["name"] not in absent
    ]
    if any(_option(p, default_on=True).truth(_CLAIMS_SWITCH, default=False) for p in options):
        missing += device_objects.unsupported_fields(document["cluster"])
    if missing:
        raise Unsupported(", ".join(dict.fromkeys(missing)))
