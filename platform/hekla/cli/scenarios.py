"""Recorded scenarios of Volcano (one JSON object each) as states and policies of the engine, and answers back.

A scenario holds Kubernetes-style objects, a scheduler configuration and a number of cycles. Between two cycles bound
pods start to run, evicted pods are gone, and phases are kept. What a scenario needs and the engine has not is named by
`missing`, and such a scenario is left alone rather than answered by half.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from hekla.cli.conditions import node_affinity, node_selector, tolerations
from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle, registry
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, Job, Node, Queue, Taint, Task, TaskStatus
from hekla.engine.policy import Policy, parse

Object = Mapping[str, Any]

_GROUP = "scheduling.k8s.io/group-name"
_ROLE = "volcano.sh/task-spec"
_UNKNOWN_TO_THE_ENGINE = {
    "resourceQuotas": "quotas of namespaces",
    "persistentVolumeClaims": "volumes",
    "resourceClaims": "resource claims",
    "hyperNodes": "network topology",
}
_POD_CONDITIONS = {
    "podAffinity": "affinity between pods",
    "podAntiAffinity": "affinity between pods",
    "topologySpreadConstraints": "topology spread",
}


def missing(case: Object) -> list[str]:
    """What this scenario needs and the engine has not, in words."""
    options = [plugin for tier in case["conf"]["tiers"] for plugin in tier["plugins"]]
    left_out = set(case.get("unregisteredPlugins", ()))
    found = {f"action {name}" for name in case["actions"] if name not in registry.actions()}
    found |= {f"plugin {p['name']}" for p in options if p["name"] not in registry.plugins() and p["name"] not in left_out}
    found |= {"hierarchy of queues" for p in options if p.get("enableHierarchy")}
    found |= {word for key, word in _UNKNOWN_TO_THE_ENGINE.items() if case["cluster"].get(key)}
    found |= {f"option {name}" for name in case.get("options") or {}}
    for pod in case["cluster"].get("pods", ()):
        found |= set(_missing_for(pod["spec"]))
    return sorted(found)


def _missing_for(spec: Object) -> Iterable[str]:
    wishes = {**spec, **spec.get("affinity", {})}
    yield from (word for key, word in _POD_CONDITIONS.items() if wishes.get(key))
    if any(port.get("hostPort") for container in spec.get("containers", ()) for port in container.get("ports", ())):
        yield "host ports"


def answer(case: Object) -> dict[str, Any]:
    """Run all cycles of a scenario."""
    policy, state = policy_of(case), state_of(case["cluster"])
    cycles = []
    for _ in range(case["cycles"]):
        decisions = cycle(state, policy, 0.0)
        cycles.append(_outcome(state, decisions))
        state = _advance(state, decisions)
    return {"id": case["id"], "cycles": cycles}


def policy_of(case: Object) -> Policy:
    """The scenario's configuration. Where a recording says so, a switch that is absent is off."""
    left_out = set(case.get("unregisteredPlugins", ()))
    conf = case["conf"]
    document = {
        "actions": ", ".join(case["actions"]),
        "tiers": [{"plugins": [p for p in tier["plugins"] if p["name"] not in left_out]} for tier in conf["tiers"]],
        "configurations": conf.get("configurations", []),
    }
    policy = parse(json.dumps(document))
    default_on = bool(conf["enabledDefault"])
    return replace(
        policy, tiers=tuple(tuple(replace(option, default_on=default_on) for option in tier) for tier in policy.tiers)
    )


def state_of(cluster: Object) -> ClusterState:
    """The objects of a scenario as the engine sees them."""
    priorities = {c["metadata"]["name"]: c.get("value", 0) for c in cluster.get("priorityClasses", ())}
    fallback = max((c.get("value", 0) for c in cluster.get("priorityClasses", ()) if c.get("globalDefault")), default=0)
    tasks: dict[str, list[Task]] = defaultdict(list)
    for pod in cluster.get("pods", ()):
        meta = pod["metadata"]
        tasks[f"{meta.get('namespace', '')}/{meta.get('annotations', {}).get(_GROUP, '')}"].append(_task(pod))
    jobs = []
    for group in cluster.get("podGroups", ()):
        uid = f"{group['metadata'].get('namespace', '')}/{group['metadata']['name']}"
        priority = priorities.get(group["spec"].get("priorityClassName", ""), fallback)
        jobs.append(_job(group, uid, priority, tuple(tasks.pop(uid, ()))))
    return ClusterState(
        nodes=tuple(_node(node) for node in cluster.get("nodes", ())),
        queues=tuple(_queue(queue) for queue in cluster.get("queues", ())),
        jobs=tuple(jobs),
    )


