"""Recorded scenarios (`hekla replay`) laid as rows of a simulated cluster, and decided by the controller.

A scenario has Kubernetes objects. Here each pod group becomes a job, each queue a queue, each node a simulated node,
and each pod a row. Pods that run are started by the controller first, under a policy that does nothing; then the
recorded policy is activated, and the decisions of the next reconcile are the answer.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import yaml

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.controller import metrics
from hekla.controller.controllers import controllers
from hekla.domain.errors import Invalid
from hekla.domain.formats import placement
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.runtime_settings import HOST_PORT
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, PodPhase
from hekla.engine import scenario
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, PodGroupSpec, PodSpec, PodStatus, QueueSpec
from hekla.lib import clock

Document = Mapping[str, Any]
IDLE = 'actions: "shuffle"\ntiers:\n- plugins: [{name: gang}]\n'
"""A policy that changes nothing."""
FIRST_ID = 1_000_000
"""Ids are compared as text by the engine, so all have as many digits."""
_PHASE = {PodStatus.PENDING: PodPhase.PENDING, PodStatus.BOUND: PodPhase.BOUND, PodStatus.RUNNING: PodPhase.RUNNING}
_HIERARCHY = {"hierarchy": "volcano.sh/hierarchy", "hierarchy_weights": "volcano.sh/hierarchy-weights"}
_NOTHING = {"cpu": "0"}
"""A group without resources for admission is always admitted."""
_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")


class NotExpressible(Exception):
    """Rows cannot hold the scenario; the reason."""


@dataclass
class LaidScenario:
    """The rows of a scenario. `pods` and `jobs`: the recorded names, by the ids of the rows as text."""

    cluster: Cluster
    state: ClusterState
    pods: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    running: list[int] = field(default_factory=list)
    bound: dict[int, str] = field(default_factory=dict)
    phases: dict[int, GangPhase] = field(default_factory=dict)


def policy_text(document: Document) -> str:
    """The recorded policy as people write it."""
    conf = document["conf"]
    if not conf.get("enabledDefault", True):
        raise NotExpressible("switches that are off by default")
    return yaml.safe_dump(
        {
            "compatibility": "volcano",
            "actions": ", ".join(document["actions"]),
            "tiers": conf.get("tiers", []),
            "configurations": conf.get("configurations") or [],
        }
    )


def lay(document: Document, *, owner: User, tenant: Tenant) -> LaidScenario:
    """Create the rows. Raises NotExpressible."""
    read = scenario.read(document)
    state = read.state
    cluster = clusters.create(
        name="recorded",
        kind="simulated",
        config={
            "nodes": [_node(node) for node in document["cluster"].get("nodes", ())],
            "speed": 1_000_000,
            "prepare_seconds": {"min": 0, "max": 0},
            "stop_seconds": 1_000_000_000,
        },
        actor=PLATFORM,
        now=clock.now(),
    )
    laid = LaidScenario(cluster, state)
    queues = _queues(cluster, state.queues)
    raw = {_key(pod): pod for pod in document["cluster"].get("pods", ())}
    tenants = {name: _tenant(name, tenant) for name in sorted({job.namespace for job in state.jobs})}
    number = FIRST_ID
    for at, job in enumerate(sorted(state.jobs, key=lambda one: one.uid)):
        if job.queue not in queues:
            raise NotExpressible("a job without a queue of the cluster")
        row, tasks = _job(FIRST_ID + at, job, queues[job.queue], tenants[job.namespace], owner, raw)
        laid.jobs[str(row.pk)] = job.uid
        laid.phases[row.pk] = job.phase
        for pod in sorted(job.pods, key=lambda one: one.uid):
            _pod(number, row, pod, *tasks[pod.uid])
            laid.pods[str(number)] = f"{job.namespace}/{pod.name}"
            if pod.status is PodStatus.RUNNING:
                laid.running.append(number)
                Pod.objects.filter(pk=number).update(phase=PodPhase.BOUND, node=pod.node, bound_at=clock.now())
            elif pod.status is PodStatus.BOUND:
                laid.bound[number] = pod.node
            number += 1
    return laid


def decide(laid: LaidScenario, policy: str, monkeypatch: Any) -> dict[str, Any]:
    """The first decisions of the controller under this policy, as a recorded cycle."""
    cycles: list[tuple[ClusterState, Decisions]] = []
    ask = metrics.cycle

    def listen(name: str, state: ClusterState, *args: Any, **kwargs: Any) -> Decisions:
        decided = ask(name, state, *args, **kwargs)
        cycles.append((state, decided))
        return decided

    clusters.set_policy(laid.cluster, text=IDLE, note="", by=None, actor=PLATFORM, now=clock.now())
    for _ in range(3):
        controllers.reconcile(laid.cluster)
    unready = Pod.objects.filter(pk__in=laid.running).exclude(phase=PodPhase.RUNNING).count()
    assert unready == 0, f"{unready} pods do not run"
    for pk, node in laid.bound.items():
        Pod.objects.filter(pk=pk).update(phase=PodPhase.BOUND, node=node, bound_at=clock.now())
    for job, phase in laid.phases.items():
        Job.objects.filter(pk=job).update(gang_phase=phase)
    cordoned = [node.name for node in laid.state.nodes if node.unschedulable]
    Node.objects.filter(cluster=laid.cluster, name__in=cordoned).update(is_cordoned=True)
    controller = controllers.get(laid.cluster.pk)
    controller.cache.invalidate(laid.phases)
    controller.cache._nodes_snapshot = None
    clusters.set_policy(laid.cluster, text=policy, note="", by=None, actor=PLATFORM, now=clock.now())
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "cycle", listen)
        controllers.reconcile(laid.cluster)
    state, decided = cycles[0]
    assert not decided.faults, decided.faults
    _compare_rows(laid, decided)
    return {
        "binds": {laid.pods[bind.pod]: bind.node for bind in decided.binds},
        "evicted": sorted(laid.pods[eviction.pod] for eviction in decided.evictions),
        "pipelined": {laid.pods[pod]: node for pod, node in decided.pipelined.items()},
        "podGroups": {
            laid.jobs[job.uid]: {"phase": str(decided.phases.get(job.uid, job.phase)).capitalize()}
            for job in state.jobs
        },
    }


def _compare_rows(laid: LaidScenario, decided: Decisions) -> None:
    """The rows hold what was decided."""
    rows = dict(Pod.objects.filter(pk__in=map(int, laid.pods)).values_list("pk", "node"))
    assert {bind.pod: rows[int(bind.pod)] for bind in decided.binds} == {bind.pod: bind.node for bind in decided.binds}
    evicted = Pod.objects.filter(pk__in=[int(one.pod) for one in decided.evictions], evicted=True)
    assert evicted.count() == len(decided.evictions)


def _key(pod: Document) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _node(node: Document) -> dict[str, Any]:
    spec, metadata = node.get("spec", {}), node["metadata"]
    return {
        "name": metadata["name"],
        "allocatable": node["status"].get("allocatable", {}),
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "taints": [
            {"key": one["key"], "value": one.get("value", ""), "effect": one["effect"]}
            for one in spec.get("taints", ())
        ],
    }


def _queues(cluster: Cluster, specs: Sequence[QueueSpec]) -> dict[str, Queue]:
    rows: dict[str, Queue] = {}
    waiting = list(specs)
    names = {one.name for one in specs}
    while waiting:
        ready = [one for one in waiting if one.parent not in names or one.parent in rows]
        if not ready:
            raise NotExpressible("queues that are parents of each other")
        for one in ready:
            if one.parent and one.parent not in names:
                raise NotExpressible(f"the parent queue {one.parent} is not there")
            hierarchy = {field: one.annotations.get(name, "") for field, name in _HIERARCHY.items()}
            rows[one.name] = Queue.objects.create(
                pk=FIRST_ID + len(rows),
                cluster=cluster,
                name=one.name,
                weight=one.weight,
                priority=one.priority,
                capability=one.capability.quantities() if one.capability is not None else {},
                guarantee=one.guarantee.quantities() if one.guarantee is not None else {},
                deserved=one.deserved.quantities() if one.deserved is not None else {},
                parent=rows.get(one.parent),
                reclaimable=one.reclaimable,
                state="open" if one.is_open else "closed",
                changed_at=clock.now(),
                created_at=_instant(one.created_at),
                **hierarchy,
            )
        waiting = [one for one in waiting if one.name not in rows]
    return rows


def _tenant(name: str, like: Tenant) -> Tenant:
    found, _new = Tenant.objects.get_or_create(slug=name, defaults={"name": name, "created_at": like.created_at})
    return found


def _job(
    pk: int, job: PodGroupSpec, queue: Queue, tenant: Tenant, owner: User, raw: Mapping[str, Document]
) -> tuple[Job, dict[str, tuple[str, int]]]:
    """The row of a job, and for each of its pods the task and the index."""
    tasks, place = _tasks(job, raw)
    annotations = dict(job.annotations)
    values = {pod.preemptable for pod in job.pods}
    if len(values) > 1:
        raise NotExpressible("pods of one job that may be evicted, and others that may not")
    if values == {False}:
        annotations["volcano.sh/preemptable"] = "false"
    zones = {pod.annotations.get("volcano.sh/revocable-zone") for pod in job.pods}
    if zones - {annotations.get("volcano.sh/revocable-zone")}:
        if len(zones) > 1:
            raise NotExpressible("pods of one job in several revocable zones")
        annotations["volcano.sh/revocable-zone"] = zones.pop() or ""
    document = {
        "name": f"j{pk}",
        "queue": queue.name,
        "priority": job.priority,
        "min_available": job.min_available,
        "tasks": tasks,
        "annotations": annotations,
        "min_resources": _NOTHING if job.min_resources is None else job.min_resources.quantities() or _NOTHING,
    }
    try:
        spec = JobSpec.parse(document)
    except Invalid as error:
        raise NotExpressible("; ".join(f"{one.path}: {one.message}" for one in error.problems)) from error
    never = {pod.never_preempts for pod in job.pods}
    if len(never) > 1:
        raise NotExpressible("pods of one job that preempt, and others that do not")
    row = Job.objects.create(
        pk=pk,
        name=spec.name,
        tenant=tenant,
        queue=queue,
        cluster=queue.cluster,
        owner=owner,
        spec=spec.document(),
        kind=spec.kind,
        priority=job.priority,
        never_preempts=never == {True},
        replicas=spec.replicas,
        gang_phase=job.phase,
        submitted_at=_instant(job.created_at),
    )
    return row, place


def _tasks(job: PodGroupSpec, raw: Mapping[str, Document]) -> tuple[list[dict[str, Any]], dict[str, tuple[str, int]]]:
    """The tasks of equal pods, and for each pod its task and index."""
    kinds: dict[tuple[Any, ...], list[PodSpec]] = defaultdict(list)
    for pod in sorted(job.pods, key=lambda one: one.uid):
        spec = raw[f"{job.namespace}/{pod.name}"]["spec"]
        ports = [port for container in spec["containers"] for port in container.get("ports", ())]
        where = json.dumps({name: spec[name] for name in _PLACEMENT if name in spec} | {"ports": ports}, sort_keys=True)
        labels = json.dumps(pod.labels, sort_keys=True)
        key = (pod.role, tuple(sorted(pod.request.items())), where, labels)
        kinds[key].append(pod)
    roles = [key[0] for key in kinds]
    tasks, place = [], {}
    for number, (key, pods) in enumerate(kinds.items()):
        role = key[0]
        name = role if role and roles.count(role) == 1 else f"{role or 't'}-{number}"
        least = job.min_task_member.get(role)
        if least is not None and roles.count(role) > 1:
            raise NotExpressible("a minimum of a task whose pods differ")
        tasks.append(
            {
                "name": name,
                "replicas": len(pods),
                "command": ["true"],
                "resources": {n: a for n, a in pods[0].request.quantities().items() if n != "pods"},
                "env": {"HEKLA_SIM_SECONDS": "1000000000"},
                "min_available": least or 0,
                "labels": json.loads(key[-1]),
                **_placement(json.loads(key[-2])),
            }
        )
        place |= {pod.uid: (name, index) for index, pod in enumerate(pods)}
    return tasks, place


def _placement(spec: dict[str, Any]) -> dict[str, Any]:
    """As every manifest is read."""
    selector, ports, findings = spec.pop("nodeSelector", {}), spec.pop("ports"), Findings()
    found = placement.read(Fields(spec, "", findings), "tasks.0")
    if findings.ignored:
        raise NotExpressible("; ".join(findings.ignored))
    of_nodes = [
        {name: port[field] for name, field in HOST_PORT.items() if field in port}
        for port in ports
        if port.get("hostPort")
    ]
    return {"node_selector": selector, "host_ports": of_nodes, **found}


def _pod(pk: int, job: Job, pod: PodSpec, task: str, index: int) -> None:
    if pod.status not in _PHASE:
        raise NotExpressible(f"a pod that is {pod.status}")
    Pod.objects.create(
        pk=pk,
        job=job,
        task=task,
        index=index,
        attempt=1,
        version=1,
        slot=index,
        phase=PodPhase.PENDING,
        created_at=_instant(pod.created_at),
    )


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
