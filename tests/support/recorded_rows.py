"""Recorded scenarios (`hekla replay`) laid as rows of a simulated cluster, and decided by the controller.

A scenario has Kubernetes objects. Here each pod group becomes a job, each queue a queue, each node a simulated node,
and each pod a row. `recorded_cycles` lets the controller decide.

Volcano orders pods by the index in their names. Most recorded pods have none, so it orders them by their uids; the
names of Hekla's pods always have one. So these replicas are numbered through the whole scenario, in the order of their
uids.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import yaml
from django.db import transaction

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain import pod_annotations
from hekla.domain.errors import Invalid
from hekla.domain.formats import placement
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.runtime_settings import HOST_PORT
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, PodPhase
from hekla.engine import scenario
from hekla.engine.model import ClusterState, PodGroupSpec, PodSpec, PodStatus, QueueSpec
from hekla.lib import clock

Document = Mapping[str, Any]
_PHASE = {PodStatus.PENDING: PodPhase.PENDING, PodStatus.RUNNING: PodPhase.BOUND}
"""Pods that run are bound at first: the controller starts them."""
_HIERARCHY = {"hierarchy": "volcano.sh/hierarchy", "hierarchy_weights": "volcano.sh/hierarchy-weights"}
_NOTHING = {"cpu": "0"}
"""A group without resources for admission is always admitted."""
_PARTS_WITH_INDEX = 3
_SYSTEM, _CRITICAL = "kube-system", "system-cluster-critical"
"""No tenant is a namespace of the system. Its pods are critical by their class instead."""
_RUNS_ON = {"HEKLA_SIM_SECONDS": "1000000000"}
_PREEMPTABLE_BY_DEFAULT = "t"
"""True, as for a pod without the annotation; `tdm` also counts the word `true` as such."""
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


def lay(document: Document, *, owner: User, tenant: Tenant, first: int = 1_000_000) -> LaidScenario:
    """Create the rows. Their ids begin with `first`: the engine compares them as text, so all have as many digits.

    Raises NotExpressible.
    """
    state = scenario.read(document).state
    cluster = clusters.create(
        name=f"recorded-{first}",
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
    queues = _queues(cluster, state.queues, first)
    raw = {_key(pod): pod for pod in document["cluster"].get("pods", ())}
    tenants = {name: _tenant(name, tenant) for name in sorted({job.namespace for job in state.jobs})}
    uids = sorted(pod.uid for job in state.jobs for pod in job.pods)
    numbers = {uid: number for number, uid in enumerate(uids)}
    jobs: list[Job] = []
    pods: list[Pod] = []
    for at, job in enumerate(sorted(state.jobs, key=lambda one: one.uid)):
        if job.queue not in queues:
            raise NotExpressible("a job without a queue of the cluster")
        row, tasks = _job(first + at, job, queues[job.queue], tenants[job.namespace], owner, raw)
        laid.jobs[str(row.pk)] = job.uid
        laid.phases[row.pk] = job.phase
        jobs.append(row)
        pods += [_pod(first, numbers[pod.uid], row, pod, tasks[pod.uid]) for pod in job.pods]
        laid.pods |= {str(first + numbers[pod.uid]): f"{job.namespace}/{pod.name}" for pod in job.pods}
    Job.objects.bulk_create(jobs)
    Pod.objects.bulk_create(pods)
    return laid


def clear() -> None:
    """Delete the rows whose names must be unique; the clusters stay."""
    with transaction.atomic():
        for model in (Pod, Job, Queue):
            rows = model.objects.all()
            rows._raw_delete(rows.db)


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


def _queues(cluster: Cluster, specs: Sequence[QueueSpec], first: int) -> dict[str, Queue]:
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
                pk=first + len(rows),
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
) -> tuple[Job, dict[str, str]]:
    """The row of a job, and the task of each of its pods."""
    tasks, task_of = _tasks(job, raw)
    document = {
        "name": f"j{pk}",
        "queue": queue.name,
        "priority": job.priority,
        "priority_class": _CRITICAL if job.namespace == _SYSTEM else "",
        "min_available": job.min_available,
        "tasks": tasks,
        "annotations": dict(job.annotations),
        "min_resources": _NOTHING if job.min_resources is None else job.min_resources.quantities() or _NOTHING,
    }
    try:
        spec = JobSpec.parse(document)
    except Invalid as error:
        raise NotExpressible("; ".join(f"{one.path}: {one.message}" for one in error.problems)) from error
    never = {pod.never_preempts for pod in job.pods}
    if len(never) > 1:
        raise NotExpressible("pods of one job that preempt, and others that do not")
    row = Job(
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
    return row, task_of


def _tasks(job: PodGroupSpec, raw: Mapping[str, Document]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tasks of equal pods, and the task of each pod. Pods that were not created yet belong to the first one."""
    kinds: dict[str, list[PodSpec]] = defaultdict(list)
    for pod in sorted(job.pods, key=lambda one: one.uid):
        fields = _fields(job, pod, raw[f"{job.namespace}/{pod.name}"]["spec"])
        kinds[json.dumps({"role": pod.role, **fields}, sort_keys=True)].append(pod)
    documents = [json.loads(text) for text in kinds] or [{"role": "", "resources": {}}]
    roles = [document.pop("role") for document in documents]
    for number, (role, document) in enumerate(zip(roles, documents, strict=True)):
        least = job.min_task_member.get(role, 0)
        if least and roles.count(role) > 1:
            raise NotExpressible("a minimum of a task whose pods differ")
        document |= {"name": role if role and roles.count(role) == 1 else f"{role or 't'}-{number}"}
        document |= {"command": ["true"], "env": _RUNS_ON, "min_available": least}
    for document, pods in zip(documents, kinds.values(), strict=False):
        document["replicas"] = max(len(pods), document["min_available"])
    documents[0]["replicas"] = documents[0].get("replicas", 0) + max(0, job.min_available - len(job.pods))
    names = [document["name"] for document in documents]
    return documents, {pod.uid: name for name, pods in zip(names, kinds.values(), strict=False) for pod in pods}


