"""External pods: created by other controllers and scheduled by Hekla. Which job they form, and its phase."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hekla.domain.job_kinds import EXTERNAL, MAX_PRIORITY
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import FactMessage, JobFacts, PhaseChange, PodFacts, PodRef, fact
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.resources import Resources
from hekla.domain.runtime_settings import ResourceClaim
from hekla.domain.task_spec import MAX_REPLICAS, MAX_TASKS

_MAX_NAME, _MAX_ROLE = 36, 18
_ODD = re.compile(r"[^a-z0-9]+")
_AS_ITS_POD_SAYS = "as-its-pod-says"
_DRIVER = "driver"
_OF_PODS = ("resources", "node_selector", "tolerations", "affinity", "host_ports", "annotations", "resource_claims")
"""The fields of a task that equal pods share."""


class GroupKind(StrEnum):
    """What groups pods into one job."""

    POD_GROUP = "podgroup"
    JOB_NAME = "job-name"
    OWNER = "owner"
    POD = "pod"


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A group of pods. `owner`: the uid of its owner object, if names are not unique."""

    namespace: str
    kind: GroupKind
    name: str
    owner: str = ""

    @property
    def key(self) -> str:
        """A unique text for the group; `of` reads it back."""
        return "/".join((self.namespace, self.kind, self.name, self.owner))

    @classmethod
    def of(cls, key: str) -> "GroupRef":
        """The group of a key. Its name may contain slashes, since an annotation holds any text."""
        namespace, kind, rest = key.split("/", 2)
        name, owner = rest.rsplit("/", 1)
        return cls(namespace, GroupKind(kind), name, owner)


@dataclass(frozen=True, slots=True)
class ExternalPod:
    """A pod as the cluster reports it. `uid`: its own; `maker`: the uid of its owner object, if it has one.

    `phase`: pending until it has a node. `obstacle`: why we can never place it. `reported_reason`: why it is pending,
    from its condition. `is_ending`: it is being deleted. `placement`: tolerations, affinity, host ports, claims to
    devices and annotations for the scheduler, as fields of a task. `labels`: the first of them by name.
    `application`: the name that people gave to what it is part of. `volume_claims`: the names of the claims to volumes
    that it mounts, in its namespace.
    """

    uid: str
    namespace: str
    name: str
    group: GroupRef
    made_at: datetime
    phase: PodPhase
    at: datetime
    role: str = "pod"
    application: str = ""
    maker: str = ""
    image: str = ""
    request: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    volume_claims: Sequence[str] = ()
    priority: int = 0
    never_preempts: bool = False
    queue: str = ""
    node: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    is_ending: bool = False
    obstacle: str = ""
    reported_reason: str = ""

    @property
    def claims(self) -> list[ResourceClaim]:
        """Its claims to devices."""
        return [ResourceClaim.model_validate(one) for one in self.placement.get("resource_claims", ())]


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """How the pods of a group are placed together, beside their minimum.

    `roles`: the minimum of each role (minTaskMember). `topology`: as a `NetworkTopologySpec`; empty for none.
    `sub_groups`: the subGroupPolicy, as in the PodGroup.
    """

    roles: Mapping[str, int] = field(default_factory=dict)
    topology: Mapping[str, Any] = field(default_factory=dict)
    sub_groups: Sequence[Mapping[str, Any]] = ()


NO_POLICY = GroupPolicy()


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A PodGroup object of Volcano: `minimum` is its minMember, `request` its minResources.

    `priority`: the value of its `priority_class`; None if it names none, or there is no such class.
    """

    namespace: str
    name: str
    minimum: int = 1
    queue: str = ""
    phase: str = ""
    request: Mapping[str, str] = field(default_factory=dict)
    policy: GroupPolicy = NO_POLICY
    priority_class: str = ""
    priority: int | None = None

    @property
    def is_new(self) -> bool:
        """It has not been admitted yet."""
        return self.phase in ("", "Pending")


@dataclass(frozen=True, slots=True)
class ObservedGroup:
    """A group as it is in the cluster now, with all its pods.

    `minimum`: how many pods are scheduled together; 0: unknown, because its PodGroup is missing. `queue`: the requested
    queue. `request`: what must be free before it is admitted, also for pods that do not exist yet (minResources).
    `expects_pods`: its pods are created after it is admitted. `policy`: how they are placed together. `priority`: that
    of its PodGroup; None: the highest one of its pods.
    """

    ref: GroupRef
    pods: tuple[ExternalPod, ...]
    minimum: int = 1
    queue: str = ""
    request: Mapping[str, str] = field(default_factory=dict)
    expects_pods: bool = False
    policy: GroupPolicy = NO_POLICY
    priority: int | None = None

    @property
    def maker(self) -> str:
        """The uid of the owner object of all its pods; empty if they have several or none."""
        makers = {pod.maker for pod in self.pods}
        return makers.pop() if len(makers) == 1 else ""

    @property
    def title(self) -> str:
        """The name of the application that its first pod names, else its own."""
        first = min(self.pods, key=lambda pod: (pod.made_at, pod.name), default=None)
        return (first.application if first else "") or self.ref.name

    @property
    def never_preempts(self) -> bool:
        """Whether no pods may be evicted for this group."""
        return bool(self.pods) and all(pod.never_preempts for pod in self.pods)


@dataclass(frozen=True, slots=True)
class ExternalPodRules:
    """Which external pods Hekla schedules, and for whom. `tenants`: by namespace; other namespaces are ignored."""

    tenants: Mapping[str, str]
    queue: str
    owner: str


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A recorded attempt, and the name of its pod."""

    ref: PodRef
    name: str
    phase: PodPhase


