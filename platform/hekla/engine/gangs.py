"""Jobs as the session changes them: their tasks by status, and the questions of readiness (`volcano-spec` §3.6)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hekla.domain.phases import GangPhase
from hekla.engine.columns import Dimensions, Request, Vector
from hekla.engine.conditions import PodSelector
from hekla.engine.model import Job, Task, TaskStatus

if TYPE_CHECKING:
    from hekla.engine.lines import Line

ALLOCATED = frozenset({TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING})
_READY = ALLOCATED | {TaskStatus.SUCCEEDED}
_VALID = _READY | {TaskStatus.PIPELINED, TaskStatus.PENDING}
_SETTLED = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED})

_UNSEEN: frozenset[PodSelector] = frozenset()
_STATUS: Callable[[Task], TaskStatus] = attrgetter("status")
_ROLE: Callable[[Task], str] = attrgetter("role")
_NOMINATED: Callable[[Task], str] = attrgetter("nominated_node")


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What tasks have in common that ask for the same under the same conditions; `number` tells kinds apart.

    `surplus`: the cpu and memory that scorers count beyond the request (`Task.counted`).
    """

    request: Vector
    surplus: Vector
    best_effort: bool
    number: int


class Member:
    """A task in the session: its class, its request as a row, its present status and node."""

    __slots__ = ("best_effort", "job", "key", "node", "request", "seen_by", "shape", "status", "surplus", "task")

    def __init__(self, task: Task, job: "Gang", kind: Kind) -> None:
        self.task, self.job = task, job
        self.status, self.node = task.status, task.node
        self.key = _order_key(task)
        self.request, self.surplus, self.best_effort, self.shape = (
            kind.request,
            kind.surplus,
            kind.best_effort,
            kind.number,
        )
        self.seen_by: frozenset[PodSelector] = _UNSEEN
        """Which of the selectors there are see this pod: all that its labels and namespace matter for."""


def _order_key(task: Task) -> tuple[float, float, str]:
    """The number at the end of a name of at least three parts, then age, then uid (`conformance/FORMAT` §7)."""
    head, _, last = task.name.rpartition("-")
    number = float(last) if "-" in head and last.isdigit() else 0.0
    return number, task.created_at, task.uid


