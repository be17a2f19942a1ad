"""Jobs and pods in a session: status, requests, and readiness (`volcano-spec` §3.6)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hekla.domain.phases import GangPhase
from hekla.engine.columns import Dimensions, Request, Vector
from hekla.engine.constraints import PodSelector
from hekla.engine.model import PodGroupSpec, PodSpec, PodStatus

if TYPE_CHECKING:
    from hekla.engine.equivalence import EquivalenceClass

ALLOCATED = frozenset({PodStatus.ALLOCATED, PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING})
_READY = ALLOCATED | {PodStatus.SUCCEEDED}
_VALID = _READY | {PodStatus.PIPELINED, PodStatus.PENDING}
_SETTLED = frozenset({PodStatus.BOUND, PodStatus.RUNNING, PodStatus.SUCCEEDED, PodStatus.FAILED})

_NO_SELECTORS: frozenset[PodSelector] = frozenset()
_STATUS: Callable[[PodSpec], PodStatus] = attrgetter("status")
_ROLE: Callable[[PodSpec], str] = attrgetter("role")
_NOMINATED: Callable[[PodSpec], str] = attrgetter("nominated_node")


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """The class of pods with equal requests and constraints; `number` is its identity.

    `nonzero_surplus`: cpu and memory that scorers count on top of the request (`PodSpec.nonzero_request`).
    """

    request: Vector
    nonzero_surplus: Vector
    best_effort: bool
    number: int


class PodInfo:
    """A pod in the session: class, request as a row, current status and node. Volcano's TaskInfo."""

    __slots__ = (
        "_order_key",
        "best_effort",
        "class_number",
        "job",
        "matching_selectors",
        "node",
        "nonzero_surplus",
        "request",
        "spec",
        "status",
    )

    def __init__(self, spec: PodSpec, job: "JobInfo", pod_class: PodClass) -> None:
        self.spec, self.job = spec, job
        self.status, self.node = spec.status, spec.node
        self.request, self.nonzero_surplus, self.best_effort, self.class_number = (
            pod_class.request,
            pod_class.nonzero_surplus,
            pod_class.best_effort,
            pod_class.number,
        )
        self.matching_selectors: frozenset[PodSelector] = _NO_SELECTORS
        """The selectors of all pods' constraints that match this pod."""
        self._order_key: tuple[float, float, str] | None = None

    @property
    def order_key(self) -> tuple[float, float, str]:
        """The number at the end of a name of three or more parts, then age, then uid (`conformance/FORMAT` §7)."""
        if self._order_key is None:
            head, _, last = self.spec.name.rpartition("-")
            number = float(last) if "-" in head and last.isdigit() else 0.0
            self._order_key = number, self.spec.created_at, self.spec.uid
        return self._order_key


