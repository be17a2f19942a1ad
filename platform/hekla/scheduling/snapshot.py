"""Converts rows of the database to the engine's input."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

from hekla.apps.clusters.models import Node
from hekla.apps.jobs.facts import all_pod_facts, job_facts, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues.models import Queue
from hekla.apps.quotas.models import Quota
from hekla.domain import pod_annotations, queue_settings
from hekla.domain.external_pods import base_role
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import GangStage, stage_of
from hekla.domain.network_topology import NetworkTopologySpec, TopologyMode
from hekla.domain.numa import TopologyPolicy
from hekla.domain.phases import GangPhase, PodPhase
from hekla.domain.placement import pod_fields
from hekla.domain.resources import Resources, parse_quantity
from hekla.domain.runtime_classes import NO_RUNTIME_CLASS
from hekla.domain.taints import Taint
from hekla.domain.task_spec import TaskSpec
from hekla.engine import model
from hekla.engine.constraints import ANY_ADDRESS, NO_CONSTRAINTS, HostPort, PodConstraints, Requirement
from hekla.engine.pod_objects import pod_constraints, pod_tolerations
from hekla.scheduling import devices, external_pods, storage
from hekla.scheduling.runtime_classes import RuntimeClassesByName

_STATUS: Mapping[str, model.PodStatus] = {
    PodPhase.PENDING: model.PodStatus.PENDING,
    PodPhase.BOUND: model.PodStatus.BOUND,
    PodPhase.PREPARING: model.PodStatus.BOUND,
    PodPhase.RUNNING: model.PodStatus.RUNNING,
    PodPhase.SUCCEEDED: model.PodStatus.SUCCEEDED,
    PodPhase.FAILED: model.PodStatus.FAILED,
    PodPhase.LOST: model.PodStatus.FAILED,
}
_ONE_POD = Resources({"pods": 1})
_TASK, _PARTITION = "volcano.sh/task-spec", "volcano.sh/partition-id"
"""The labels by which the pods of a partition are found. Only the engine has them."""


@dataclass(frozen=True)
class Snapshot:
    """The engine's input, and the rows behind it. Uids in the engine are the row ids of jobs and pods as text.

    `runtimes`: the runtime classes of the cluster, for pods that are added.
    """

    state: model.ClusterState
    jobs: dict[str, Job]
    pods_by_job: Collection[Sequence[Pod]]
    runtimes: RuntimeClassesByName

    @cached_property
    def pods(self) -> dict[str, Pod]:
        """Pods by uid. Built on first use: there may be a hundred thousand, and few callers need them."""
        return {str(pod.pk): pod for pods in self.pods_by_job for pod in pods}


@dataclass(frozen=True, slots=True)
class _Role:
    """What all pods of a task share: the very same objects, by which the engine recognizes equal pods quickly."""

    request: Resources
    selector: Mapping[str, str]
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    priority: int
    preemptable: bool
    priority_class: str = ""
    tolerations: tuple[model.Toleration, ...] = ()
    constraints: PodConstraints = NO_CONSTRAINTS
    has_own_claims: bool = False
    """Whether each pod gets claims of its own."""


def node(node: Node, images: Mapping[str, float]) -> model.NodeSpec:
    """A node for the engine, with the images that it has."""
    return model.NodeSpec(
        name=node.name,
        allocatable=Resources.parse(node.allocatable),
        labels=node.labels,
        annotations=node.annotations,
        taints=tuple(map(Taint.parse, node.taints)),
        images=images,
        unschedulable=node.is_cordoned or not node.is_ready,
        is_ready=node.is_ready,
        numa=_numa(node.numa) if node.numa else None,
    )


def _numa(numa: Mapping[str, Any]) -> model.Numa:
    cells = (model.NumaCell(_cpus(cell["cpus"]), _cpus(cell["free"])) for cell in numa["cells"])
    return model.Numa(numa["topology_policy"], numa["cpu_policy"], tuple(cells))


@cache
def _cpus(count: int) -> Resources:
    return Resources.parse({"cpu": count})


def queue(queue: Queue) -> model.QueueSpec:
    """A queue for the engine."""
    return model.QueueSpec(
        name=queue.name,
        weight=queue.weight,
        capability=Resources.parse_limits(queue.capability) if queue.capability else None,
        guarantee=Resources.parse(queue.guarantee) if queue.guarantee else None,
        deserved=Resources.parse(queue.deserved) if queue.deserved else None,
        parent=queue.parent.name if queue.parent else "",
        reclaimable=queue.reclaimable,
        priority=queue.priority,
        is_open=queue.is_open or queue.is_draining,
        is_draining=queue.is_draining,
        created_at=queue.created_at.timestamp(),
        annotations=queue_settings.annotations(queue.settings),
        affinity=_affinity(queue) if queue.has_node_groups else None,
    )


def _affinity(queue: Queue) -> model.NodeGroupAffinity:
    return model.NodeGroupAffinity(*(tuple(getattr(queue, field)) for field in queue_settings.AFFINITY))


_OWNER = {Quota.Of.TENANT: "", Quota.Of.EACH: model.EACH_OWNER}


def bound(quota: Quota) -> model.TenantQuota:
    """The limits of a tenant or its members for the engine; a tenant is a namespace."""
    owner = _OWNER.get(Quota.Of(quota.of), str(quota.user_id))
    most = {name: parse_quantity(name, text) for name, text in quota.resources.items()}
    return model.TenantQuota(str(quota.tenant_id), most, owner)


def job(
    job: Job, pods: Iterable[Pod], nominated: Mapping[str, str], runtimes: RuntimeClassesByName
) -> model.PodGroupSpec:
    """A job with these pods for the engine. `nominated`: the nodes where other pods were evicted for some of them.
    `runtimes`: the runtime classes of the cluster.

    Its gang consists of the pods that no dependency holds back; admission to the queue needs the minimum of the whole
    job.
    """
    spec, pods = spec_of(job), list(pods)
    stage = stage_of(job_facts(job), all_pod_facts(pods) if spec.has_dependencies else ())
    carried = pod_annotations.select(spec.annotations)
    roles = {task.name: _role(task, job, carried, spec.priority_class, runtimes) for task in spec.tasks}
    of_pod = _labelled_roles(job, roles) if job.is_external else _partitioned_roles(spec, roles)
    latest = _latest([pod for pod in pods if pod.version == job.version or not pod.is_final])
    least, least_of_each = _minimums(spec, stage, latest)
    return model.PodGroupSpec(
        uid=str(job.pk),
        name=job.name,
        namespace=str(job.tenant_id),
        queue=job.queue.name,
        priority=job.priority,
        min_available=least,
        min_task_member=external_pods.minimums(job) if job.is_external else least_of_each,
        min_resources=_admission(spec, job),
        phase=GangPhase(job.gang_phase),
        created_at=job.submitted_at.timestamp(),
        preemptable=pod_annotations.is_preemptable(spec.annotations, default="false"),
        annotations=spec.annotations,
        topology=_topology(spec.network_topology),
        sub_groups=external_pods.sub_groups(job)
        if job.is_external
        else tuple(_sub_groups(spec, least_of_each, latest)),
        owner=str(job.owner_id),
        pods=tuple(_task(pod, job, of_pod(pod), nominated) for pod in latest),
    )


def _admission(spec: JobSpec, job: Job) -> Resources | None:
    """What must be free before the job is admitted; None if it says that it needs nothing: no plugin is asked then."""
    is_free = job.is_external and external_pods.names_no_resources(job, spec)
    return None if is_free or (spec.min_resources and not spec.admission_resources) else spec.admission_resources


def _sub_groups(spec: JobSpec, least_of_each: Mapping[str, int], pods: Sequence[Pod]) -> Iterator[model.SubGroupPolicy]:
    """The partitions that are gangs of their own. Those with a failed pod are not required: they stay incomplete."""
    for task in spec.tasks:
        if task.has_gangs_of_partitions and (size := task.partition_size):
            own = Counter(task.partition(pod.index) for pod in pods if pod.task == task.name and _may_run(pod))
            whole = sum(count >= size for count in own.values())
            yield model.SubGroupPolicy(
                name=task.name,
                keys=(_PARTITION,),
                selector=(Requirement(_TASK, "In", (task.name,)),),
                size=size,
                at_least=min(task.min_partitions or 0, whole) if least_of_each.get(task.name) else 0,
                topology=_topology(task.partition_topology),
            )


def _may_run(pod: Pod) -> bool:
    return _STATUS[pod.phase] is not model.PodStatus.FAILED


def _topology(topology: NetworkTopologySpec | None) -> model.NetworkTopology | None:
    if topology is None:
        return None
    is_hard = topology.mode is TopologyMode.HARD
    return model.NetworkTopology(is_hard, topology.highest_tier_allowed, topology.highest_tier_name)


@lru_cache(maxsize=10_000)
def _image_only(image: str) -> PodConstraints:
    """The constraints of a task that has nothing but an image: the very same object for all of them."""
    return PodConstraints(images=(image,)) if image else NO_CONSTRAINTS


def held_job(job: Job, pods: Iterable[Pod], runtimes: RuntimeClassesByName) -> model.PodGroupSpec:
    """A job of which nothing can be decided: only its pods on nodes, which use resources and cannot be evicted.

    Its labels still count for the affinity of other pods, and its ports of nodes stay in use.
    """
    roles = {
        task.name: _held_role(job, _request(task, runtimes), task.labels, _ports_only(task))
        for task in spec_of(job).tasks
    }
    unknown = _held_role(job, _ONE_POD, {}, NO_CONSTRAINTS)
    return model.PodGroupSpec(
        uid=str(job.pk),
        name=job.name,
        namespace=str(job.tenant_id),
        queue=job.queue.name,
        priority=job.priority,
        min_available=0,
        phase=GangPhase(job.gang_phase),
        created_at=job.submitted_at.timestamp(),
        owner=str(job.owner_id),
        pods=tuple(_task(pod, job, roles.get(pod.task, unknown), {}) for pod in pods if pod.node and not pod.is_final),
    )


def _held_role(job: Job, request: Resources, labels: Mapping[str, str], constraints: PodConstraints) -> _Role:
    return _Role(request, {}, {}, labels, job.priority, preemptable=False, constraints=constraints)


def _ports_only(task: TaskSpec) -> PodConstraints:
    ports = (HostPort(one.host_port, one.protocol, one.host_ip or ANY_ADDRESS) for one in task.host_ports)
    return PodConstraints(host_ports=tuple(ports)) if task.host_ports else NO_CONSTRAINTS


def _request(task: TaskSpec, runtimes: RuntimeClassesByName) -> Resources:
    """What a pod needs on its node, with the overhead of its runtime class, as Kubernetes counts it."""
    return _sum(task.request, runtimes.get(task.runtime_class, NO_RUNTIME_CLASS).overhead)


@lru_cache(maxsize=10_000)
def _sum(request: Resources, overhead: Resources) -> Resources:
    """The very same object for equal ones: a comparison of two jobs then ends at once."""
    return request + overhead + _ONE_POD


def _role(
    task: TaskSpec, job: Job, annotations: Mapping[str, str], priority_class: str, runtimes: RuntimeClassesByName
) -> _Role:
    """What the pods of a task share. The namespace of their affinity is the tenant."""
    if task.annotations:
        annotations = {**annotations, **task.annotations}
    if task.topology_policy is not TopologyPolicy.NONE:
        annotations = {**annotations, pod_annotations.NUMA_POLICY: str(task.topology_policy)}
    fields = pod_fields(task)
    constraints = _constraints(task, job, fields) if fields or task.host_ports else _image_only(task.image)
    if task.volume_mounts and (claims := storage.mounted_claims(job, task.name)):
        constraints = replace(constraints, volume_claims=claims)
    if task.resource_claims:
        constraints = replace(constraints, device_claims=devices.named_claims(job, task.name))
    runtime = runtimes.get(task.runtime_class, NO_RUNTIME_CLASS)
    tolerations = [*fields.get("tolerations", ()), *runtime.tolerations]
    return _Role(
        _request(task, runtimes),
        {**task.node_selector, **runtime.node_selector} if runtime.node_selector else task.node_selector,
        annotations,
        task.labels,
        pod_annotations.priority_in_job(annotations, default=job.priority),
        pod_annotations.is_preemptable(annotations, default="true"),
        priority_class,
        tolerations=pod_tolerations({"tolerations": tolerations}),
        constraints=constraints,
        has_own_claims=any(one.resource_claim_template_name for one in task.resource_claims),
    )


def _constraints(task: TaskSpec, job: Job, fields: Mapping[str, Any]) -> PodConstraints:
    metadata = {"namespace": str(job.tenant_id), "labels": task.labels}
    spec = {**fields, "containers": [{"image": task.image, **task.runtime_settings.container_fields()}]}
    return pod_constraints({"metadata": metadata, "spec": spec})


def _with_own_claims(constraints: PodConstraints, job: Job, pod: Pod) -> PodConstraints:
    own = (name for name, _template in devices.own_claims(job, pod))
    return replace(constraints, device_claims=(*constraints.device_claims, *own))


def _partitioned_roles(spec: JobSpec, roles: Mapping[str, _Role]) -> Callable[[Pod], _Role]:
    parts = {task.name: _role_parts(task, roles[task.name]) for task in spec.tasks if task.has_gangs_of_partitions}
    return lambda pod: parts[pod.task](pod.index) if pod.task in parts else roles[pod.task]


def _labelled_roles(job: Job, roles: Mapping[str, _Role]) -> Callable[[Pod], _Role]:
    """The role of an external pod: equal for equal labels and claims to volumes."""
    names = external_pods.label_names(job)
    known: dict[object, _Role] = {}

    def of_pod(pod: Pod) -> _Role:
        labels = external_pods.labels(pod, names) if names else {}
        claims = storage.external_claims(job, pod)
        key = pod.task, tuple(sorted(labels.items())), claims
        if key not in known:
            role = roles[pod.task]
            constraints = replace(role.constraints, volume_claims=claims) if claims else role.constraints
            known[key] = replace(role, labels={**role.labels, **labels}, constraints=constraints)
        return known[key]

    return of_pod


def _role_parts(task: TaskSpec, role: _Role) -> Callable[[int], _Role]:
    """The role of a replica, by its index: equal but for the labels of its partition."""

    @cache
    def of_partition(partition: int) -> _Role:
        return replace(role, labels={**role.labels, _TASK: task.name, _PARTITION: str(partition)})

    return lambda index: of_partition(task.partition(index))


def _minimums(spec: JobSpec, stage: GangStage, pods: Sequence[Pod]) -> tuple[int, Mapping[str, int]]:
    """The minimum of the gang, and of each task: never more than the number of pods that can still run.

    A failed pod stays failed unless a policy says otherwise. If the gang required it, no replacement of another pod
    could be placed.
    """
    failed = Counter(pod.task for pod in pods if _STATUS[pod.phase] is model.PodStatus.FAILED)
    if not failed:
        return stage.minimum, stage.minimums
    gone = failed + Counter(slot.task for slot in stage.held)
    left = {task.name: task.replicas - gone[task.name] for task in spec.tasks}
    of_each = {name: min(least, left[name]) for name, least in stage.minimums.items()}
    return min(stage.minimum, sum(left.values())), of_each


def _latest(pods: Iterable[Pod]) -> list[Pod]:
    """The last attempt of each replica, and earlier ones that still hold something."""
    last = {(pod.task, pod.index): pod.pk for pod in pods}
    return [pod for pod in pods if not pod.is_final or (last[pod.task, pod.index] == pod.pk and not pod.stopping)]


def _pod_name(pod: Pod, job: Job) -> str:
    own = external_pods.name(pod) if job.is_external else ""
    return own or f"{job.name}-{pod.task}-{pod.index}"


def _priority(pod: Pod, job: Job, role: _Role) -> int:
    if not job.is_external:
        return role.priority
    return pod_annotations.priority_in_job(role.annotations, default=external_pods.priority(pod, job))


def _task(pod: Pod, job: Job, role: _Role, nominated: Mapping[str, str]) -> model.PodSpec:
    uid, ending = str(pod.pk), pod.stopping and not pod.is_final
    return model.PodSpec(
        uid=uid,
        name=_pod_name(pod, job),
        role=base_role(pod.task) if job.is_external else pod.task,
        request=role.request,
        status=model.PodStatus.RELEASING if ending else _STATUS[pod.phase],
        node=pod.node,
        priority=_priority(pod, job, role),
        never_preempts=job.never_preempts,
        nominated_node=nominated.get(uid, "") if pod.phase == PodPhase.PENDING else "",
        created_at=pod.created_at.timestamp(),
        node_selector=role.selector,
        tolerations=role.tolerations,
        constraints=_with_own_claims(role.constraints, job, pod) if role.has_own_claims else role.constraints,
        labels=role.labels,
        has_more_labels=not job.is_external or external_pods.has_labels(pod),
        preemptable=role.preemptable,
        annotations={**role.annotations, **pod.annotations} if pod.annotations else role.annotations,
        priority_class=role.priority_class,
        limits=role.request,
        scheduled_at=pod.bound_at.timestamp() if pod.bound_at else 0.0,
    )