def job_name(text: str, *, distinct: str = "") -> str:
    """A valid job name for a group or an application; `distinct`: a suffix if that name is in use."""
    name = _label(text, _MAX_NAME - len(distinct) - 1 if distinct else _MAX_NAME) or "pods"
    return f"{name}-{distinct}" if distinct else name


def role_name(text: str) -> str:
    """A valid task name for a role."""
    return _label(text, _MAX_ROLE) or "pod"


def bounded_priority(priority: int) -> int:
    """The priority of a job for one of the cluster, whose own classes are higher than any job may be."""
    return max(-MAX_PRIORITY, min(MAX_PRIORITY, priority))


def gang_minimum(members: int) -> int:
    """The minimum of a job for a group that schedules so many members together (minMember)."""
    return max(1, min(members, MAX_REPLICAS))


class ExternalTasks:
    """The tasks of a job: pods of one role with equal requests and constraints form a task."""

    def __init__(self, spec: JobSpec | None) -> None:
        tasks = spec.tasks if spec else ()
        self._tasks = {task.name: task.model_dump(mode="json", exclude_defaults=True) for task in tasks}

    def task_of(self, pod: ExternalPod) -> str | None:
        """The name of the pod's task, created if none matches; None if the job has its maximum of tasks."""
        fields = {"resources": dict(pod.request), "node_selector": dict(pod.node_selector), **pod.placement}
        wanted = {name: value for name, value in fields.items() if value}
        for name, task in self._tasks.items():
            if base_role(name) == pod.role and {key: task[key] for key in _OF_PODS if task.get(key)} == wanted:
                return name
        if len(self._tasks) >= MAX_TASKS:
            return None
        name = self._free_name(pod.role)
        self._tasks[name] = {"name": name, "command": [_AS_ITS_POD_SAYS], "image": pod.image[:512], **wanted}
        return name

    def expect(self, request: Mapping[str, str], minimum: int) -> None:
        """Add a placeholder task for a group whose pods do not exist yet."""
        each = (Resources.parse(request) * (1 / minimum)).quantities()
        resources = {name: text for name, text in each.items() if name != "pods"}
        self._tasks["pod"] = {"name": "pod", "command": [_AS_ITS_POD_SAYS], "resources": resources}

    def documents(self, replicas: Mapping[str, int], minimum: int) -> list[dict[str, Any]]:
        """The tasks as documents; replicas missing to the minimum count for the first task."""
        first, *_ = self._tasks
        missing = max(0, minimum - sum(replicas.values()))
        counts = {name: replicas.get(name, 0) + (missing if name == first else 0) for name in self._tasks}
        return [{**task, "replicas": counts[name], "min_available": 0} for name, task in self._tasks.items()]

    def _free_name(self, role: str) -> str:
        same_role = [name for name in self._tasks if base_role(name) == role]
        return f"{role}{_AGAIN}{len(same_role) + 1}" if same_role else role


_AGAIN = "-v"


def base_role(name: str) -> str:
    """The role in a task's name: `worker` for `worker-v2`."""
    role, mark, number = name.rpartition(_AGAIN)
    return role if mark and number.isdigit() else name


def assign_refs(
    pods: Iterable[tuple[ExternalPod, str]], held: Sequence[RecordedPod]
) -> list[tuple[ExternalPod, PodRef]]:
    """The reference of each new pod: the next attempt of a finished replica with its pod's name, or of an unsuccessful
    replica, else a new replica.
    """
    last: dict[tuple[str, int], RecordedPod] = {}
    for one in sorted(held, key=lambda one: one.ref):
        last[one.ref.task, one.ref.index] = one
    found = []
    for pod, task in pods:
        index = _index(pod, task, last)
        before = last.get((task, index))
        ref = PodRef(task, index, before.ref.attempt + 1 if before else 1)
        last[task, index] = RecordedPod(ref, pod.name, PodPhase.PENDING)
        found.append((pod, ref))
    return found


