"""Mutable nodes, jobs and tasks (`volcano-spec` §3.6)."""

from dataclasses import dataclass, field

from tests.engine.reference.amounts import Amounts, plus, total

from hekla.domain.phases import GangPhase
from hekla.engine import model
from hekla.engine.model import ClusterState, PodStatus

S = PodStatus
ALLOCATED = (S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING)
OVER = (S.SUCCEEDED, S.FAILED)


@dataclass(eq=False)
class Node:
    spec: model.NodeSpec
    tasks: "list[Task]" = field(default_factory=list)

    @property
    def used(self) -> Amounts:
        return total(task.request for task in self.tasks if task.status in (*ALLOCATED, S.RELEASING))

    @property
    def idle(self) -> Amounts:
        return plus(self.spec.allocatable, self.used, -1)

    @property
    def future(self) -> Amounts:
        coming = total(task.request for task in self.tasks if task.status is S.RELEASING)
        promised = total(task.request for task in self.tasks if task.status is S.PIPELINED)
        return plus(plus(self.idle, coming), promised, -1)

    @property
    def expected(self) -> Amounts:
        """What Kubernetes' scorers count: without evicted tasks, with pipelined ones."""
        return total(task.request for task in self.tasks if not task.is_evicted)


@dataclass(eq=False)
class Task:
    spec: model.PodSpec
    job: "Job"
    request: Amounts
    status: PodStatus
    node: Node | None = None
    is_evicted: bool = False

    @property
    def uid(self) -> str:
        return self.spec.uid

    @property
    def is_best_effort(self) -> bool:
        return not any(amount for name, amount in self.request.items() if name != "pods")


@dataclass(eq=False)
class Job:
    spec: model.PodGroupSpec
    phase: GangPhase
    tasks: list[Task] = field(default_factory=list)

    @property
    def queue(self) -> str:
        return self.spec.queue

    @property
    def allocated(self) -> Amounts:
        return total(task.request for task in self.tasks if task.status in ALLOCATED)

    @property
    def least(self) -> Amounts:
        return dict(self.spec.min_resources or {})

    def count(self, *statuses: PodStatus, role: str | None = None) -> int:
        return sum(task.status in statuses and role in (None, task.spec.role) for task in self.tasks)

    def best_effort_pods(self, role: str | None = None) -> int:
        """The number of pending tasks without requests."""
        waiting = (task for task in self.tasks if task.status is S.PENDING and task.is_best_effort)
        return sum(role in (None, task.spec.role) for task in waiting)

    @property
    def ready(self) -> int:
        return self.count(*ALLOCATED, S.SUCCEEDED)

    @property
    def waiting(self) -> int:
        return self.count(S.PIPELINED)

    @property
    def scheduled(self) -> int:
        """Tasks that have or had a node, including releasing ones."""
        return self.count(S.BOUND, S.RUNNING, *OVER) + sum(t.status is S.RELEASING and bool(t.node) for t in self.tasks)

    @property
    def skips_roles(self) -> bool:
        return self.spec.min_available < sum(self.spec.min_task_member.values())

    def is_ready(self) -> bool:
        enough = self.ready + self.best_effort_pods() >= self.spec.min_available
        return enough and self._roles(*ALLOCATED, S.SUCCEEDED)

    def is_pipelined(self) -> bool:
        enough = self.waiting + self.ready + self.best_effort_pods() >= self.spec.min_available
        return enough and self._roles(*ALLOCATED, S.SUCCEEDED, S.PIPELINED)

    def is_valid(self) -> bool:
        statuses = (*ALLOCATED, S.SUCCEEDED, S.PIPELINED, S.PENDING)
        enough = self.count(*statuses) >= self.spec.min_available
        return enough and (self.skips_roles or all(self.count(*statuses, role=r) >= n for r, n in self._minimums()))

    def _roles(self, *statuses: PodStatus) -> bool:
        if self.skips_roles:
            return True
        return all(self.count(*statuses, role=r) + self.best_effort_pods(r) >= n for r, n in self._minimums())

    def _minimums(self) -> list[tuple[str, int]]:
        return list(self.spec.min_task_member.items())


class ReferenceState:
    """A mutable copy of a cluster state."""

    def __init__(self, state: ClusterState) -> None:
        self.nodes = [Node(node) for node in state.nodes]
        self.queues = {queue.name: queue for queue in state.queues}
        self.jobs = [_job(job, {node.spec.name: node for node in self.nodes}) for job in state.jobs]
        self.jobs = sorted((job for job in self.jobs if job.queue in self.queues), key=lambda job: job.spec.uid)
        self.total = total(node.spec.allocatable for node in self.nodes)


def _job(spec: model.PodGroupSpec, nodes: dict[str, Node]) -> Job:
    job = Job(spec, spec.phase)
    for each in spec.pods:
        task = Task(each, job, {"pods": 1.0} | dict(each.request), each.status)
        if each.status in (*ALLOCATED, S.RELEASING) and each.node in nodes:
            task.node = nodes[each.node]
            task.node.tasks.append(task)
        job.tasks.append(task)
    return job