def _node(node: Object) -> Node:
    meta, spec = node["metadata"], node.get("spec", {})
    return Node(
        name=meta["name"],
        allocatable=Resources.parse(node["status"].get("allocatable", {})),
        labels=meta.get("labels", {}),
        annotations=meta.get("annotations", {}),
        taints=tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in spec.get("taints", ())),
        unschedulable=spec.get("unschedulable", False),
    )


def _queue(queue: Object) -> Queue:
    meta, spec = queue["metadata"], queue.get("spec", {})
    return Queue(
        name=meta["name"],
        weight=spec.get("weight", 1),
        capability=_bound(spec.get("capability")),
        guarantee=_bound(spec.get("guarantee", {}).get("resource")),
        deserved=_bound(spec.get("deserved")),
        reclaimable=spec.get("reclaimable", True),
        priority=spec.get("priority", 0),
        parent=spec.get("parent", ""),
        is_open=queue.get("status", {}).get("state", "Open") == "Open",
        created_at=_instant(meta),
        annotations=meta.get("annotations", {}),
    )


def _job(group: Object, uid: str, priority: int, tasks: tuple[Task, ...]) -> Job:
    meta, spec = group["metadata"], group["spec"]
    return Job(
        uid=uid,
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        queue=spec.get("queue", ""),
        priority=priority,
        min_available=spec.get("minMember", 0),
        min_task_member=spec.get("minTaskMember", {}),
        min_resources=_bound(spec.get("minResources")),
        phase=GangPhase(group.get("status", {}).get("phase", "Pending").lower()),
        preemptable=meta.get("annotations", {}).get("volcano.sh/preemptable") == "true",
        created_at=_instant(meta),
        tasks=tasks,
        annotations=meta.get("annotations", {}),
    )


def _task(pod: Object) -> Task:
    meta, spec = pod["metadata"], pod["spec"]
    notes, labels = meta.get("annotations", {}), meta.get("labels", {})
    return Task(
        uid=f"{meta.get('namespace', '')}/{meta['name']}",
        name=meta["name"],
        role=notes.get(_ROLE) or labels.get(_ROLE, ""),
        request=_request(spec),
        status=_status(pod),
        node=spec.get("nodeName", ""),
        priority=int(notes.get("volcano.sh/task-priority", spec.get("priority", 1))),
        preemptable=(notes.get("volcano.sh/preemptable") or labels.get("volcano.sh/preemptable", "true")) == "true",
        created_at=_instant(meta),
        node_selector=node_selector(spec),
        node_affinity=node_affinity(spec),
        tolerations=tolerations(spec),
        labels=labels,
        annotations=notes,
    )


def _status(pod: Object) -> TaskStatus:
    phase, is_ending = pod.get("status", {}).get("phase", "Pending"), pod["metadata"].get("deletionTimestamp")
    if is_ending and phase in ("Running", "Pending"):
        return TaskStatus.RELEASING
    if phase == "Pending":
        return TaskStatus.BOUND if pod["spec"].get("nodeName") else TaskStatus.PENDING
    return TaskStatus(phase.lower())


def _request(spec: Object) -> Resources:
    """What the containers ask for together, or what the largest of those before them asks for."""
    total = Resources()
    for container in spec.get("containers", ()):
        total = total + _asked(container)
    for container in spec.get("initContainers", ()):
        first = _asked(container)
        total = Resources({name: max(total.amount(name), first.amount(name)) for name in {*total, *first}})
    return total + Resources.parse(spec.get("overhead", {}))


def _asked(container: Object) -> Resources:
    return Resources.parse(container.get("resources", {}).get("requests", {}))


def _bound(quantities: Object | None) -> Resources | None:
    return None if quantities is None else Resources.parse(quantities)


def _instant(meta: Object) -> float:
    text = meta.get("creationTimestamp")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _outcome(state: ClusterState, decisions: Decisions) -> dict[str, Any]:
    """One cycle's answer; a group that the engine passed over keeps its phase."""
    return {
        "binds": {bind.task: bind.node for bind in decisions.binds},
        "evicted": sorted(eviction.task for eviction in decisions.evictions),
        "pipelined": dict(decisions.pipelined),
        "podGroups": {job.uid: {"phase": decisions.phases.get(job.uid, job.phase).capitalize()} for job in state.jobs},
    }


def _advance(state: ClusterState, decisions: Decisions) -> ClusterState:
    """The state that the next cycle finds."""
    bound = {bind.task: bind.node for bind in decisions.binds}
    gone = {eviction.task for eviction in decisions.evictions}
    jobs = []
    for job in state.jobs:
        tasks = (
            replace(task, status=TaskStatus.RUNNING, node=bound[task.uid]) if task.uid in bound else task
            for task in job.tasks
            if task.uid not in gone
        )
        jobs.append(replace(job, tasks=tuple(tasks), phase=decisions.phases.get(job.uid, job.phase)))
    return replace(state, jobs=tuple(jobs))