class Classes:
    """Finds the kinds of tasks. Rows that it gives are shared, and must not be written to."""

    def __init__(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        self.nothing = dimensions.vector({})
        self._examples: dict[int, tuple[Task, bool, Kind]] = {}
        """For each request object the last task with it."""
        self._kinds: dict[Hashable, Kind] = {}
        self._times: dict[tuple[Kind, int], Vector] = {}

    def kinds(self, job: Job, *, is_in_domains: bool) -> list[Kind]:
        """The kind of each task of a job. Most tasks are like the one before."""
        found: list[Kind] = []
        last = None
        for task in job.tasks:
            if last is None or task.request is not last.request or not _are_alike(task, last):
                last, kind = task, self._kind(task, is_in_domains)
            found.append(kind)
        return found

    def _kind(self, task: Task, is_in_domains: bool) -> Kind:
        known = self._examples.get(id(task.request))
        if known is not None and known[1] is is_in_domains and _are_alike(task, known[0]):
            return known[2]
        request = self.dimensions.request(task.request, task.counted)
        kind = self._of(task, is_in_domains, request)
        self._examples[id(task.request)] = task, is_in_domains, kind
        return kind

    def _of(self, task: Task, is_in_domains: bool, request: Request) -> Kind:
        selector = tuple(sorted(task.node_selector.items()))
        asked = request[0].tobytes(), request[1].tobytes()
        key = (*asked, selector, task.tolerations, task.conditions, is_in_domains)
        return self._kinds.setdefault(key, Kind(*request, len(self._kinds)))

    def times(self, kind: Kind, count: int) -> Vector:
        """What so many tasks of a kind ask for together."""
        found = self._times.get((kind, count))
        if found is None:
            found = self._times[kind, count] = kind.request * count
        return found


def _are_alike(task: Task, other: Task) -> bool:
    return (
        task.counted is other.counted
        and task.conditions is other.conditions
        and (task.node_selector is other.node_selector or task.node_selector == other.node_selector)
        and task.tolerations == other.tolerations
    )


def _waits(member: Member) -> bool:
    return member.status is TaskStatus.PENDING and not member.best_effort


class Gang:
    """A job in the session. Its members are made when somebody asks for them: most jobs are only counted."""

    __slots__ = (
        "_by_role",
        "_classes",
        "_examples",
        "_members",
        "_roles_have",
        "allocated",
        "claimed",
        "closing",
        "count",
        "figures",
        "formed",
        "has_best_effort",
        "has_topology",
        "is_in_domains",
        "is_nominated",
        "is_settled",
        "job",
        "kinds",
        "line",
        "minimum",
        "pending_best_effort",
        "phase",
        "rank",
        "ready_count",
        "request",
        "role",
        "size",
        "valid_count",
        "version",
        "waiting_count",
    )

    def __init__(self, job: Job, classes: Classes) -> None:
        self.job, self._classes, self.size = job, classes, len(job.tasks)
        self.is_in_domains = job.topology is not None or bool(job.sub_groups)
        """Whether it is placed domain by domain (`placing`)."""
        self.has_topology = job.topology is not None or any(policy.topology for policy in job.sub_groups)
        """Its pods must be close together: it takes places of others only as a whole (`uprooting`)."""
        self.kinds = classes.kinds(job, is_in_domains=self.is_in_domains)
        self.minimum = classes.dimensions.row(job.min_resources) if job.min_resources is not None else None
        self.has_best_effort = any(kind.best_effort for kind in self.kinds)
        """Whether some of its tasks ask for nothing."""
        self.is_nominated = any(map(_NOMINATED, job.tasks))
        """Whether others were evicted for some of its tasks."""
        roles = set(map(_ROLE, job.tasks))
        self.role = roles.pop() if len(roles) == 1 else None
        """The role of all its tasks, if they have but one."""
        self._members: list[Member] | None = None
        self._examples: tuple[int, list[Member]] | None = None
        self.figures: Vector | None = None
        """What it counts for in the sums of its queue (`sums`), before a session."""
        self.closing: tuple[object, int, GangPhase] | None = None
        """The phase in which it was left, under which policy and at which version."""
        self.line: Line | None = None
        """The line of those that are alike in which it stands (`lines`), if it does."""
        self.version = 0
        """Counts the changes to it."""
        self.rank: tuple[object, int, tuple[Any, ...]] | None = None
        """In which session and when it was last ranked among others, and how (`Session.rank`)."""
        self._recount()

    def _recount(self) -> None:
        """All figures, from what the job says."""
        self.phase = self.job.phase
        self.formed: Any = None
        """Its sub-groups, once somebody asked for them (`subgroups`)."""
        self._roles_have: dict[frozenset[TaskStatus], bool] = {}
        """What `roles_have` found since the last change: jobs are compared far more often than changed."""
        self.count: dict[TaskStatus, int] = defaultdict(int)
        self.pending_best_effort = self.ready_count = self.valid_count = self.waiting_count = settled = 0
        held = asked = self._classes.nothing
        for (kind, status), count in self._tally():
            self.count[status] += count
            self.ready_count += count * (status in _READY)
            self.valid_count += count * (status in _VALID)
            self.waiting_count += count * (status is TaskStatus.PIPELINED)
            settled += count * (status in _SETTLED)
            if status in ALLOCATED:
                held = self._add(held, self._classes.times(kind, count))
            elif status is TaskStatus.PENDING:
                asked = self._add(asked, self._classes.times(kind, count))
                self.pending_best_effort += count * kind.best_effort
        self.allocated = self.claimed = held
        """`claimed`: what it holds, and what it is promised. Rows are shared: nobody writes to them."""
        self.request = self._add(held, asked)
        """What it held at first, and what it waited for."""
        has_all = settled == self.size and self.valid_count >= self.job.min_available
        self.is_settled = has_all and self.phase is not GangPhase.PENDING
        """Nothing was left to decide about it when the session began: it was let in, and has all that it can have."""
        self._by_role: Counter[tuple[str, TaskStatus]] | None = None
        """How many there are of each role in each status, where there is more than one role."""
        if self.role is None:
            self._by_role = Counter(zip(map(_ROLE, self.job.tasks), map(_STATUS, self.job.tasks), strict=True))

    def _tally(self) -> Iterable[tuple[tuple[Kind, TaskStatus], int]]:
        """How many tasks there are of each kind in each status; mostly all are alike."""
        tasks, kinds = self.job.tasks, self.kinds
        if len(set(kinds)) == 1 and len(set(map(_STATUS, tasks))) == 1:
            return (((kinds[0], tasks[0].status), self.size),)
        return Counter(zip(kinds, map(_STATUS, tasks), strict=True)).items()

    def _add(self, left: Vector, right: Vector) -> Vector:
        nothing = self._classes.nothing
        return right if left is nothing else left if right is nothing else left + right

    def restore(self) -> None:
        """Forget what a session did to it. Its members must be as the job says."""
        self._recount()
        self.version += 1

    @property
    def members(self) -> list[Member]:
        """Its tasks, in the order of the job."""
        if self._members is None:
            self._members = [Member(task, self, kind) for task, kind in zip(self.job.tasks, self.kinds, strict=True)]
        return self._members

    @property
    def made(self) -> list[Member]:
        """The members, if somebody asked for them so far."""
        return self._members or []

    def examples(self) -> list[Member]:
        """Of those of its tasks that wait for a place and ask for something, one of each shape."""
        if self._examples is None or self._examples[0] != self.version:
            self._examples = self.version, self._choose_examples()
        return self._examples[1]

    def _choose_examples(self) -> list[Member]:
        if self._members is not None:
            return list({m.shape: m for m in reversed(self._members) if _waits(m)}.values())
        pairs = zip(reversed(self.job.tasks), reversed(self.kinds), strict=True)
        first = {kind: task for task, kind in pairs if task.status is TaskStatus.PENDING and not kind.best_effort}
        return [Member(task, self, kind) for kind, task in first.items()]

    @property
    def pending_count(self) -> int:
        """How many tasks wait for a place and ask for something."""
        return self.count.get(TaskStatus.PENDING, 0) - self.pending_best_effort

    def admit(self) -> None:
        """It is let in."""
        self.phase = GangPhase.INQUEUE
        self.version += 1

    def move(self, member: Member, status: TaskStatus, node: str) -> None:
        """Give a task another status; counts follow."""
        old, role = member.status, member.task.role
        self.count[old] -= 1
        self.count[status] += 1
        if self._by_role is not None:
            self._by_role[role, old] -= 1
            self._by_role[role, status] += 1
        if member.best_effort:
            self.pending_best_effort += (status is TaskStatus.PENDING) - (old is TaskStatus.PENDING)
        self.ready_count += (status in _READY) - (old in _READY)
        self.valid_count += (status in _VALID) - (old in _VALID)
        self.waiting_count += (status is TaskStatus.PIPELINED) - (old is TaskStatus.PIPELINED)
        member.status, member.node = status, node
        self._roles_have.clear()
        self.version += 1

    def pending(self) -> list[Member]:
        """Tasks that wait for a place and ask for something."""
        return [member for member in self.members if _waits(member)]

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
        return all(self._counts_in(role, statuses) >= least for role, least in minimums.items())

    def _counts_in(self, role: str, statuses: frozenset[TaskStatus]) -> int:
        found = self.in_role(role, statuses)
        if not self.pending_best_effort or TaskStatus.PENDING in statuses:
            return found
        if role == self.role:
            return found + self.pending_best_effort
        return found + sum(
            m.best_effort and m.status is TaskStatus.PENDING and m.task.role == role for m in self.members
        )

    @property
    def is_of_one_role(self) -> bool:
        return self.role is not None

    def in_role_pending(self, role: str) -> int:
        """How many tasks of a role wait for a place and ask for something."""
        if role == self.role:
            return self.pending_count
        return sum(member.task.role == role for member in self.pending())

    def in_role(self, role: str, statuses: Iterable[TaskStatus]) -> int:
        """How many tasks of a role are in one of these statuses."""
        if self._by_role is not None:
            return sum(self._by_role[role, status] for status in statuses)
        return self._in(statuses) if role == self.role else 0

    def _in(self, statuses: Iterable[TaskStatus]) -> int:
        return sum(count for status, count in self.count.items() if status in statuses)

    @property
    def is_admitted(self) -> bool:
        return self.phase is not GangPhase.PENDING