def _fields(job: PodGroupSpec, pod: PodSpec, spec: Document) -> dict[str, Any]:
    """The fields of the pod's task. What the pod does not have of the job's annotations is empty."""
    names = pod_annotations.POD_ANNOTATIONS & {*pod.annotations, *job.annotations}
    annotations = {name: pod.annotations.get(name, "") for name in names}
    if pod_annotations.PREEMPTABLE in names and not annotations[pod_annotations.PREEMPTABLE]:
        annotations[pod_annotations.PREEMPTABLE] = _PREEMPTABLE_BY_DEFAULT
    annotations[pod_annotations.TASK_PRIORITY] = str(pod.priority)
    ports = [port for container in spec["containers"] for port in container.get("ports", ())]
    return {
        "resources": {n: a for n, a in pod.request.quantities().items() if n != "pods"},
        "labels": dict(pod.labels),
        "annotations": annotations,
        **_placement({name: spec[name] for name in _PLACEMENT if name in spec} | {"ports": ports}),
    }


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


def _pod(first: int, number: int, job: Job, pod: PodSpec, task: str) -> Pod:
    if pod.status not in _PHASE:
        raise NotExpressible(f"a pod that is {pod.status}")
    return Pod(
        pk=first + number,
        job=job,
        task=task,
        index=_index(pod.name, number),
        attempt=1,
        version=1,
        slot=number,
        phase=_PHASE[pod.status],
        node=pod.node,
        bound_at=clock.now() if pod.node else None,
        created_at=_instant(pod.created_at),
    )


def _index(name: str, number: int) -> int:
    """The index in a name `<job>-<task>-<index>`; else the number of the pod in the scenario."""
    parts = name.split("-")
    return int(parts[-1]) if len(parts) >= _PARTS_WITH_INDEX and parts[-1].isdigit() else number


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
