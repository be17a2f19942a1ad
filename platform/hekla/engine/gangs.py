"""Jobs as the session changes them: their tasks by status, and the questions of readiness (`volcano-spec` §3.6)."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

from hekla.domain.phases import GangPhase
from hekla.engine.columns import Dimensions, Request
from hekla.engine.conditions import PodSelector
from hekla.engine.model import Job, Task, TaskStatus

ALLOCATED = frozenset({TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING})
_READY = ALLOCATED | {TaskStatus.SUCCEEDED}
_VALID = _READY | {TaskStatus.PIPELINED, TaskStatus.PENDING}

_UNSEEN: frozenset[PodSelector] = frozenset()


class Member:
    """A task in the session: its class, its request as a row, its present status and node."""

    __slots__ = ("best_effort", "job", "key", "node", "request", "seen_by", "shape", "status", "surplus", "task")

    def __init__(self, task: Task, job: "Gang", request: Request, shape: int) -> None:
        self.task, self.job, self.shape = task, job, shape
        self.status, self.node = task.status, task.node
        self.key = _order_key(task)
        self.request, self.surplus, self.best_effort = request
        """`surplus`: the cpu and memory that scorers count beyond the request (`Task.counted`)."""
        self.seen_by: frozenset[PodSelector] = _UNSEEN
        """Which of the session's selectors see this pod: all that its labels and namespace matter for."""


def _order_key(task: Task) -> tuple[float, float, str]:
    """The number at the end of a name of at least three parts, then age, then uid (`conformance/FORMAT` §7)."""
    head, _, last = task.name.rpartition("-")
    number = float(last) if "-" in head and last.isdigit() else 0.0
    return number, task.created_at, task.uid


class Classes:
    """Makes members of tasks: those that ask for the same under the same conditions get one number, their shape."""

    def __init__(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        self._examples: dict[int, Member] = {}
        """A member for each request object. Tasks are mostly like the one before with that request."""
        self._numbers: dict[Hashable, int] = {}

    def member(self, task: Task, job: "Gang") -> Member:
        """The task in the session."""
        example = self._examples.get(id(task.request))
        if example is not None and _is_alike(task, job, example):
            request = example.request, example.surplus, example.best_effort
            return Member(task, job, request, example.shape)
        request = self.dimensions.request(task.request, task.counted)
        member = Member(task, job, request, self._number(task, job, request))
        self._examples[id(task.request)] = member
        return member

    def _number(self, task: Task, job: "Gang", request: Request) -> int:
        selector = tuple(sorted(task.node_selector.items()))
        asked = request[0].tobytes(), request[1].tobytes()
        shape = (*asked, selector, task.tolerations, task.conditions, job.is_in_domains)
        return self._numbers.setdefault(shape, len(self._numbers))


def _is_alike(task: Task, job: "Gang", example: Member) -> bool:
    other = example.task
    return (
        task.counted is other.counted
        and task.conditions is other.conditions
        and task.node_selector == other.node_selector
        and task.tolerations == other.tolerations
        and job.is_in_domains is example.job.is_in_domains
    )


class Gang:
    """A job in the session."""

    def __init__(self, job: Job, classes: Classes) -> None:
        self.job, self.phase = job, job.phase
        self.is_in_domains = job.topology is not None or bool(job.sub_groups)
        """Whether it is placed domain by domain (`placing`)."""
        self.has_topology = job.topology is not None or any(policy.topology for policy in job.sub_groups)
        """Its pods must be close together: it takes places of others only as a whole (`uprooting`)."""
        self.formed: Any = None
        """Its sub-groups, once somebody asked for them (`subgroups`)."""
        self.members = [classes.member(task, self) for task in job.tasks]
        self.count = Counter(member.status for member in self.members)
        self.by_role = Counter((member.task.role, member.status) for member in self.members)
        self._is_of_one_role = len({member.task.role for member in self.members}) == 1
        self._roles_have: dict[frozenset[TaskStatus], bool] = {}
        """What `roles_have` found since the last change: jobs are compared far more often than changed."""
        self.ready_count = sum(self.count[status] for status in _READY)
        self.pending_best_effort = sum(m.best_effort and m.status is TaskStatus.PENDING for m in self.members)
        self.minimum = classes.dimensions.vector(job.min_resources) if job.min_resources is not None else None
        self.allocated = classes.dimensions.vector({})
        for member in self.members:
            if member.status in ALLOCATED:
                self.allocated += member.request
        self.claimed = self.allocated.copy()
        """What it holds, and what it is promised."""
        self.version = 0
        """Counts the changes to it."""
        self.rank: tuple[int, tuple[Any, ...]] | None = None
        """When it was last ranked among others, and how (`Session.rank`)."""

    def move(self, member: Member, status: TaskStatus, node: str) -> None:
        """Give a task another status; counts follow."""
        for tally, key in ((self.count, member.status), (self.by_role, (member.task.role, member.status))):
            tally[key] -= 1  # type: ignore[index]
        if member.best_effort:
            self.pending_best_effort += (status is TaskStatus.PENDING) - (member.status is TaskStatus.PENDING)
        self.ready_count += (status in _READY) - (member.status in _READY)
        member.status, member.node = status, node
        self.count[status] += 1
        self.by_role[member.task.role, status] += 1
        self._roles_have.clear()
        self.version += 1

    def pending(self) -> list[Member]:
        """Tasks that wait for a place and ask for something."""
        return [m for m in self.members if m.status is TaskStatus.PENDING and not m.best_effort]

    @property
    def waiting_count(self) -> int:
        return self.count[TaskStatus.PIPELINED]

    @property
    def valid_count(self) -> int:
        return self._sum(_VALID)

    @property
    def is_ready(self) -> bool:
        """Enough of it has a place for it to start."""
        return self.ready_count + self.pending_best_effort >= self.job.min_available

    @property
    def is_pipelined(self) -> bool:
        """Enough of it has a place, or is promised one."""
        return self.waiting_count + self.ready_count + self.pending_best_effort >= self.job.min_available

    def roles_have(self, statuses: frozenset[TaskStatus]) -> bool:
        """Whether every role has its own minimum in these statuses (best-effort tasks count as placed)."""
        known = self._roles_have.get(statuses)
        if known is None:
            known = self._roles_have[statuses] = self._each_role_has(statuses)
        return known

    def _each_role_has(self, statuses: frozenset[TaskStatus]) -> bool:
        minimums = self.job.min_task_member
        if self.job.min_available < sum(minimums.values()):
            return True
        return all(self._in_role(role, statuses) >= least for role, least in minimums.items())

    def _in_role(self, role: str, statuses: frozenset[TaskStatus]) -> int:
        counts_free = self.pending_best_effort and TaskStatus.PENDING not in statuses
        if self._is_of_one_role and role == self.members[0].task.role:
            return self._sum(statuses) + (self.pending_best_effort if counts_free else 0)
        free = 0
        if counts_free:
            free = sum(m.best_effort and m.status is TaskStatus.PENDING and m.task.role == role for m in self.members)
        return sum(self.by_role[role, status] for status in statuses) + free

    def _sum(self, statuses: frozenset[TaskStatus]) -> int:
        return sum(map(self.count.__getitem__, statuses))

    @property
    def is_admitted(self) -> bool:
        return self.phase is not GangPhase.PENDING