class PodClasses:
    """Finds the classes of pods. Its rows are shared and must not be written to."""

    def __init__(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        self.zero = dimensions.vector({})
        self._examples: dict[int, tuple[PodSpec, bool, PodClass]] = {}
        """By id of the request object: the last pod with it."""
        self._classes: dict[Hashable, PodClass] = {}
        self._multiples: dict[tuple[PodClass, int], Vector] = {}

    def classes_of(self, group: PodGroupSpec, *, uses_hypernodes: bool) -> list[PodClass]:
        """The class of each pod of a job. Most pods equal the one before."""
        found: list[PodClass] = []
        last = None
        for spec in group.pods:
            if last is None or spec.request is not last.request or not _same_class(spec, last):
                last, pod_class = spec, self._class_of(spec, uses_hypernodes)
            found.append(pod_class)
        return found

    def _class_of(self, spec: PodSpec, uses_hypernodes: bool) -> PodClass:
        known = self._examples.get(id(spec.request))
        if known is not None and known[1] is uses_hypernodes and _same_class(spec, known[0]):
            return known[2]
        request = self.dimensions.request(spec.request, spec.nonzero_request)
        pod_class = self._intern(spec, uses_hypernodes, request)
        self._examples[id(spec.request)] = spec, uses_hypernodes, pod_class
        return pod_class

    def _intern(self, spec: PodSpec, uses_hypernodes: bool, request: Request) -> PodClass:
        selector = tuple(sorted(spec.node_selector.items()))
        requested = request[0].tobytes(), request[1].tobytes()
        key = (*requested, selector, spec.tolerations, spec.constraints, uses_hypernodes)
        return self._classes.setdefault(key, PodClass(*request, len(self._classes)))

    def multiple(self, pod_class: PodClass, count: int) -> Vector:
        """The request of `count` pods of a class."""
        found = self._multiples.get((pod_class, count))
        if found is None:
            found = self._multiples[pod_class, count] = pod_class.request * count
        return found


def _same_class(spec: PodSpec, other: PodSpec) -> bool:
    return (
        spec.nonzero_request is other.nonzero_request
        and spec.constraints is other.constraints
        and (spec.node_selector is other.node_selector or spec.node_selector == other.node_selector)
        and spec.tolerations == other.tolerations
    )


def _is_waiting(pod: PodInfo) -> bool:
    return pod.status is PodStatus.PENDING and not pod.best_effort


class JobInfo:
    """A job in the session, as Volcano's JobInfo. Its `pods` are built on first use: most jobs are only counted."""

    __slots__ = (
        "_by_role",
        "_classes",
        "_pods",
        "_representatives",
        "_role_minimums_met",
        "_shares_counts",
        "allocated",
        "claimed",
        "count_by_status",
        "equivalence_class",
        "group",
        "has_best_effort",
        "has_topology",
        "is_nominated",
        "is_settled",
        "is_template",
        "min_resources",
        "minimum_covers_roles",
        "pending_best_effort",
        "phase",
        "phase_at_close",
        "pod_classes",
        "queue_amounts",
        "rank",
        "ready_count",
        "request",
        "role",
        "size",
        "subjobs",
        "uses_hypernodes",
        "valid_count",
        "version",
        "waiting_count",
    )

    def __init__(self, group: PodGroupSpec, classes: PodClasses, twin: "JobInfo | None" = None) -> None:
        """`twin`: an unchanged job of the same shape (`job_twins`), or the template of its class."""
        self.group, self._classes, self.size = group, classes, len(group.pods)
        self._pods: list[PodInfo] | None = None
        self._representatives: tuple[int, list[PodInfo]] | None = None
        self.queue_amounts: Vector | None = None
        """Its amounts in `QueueTotals`."""
        self.phase_at_close: tuple[object, int, GangPhase] | None = None
        """Policy, version and phase of the last close."""
        self.equivalence_class: EquivalenceClass | None = None
        """The class of jobs equal to it, if it may have equals."""
        self.is_template = False
        """Whether it only stands for the jobs of its class that are not built yet (`job_table`)."""
        self.version = 0
        """Incremented with every change."""
        self.rank: tuple[object, int, tuple[Any, ...]] | None = None
        """Session, version and sort key of the last `Session.rank`."""
        if twin is None:
            self._examine(group)
            self._recount()
        else:
            self._copy(twin)

    def _examine(self, group: PodGroupSpec) -> None:
        """Set what does not change."""
        self.uses_hypernodes = group.topology is not None or bool(group.sub_groups)
        """Whether it is placed hypernode by hypernode (`hypernode_allocation`)."""
        self.has_topology = group.topology is not None or any(policy.topology for policy in group.sub_groups)
        """Whether it has a network topology: then only gang evictions make room for it (`gang_eviction`)."""
        self.pod_classes = self._classes.classes_of(group, uses_hypernodes=self.uses_hypernodes)
        least = group.min_resources
        self.min_resources = self._classes.dimensions.row(least) if least is not None else None
        self.has_best_effort = any(pod_class.best_effort for pod_class in self.pod_classes)
        """Whether some of its pods have no requests."""
        self.is_nominated = any(map(_NOMINATED, group.pods))
        """Whether other pods were evicted for some of its pods."""
        roles = set(map(_ROLE, group.pods))
        self.role = roles.pop() if len(roles) == 1 else None
        """The role of all its pods, if there is only one."""
        most = {self.role: group.min_available}
        self.minimum_covers_roles = all(least <= most.get(role, 0) for role, least in group.min_task_member.items())
        """Whether its minimum includes those of its roles."""

    def _recount(self) -> None:
        """Set all counts from the pod group."""
        self.phase = self.group.phase
        self._shares_counts = False
        """Whether twins use the same counts."""
        self.subjobs: Any = None
        """Its sub-jobs, once built (`subjobs_of`)."""
        self._role_minimums_met: dict[frozenset[PodStatus], bool] = {}
        """Results of `roles_have_minimum` since the last change."""
        self.count_by_status: dict[PodStatus, int] = defaultdict(int)
        self.pending_best_effort = self.ready_count = self.valid_count = self.waiting_count = settled = 0
        held = requested = self._classes.zero
        for (pod_class, status), count in self._count_pods():
            self.count_by_status[status] += count
            self.ready_count += count * (status in _READY)
            self.valid_count += count * (status in _VALID)
            self.waiting_count += count * (status is PodStatus.PIPELINED)
            settled += count * (status in _SETTLED)
            if status in ALLOCATED:
                held = self._add(held, self._classes.multiple(pod_class, count))
            elif status is PodStatus.PENDING:
                requested = self._add(requested, self._classes.multiple(pod_class, count))
                self.pending_best_effort += count * pod_class.best_effort
        self.allocated = self.claimed = held
        """`claimed`: allocated and pipelined. Rows are shared and must not be written to."""
        self.request = self._add(held, requested)
        """What its allocated and pending pods requested when the session began."""
        has_all = settled == self.size and self.valid_count >= self.group.min_available
        self.is_settled = has_all and self.phase is not GangPhase.PENDING
        """Whether nothing was left to decide about it when the session began: admitted, and all pods placed."""
        self._by_role: Counter[tuple[str, PodStatus]] | None = None
        """Pods by role and status, if there is more than one role."""
        if self.role is None:
            self._by_role = Counter(zip(map(_ROLE, self.group.pods), map(_STATUS, self.group.pods), strict=True))

    def _copy(self, twin: "JobInfo") -> None:
        """Take over everything that equal shapes have in common."""
        self.uses_hypernodes, self.has_topology = False, False
        self.pod_classes, self.min_resources, self.role = twin.pod_classes, twin.min_resources, twin.role
        self.minimum_covers_roles = twin.minimum_covers_roles
        self.has_best_effort, self.is_nominated = twin.has_best_effort, twin.is_nominated
        self.queue_amounts, self.equivalence_class = twin.queue_amounts, twin.equivalence_class
        self._copy_counts(twin)

    def _copy_counts(self, twin: "JobInfo") -> None:
        """Take over what a session may change."""
        self.phase, self.is_settled, self.pending_best_effort = twin.phase, twin.is_settled, twin.pending_best_effort
        self.ready_count, self.valid_count, self.waiting_count = twin.ready_count, twin.valid_count, twin.waiting_count
        self.allocated, self.claimed, self.request = twin.allocated, twin.claimed, twin.request
        self.count_by_status, self._role_minimums_met = twin.count_by_status, twin._role_minimums_met
        self.subjobs = self._by_role = None
        self._shares_counts = twin._shares_counts = True

    def hold(self, request: Vector, *, now: bool) -> None:
        """Count the request of a pod that is allocated, or pipelined if not `now`."""
        is_equal = self.allocated is self.claimed
        self.claimed = self._add(self.claimed, request)
        if now:
            self.allocated = self.claimed if is_equal else self._add(self.allocated, request)

    def _count_pods(self) -> Iterable[tuple[tuple[PodClass, PodStatus], int]]:
        """The number of pods by class and status."""
        specs, pod_classes = self.group.pods, self.pod_classes
        if self.size == 1:
            return (((pod_classes[0], specs[0].status), 1),)
        if len(set(pod_classes)) == 1 and len(set(map(_STATUS, specs))) == 1:
            return (((pod_classes[0], specs[0].status), self.size),)
        return Counter(zip(pod_classes, map(_STATUS, specs), strict=True)).items()

    def _add(self, left: Vector, right: Vector) -> Vector:
        nothing = self._classes.zero
        return right if left is nothing else left if right is nothing else left + right

    def restore(self) -> None:
        """Reset the counts after a session. Its pods must be reset already."""
        template = self.equivalence_class.template if self.equivalence_class is not None else None
        if template is None or template is self:
            self._recount()
        else:
            self._copy_counts(template)
        self.version += 1

    @property
    def pods(self) -> list[PodInfo]:
        """Its pods in the order of the pod group."""
        if self._pods is None:
            self._pods = [
                PodInfo(spec, self, pod_class)
                for spec, pod_class in zip(self.group.pods, self.pod_classes, strict=True)
            ]
        return self._pods

    @property
    def built_pods(self) -> list[PodInfo]:
        """The pods if they were built, else none."""
        return self._pods or []

    def representatives(self) -> list[PodInfo]:
        """One pending pod with requests of each class."""
        if self._representatives is None or self._representatives[0] != self.version:
            self._representatives = self.version, self._choose_representatives()
        return self._representatives[1]

    def _choose_representatives(self) -> list[PodInfo]:
        if self.size == 1:
            (pod,) = self.pods
            return [pod] if _is_waiting(pod) else []
        if self._pods is not None:
            return list({m.class_number: m for m in reversed(self.pods) if _is_waiting(m)}.values())
        pairs = zip(reversed(self.group.pods), reversed(self.pod_classes), strict=True)
        first = {
            pod_class: spec
            for spec, pod_class in pairs
            if spec.status is PodStatus.PENDING and not pod_class.best_effort
        }
        return [PodInfo(spec, self, pod_class) for pod_class, spec in first.items()]

    @property
    def pending_count(self) -> int:
        """The number of pending pods with requests."""
        return self.count_by_status.get(PodStatus.PENDING, 0) - self.pending_best_effort

    def admit(self) -> None:
        """Set the phase Inqueue."""
        self.phase = GangPhase.INQUEUE
        self.version += 1

    def update_status(self, pod: PodInfo, status: PodStatus, node: str) -> None:
        """Set status and node of a pod, and update the counts."""
        if self._shares_counts:
            self.count_by_status, self._role_minimums_met = self.count_by_status.copy(), {}
            self._shares_counts = False
        old, role = pod.status, pod.spec.role
        self.count_by_status[old] -= 1
        self.count_by_status[status] += 1
        if self._by_role is not None:
            self._by_role[role, old] -= 1
            self._by_role[role, status] += 1
        pod.status, pod.node = status, node
        self.version += 1
        if old in ALLOCATED and status in ALLOCATED:  # a bind, mostly: all sums over statuses stay
            return
        self._role_minimums_met.clear()
        if pod.best_effort:
            self.pending_best_effort += (status is PodStatus.PENDING) - (old is PodStatus.PENDING)
        self.ready_count += (status in _READY) - (old in _READY)
        self.valid_count += (status in _VALID) - (old in _VALID)
        self.waiting_count += (status is PodStatus.PIPELINED) - (old is PodStatus.PIPELINED)

    def pending(self) -> list[PodInfo]:
        """The pending pods with requests."""
        return [pod for pod in self.pods if _is_waiting(pod)]

    @property
    def is_ready(self) -> bool:
        """Whether its minimum is allocated."""
        return self.ready_count + self.pending_best_effort >= self.group.min_available

    @property
    def is_pipelined(self) -> bool:
        """Whether its minimum is allocated or pipelined."""
        return self.waiting_count + self.ready_count + self.pending_best_effort >= self.group.min_available

    def roles_have_minimum(self, statuses: frozenset[PodStatus]) -> bool:
        """Whether every role has its minimum in these statuses; best-effort pods count as placed."""
        known = self._role_minimums_met.get(statuses)
        if known is None:
            known = self._role_minimums_met[statuses] = self._each_role_has(statuses)
        return known

    def _each_role_has(self, statuses: frozenset[PodStatus]) -> bool:
        minimums = self.group.min_task_member
        if self.group.min_available < sum(minimums.values()):
            return True
        for role, least in minimums.items():  # noqa: SIM110  (a generator costs more than a few comparisons)
            if self._counts_in(role, statuses) < least:
                return False
        return True

    def _counts_in(self, role: str, statuses: frozenset[PodStatus]) -> int:
        found = self.count_in_role(role, statuses)
        if not self.pending_best_effort or PodStatus.PENDING in statuses:
            return found
        if role == self.role:
            return found + self.pending_best_effort
        return found + sum(m.best_effort and m.status is PodStatus.PENDING and m.spec.role == role for m in self.pods)

    @property
    def is_of_one_role(self) -> bool:
        return self.role is not None

    def pending_in_role(self, role: str) -> int:
        """The number of pending pods of a role with requests."""
        if role == self.role:
            return self.pending_count
        return sum(pod.spec.role == role for pod in self.pending())

    def count_in_role(self, role: str, statuses: Iterable[PodStatus]) -> int:
        """The number of pods of a role in these statuses."""
        if self._by_role is not None:
            return sum(self._by_role[role, status] for status in statuses)
        if role != self.role:
            return 0
        return sum([count for status, count in self.count_by_status.items() if status in statuses])

    @property
    def is_admitted(self) -> bool:
        return self.phase is not GangPhase.PENDING