def _index(pod: ExternalPod, task: str, last: Mapping[tuple[str, int], RecordedPod]) -> int:
    own = {index: one for (name, index), one in last.items() if name == task}
    over = [index for index, one in own.items() if one.phase.is_final]
    named = [index for index in over if own[index].name == pod.name]
    failed = [index for index in over if own[index].phase is not PodPhase.SUCCEEDED]
    return min(named or failed, default=max(own, default=-1) + 1)


def build_spec(
    group: GroupRef,
    roles: ExternalTasks,
    refs: Iterable[PodRef],
    *,
    name: str,
    queue: str,
    priority: int,
    minimum: int,
    request: Mapping[str, str],
    topology: Mapping[str, Any],
) -> JobSpec:
    """The job spec of these replicas. `request`: what must be free before the group is admitted; empty: its minimum.
    `topology`: empty for none.

    Raises Invalid if they exceed the limits of a job.
    """
    replicas: Counter[str] = Counter()
    for ref in refs:
        replicas[ref.task] = max(replicas[ref.task], ref.index + 1)
    document = {
        "name": name,
        "description": f"{group.namespace}/{group.name}",
        "kind": EXTERNAL,
        "queue": queue,
        "priority": bounded_priority(priority),
        "min_available": gang_minimum(minimum),
        "min_resources": dict(request),
        "network_topology": dict(topology) or None,
        "tasks": roles.documents(replicas, minimum),
    }
    return JobSpec.parse(document)


def phase_changes(job: JobFacts, pods: Iterable[PodFacts], *, has_started: bool) -> tuple[PhaseChange, ...]:
    """The phase changes that lead to the phase of the job's pods. `has_started`: its pods ran before."""
    last = {pod.slot: pod for pod in sorted(pods, key=lambda pod: pod.ref)}.values()
    now = _count(last)
    wanted = _wanted(job, now) if any(pod.is_alive for pod in last) else _end(last)
    if wanted is job.phase:
        return ()
    passed: list[PhaseChange] = []
    if job.phase.is_final and not wanted.is_final:
        passed.append(PhaseChange(JobPhase.RESTARTING, "PodsCame", FactMessage(fact("old_pods_gone"))))
        passed.append(PhaseChange(JobPhase.PENDING, "PodsCame", ""))
    ran = has_started or wanted is JobPhase.TERMINATED
    if wanted.is_final and not ran:
        passed.append(_step(JobPhase.RUNNING, job, now))
    if not passed or passed[-1].phase is not wanted:
        passed.append(_step(wanted, job, now))
    return tuple(passed)


def _count(pods: Iterable[PodFacts]) -> Counter[PodPhase]:
    return Counter(PodPhase.LOST if pod.stopping and not pod.is_alive else pod.phase for pod in pods)


def _wanted(job: JobFacts, now: Counter[PodPhase]) -> JobPhase:
    at_work = now[PodPhase.RUNNING] + now[PodPhase.SUCCEEDED]
    is_enough = at_work >= job.spec.gang_minimum or (job.phase is JobPhase.RUNNING and now[PodPhase.RUNNING] > 0)
    return JobPhase.RUNNING if is_enough else JobPhase.PENDING


def _end(pods: Collection[PodFacts]) -> JobPhase:
    """Deleted and evicted pods have neither succeeded nor failed.

    The driver of Spark alone decides: it deletes its executors, or they fail because it has ended.
    """
    drivers = [pod for pod in pods if base_role(pod.task) == _DRIVER]
    now = _count(drivers or pods)
    if now[PodPhase.FAILED]:
        return JobPhase.FAILED
    return JobPhase.COMPLETED if now[PodPhase.SUCCEEDED] else JobPhase.TERMINATED


_REASONS = {
    JobPhase.PENDING: "TooFewPods",
    JobPhase.RUNNING: "GangStarted",
    JobPhase.COMPLETED: "PodsSucceeded",
    JobPhase.FAILED: "PodsFailed",
    JobPhase.TERMINATED: "PodsDeleted",
}


def _step(phase: JobPhase, job: JobFacts, now: Counter[PodPhase]) -> PhaseChange:
    replicas = job.spec.replicas
    facts = {
        JobPhase.RUNNING: [fact("pods_run", running=now[PodPhase.RUNNING], replicas=replicas)],
        JobPhase.COMPLETED: [fact("pods_succeeded", succeeded=now[PodPhase.SUCCEEDED], replicas=replicas)],
        JobPhase.FAILED: [fact("pods_succeeded", succeeded=now[PodPhase.SUCCEEDED], replicas=replicas)],
    }.get(phase, [])
    return PhaseChange(phase, _REASONS[phase], FactMessage(*facts))


def _label(text: str, most: int) -> str:
    return _ODD.sub("-", text.lower()).strip("-")[:most].strip("-")
