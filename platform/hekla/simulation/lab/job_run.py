"""One job during a run: its form for the engine, and what became of its pods. Knows nothing of time and other jobs."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import PodGroupSpec, PodSpec, PodStatus
from hekla.simulation.lab.room import FreeRoom
from hekla.simulation.lab.workload import SECOND, History, RecordedBind, RunTime, WorkloadJob, with_priority

_PLACED = frozenset({PodStatus.RUNNING, PodStatus.SUCCEEDED})
_OVER = frozenset({PodStatus.PENDING, PodStatus.SUCCEEDED})
MOMENT = 2 * SECOND
"""A bind so shortly before the recorded one is that bind: the controller needed a moment."""


class JobRun:
    """A job during a run. `group`: its present form for the engine; None before it arrives and after it has left.

    `attempts`: which attempt each pod is at. `bound`: the bind by which each pod holds a node. `versions`: of each pod,
    raised when it leaves its node before its end: the event of that end is void then. `leaving`: evicted pods that
    still hold their nodes.
    """

    __slots__ = (
        "_bound_before",
        "_recorded",
        "_room",
        "_template",
        "_wants",
        "attempts",
        "binds",
        "bound",
        "ended",
        "evictions",
        "finished",
        "group",
        "job",
        "leaving",
        "needed",
        "positions",
        "released",
        "started",
        "versions",
    )

    def __init__(self, job: WorkloadJob, room: FreeRoom, *, is_recorded: bool) -> None:
        size = len(job.group.pods)
        self.job, self._template = job, job.group
        self._room: FreeRoom | None = room
        self._wants: tuple[PodGroupSpec | None, int, tuple[Resources, ...]] = None, 0, ()
        """Its form, and how many pods with one of these requests it needs at least."""
        self.group: PodGroupSpec | None = None
        self.attempts, self.versions = [0] * size, [0] * size
        self.bound, self.ended = dict[int, int](), set[int]()
        self.needed = {at for at, runs in enumerate(job.runs) if runs} or set(range(size))
        """The pods that ran: the job ends when they have ended."""
        self.started: int | None = None
        self.finished: int | None = None
        self.evictions = 0
        self.binds: list[RecordedBind] = []
        self.positions = {pod.uid: at for at, pod in enumerate(job.group.pods)}
        self.leaving, self.released = set[int](), dict[int, int]()
        self._recorded: dict[int, list[int]] = {}
        self._bound_before: dict[int, int] = {}
        if is_recorded:
            for one in job.history.binds:
                self._recorded.setdefault(one.pod, []).append(one.at)

    def history(self) -> History:
        """What happened to it."""
        return History(self.started, self.finished, tuple(self.binds), self.evictions)

    # Its form for the engine.

    def arrive(self) -> None:
        """It is submitted. Its pods exist once it is admitted, as those of the controller."""
        self.group = replace(self._template, pods=(), phase=GangPhase.PENDING)

    def continue_on(self, nodes: Collection[str]) -> dict[int, str]:
        """It was there when the workload began, with pods on nodes. Returns the nodes of those that still exist."""
        job, places = self.job, {at: node for at, node in self.job.placed.items() if node in nodes}
        self.ended |= {at for at, runs in enumerate(job.runs) if not runs and at not in job.placed and self._ran(at)}
        self.needed -= self.ended
        pods = []
        for at, pod in enumerate(self._template.pods):
            if at in places:
                pods.append(replace(pod, status=PodStatus.RUNNING, node=places[at]))
            else:
                pods.append(replace(pod, status=PodStatus.SUCCEEDED) if at in self.ended else pod)
        self.group = replace(self._template, pods=tuple(pods), phase=GangPhase.INQUEUE)
        return places

    def _ran(self, pod: int) -> bool:
        return any(one.pod == pod for one in self.job.history.binds)

    def create_pods(self, now: float) -> None:
        """It is admitted: its pods exist."""
        pods = (
            replace(pod, created_at=now, status=PodStatus.SUCCEEDED if at in self.ended else PodStatus.PENDING)
            for at, pod in enumerate(self._template.pods)
        )
        self._set(pods)

    def place(self, places: Mapping[str, str], now: float) -> None:
        """These pods get nodes."""
        self._set(
            replace(pod, status=PodStatus.RUNNING, node=places[pod.uid], nominated_node="", scheduled_at=now)
            if pod.uid in places
            else pod
            for pod in self._pods()
        )

    def nominate(self, nodes: Mapping[str, str]) -> None:
        """Set the nodes where other pods were evicted for its pods."""
        self._set(
            pod if pod.nominated_node == nodes.get(pod.uid, "") else replace(pod, nominated_node=nodes.get(pod.uid, ""))
            for pod in self._pods()
        )

    def mark(self, pods: Collection[int], status: PodStatus) -> None:
        """Set the status of these pods."""
        self._set(replace(pod, status=status) if self.positions[pod.uid] in pods else pod for pod in self._pods())

    def again(self, pods: Collection[int], now: float) -> None:
        """These pods wait for a node again, created anew; ended ones stay ended."""
        self._set(_again(pod, now) if self.positions[pod.uid] in pods else pod for pod in self._pods())

    def drop(self, pods: Collection[int]) -> bool:
        """Remove these pods. Returns whether none is left on a node."""
        left = [pod for pod in self._pods() if self.positions[pod.uid] not in pods]
        self._set(left)
        return not any(pod.node for pod in left)

    def leave(self) -> None:
        """It has ended or was removed: its pods hold nothing any more."""
        for at in self.bound:
            self._hold(at, -1)
        self.group = self._room = None

    def restart(self) -> None:
        """All its pods are gone: it is admitted again."""
        self.group = replace(self._template, pods=(), phase=GangPhase.PENDING)

    def set_phase(self, phase: GangPhase) -> None:
        """The gang's phase, as the engine decided."""
        if self.group is not None:
            self.group = replace(self.group, phase=phase)

    def begin_running(self) -> bool:
        """If all its pods are on nodes, it is running. Returns whether they are."""
        group = self.group
        if group is None or any(pod.status not in _PLACED for pod in group.pods):
            return False
        if group.phase is GangPhase.INQUEUE:
            self.set_phase(GangPhase.RUNNING)
        return True

    def set_priority(self, priority: int) -> None:
        """Somebody changed its priority."""
        self._template = with_priority(self._template, priority)
        if self.group is not None:
            self.group = with_priority(self.group, priority)

    def _pods(self) -> tuple[PodSpec, ...]:
        return self.group.pods if self.group is not None else ()

    def _set(self, pods: Iterable[PodSpec]) -> None:
        if self.group is not None:
            self.group = replace(self.group, pods=tuple(pods))

    @property
    def is_pending(self) -> bool:
        """Whether it waits to be admitted."""
        return self.group is not None and self.group.phase is GangPhase.PENDING

    @property
    def lacks_pods(self) -> bool:
        """Whether it was admitted, and its pods do not exist yet."""
        group = self.group
        return group is not None and not group.pods and group.phase is not GangPhase.PENDING

    # Its pods on nodes.

    def bind(self, pod: int, node: str, now: int) -> int:
        """A pod holds a node from now on. Returns the time from which its run time counts."""
        number = self._bound_before.get(pod, 0)
        self._bound_before[pod] = number + 1
        self.bound[pod] = len(self.binds)
        self.binds.append(RecordedBind(pod, self.attempts[pod], node, now))
        self._hold(pod, 1)
        recorded = self._recorded.get(pod, ())
        known = recorded[number] if number < len(recorded) else now
        return known if 0 <= known - now <= MOMENT else now

    def end_hold(self, pod: int, now: int) -> None:
        """A pod holds its node no more."""
        self._hold(pod, -1)
        at = self.bound.pop(pod)
        self.binds[at] = self.binds[at]._replace(until=now)

    def _hold(self, pod: int, sign: int) -> None:
        if self._room is not None:
            self._room.hold(self.binds[self.bound[pod]].node, self._template.pods[pod].request, sign)

    def held(self) -> Iterator[tuple[str, Resources]]:
        """The nodes that its pods hold, with their requests."""
        return ((self.binds[at].node, self._template.pods[pod].request) for pod, at in self.bound.items())

    def release(self, pod: int, now: int) -> None:
        """A pod leaves its node before its end: its attempt is repeated."""
        self.versions[pod] += 1
        if pod in self.bound:
            self.end_hold(pod, now)

    def run_time(self, pod: int) -> RunTime:
        """How long its present attempt runs. One that was not needed stays until the job ends."""
        attempts = self.job.runs[pod]
        return attempts[self.attempts[pod]] if attempts else None

    def end_attempt(self, pod: int, now: int) -> bool:
        """An attempt has ended by itself. Returns whether another follows."""
        self.end_hold(pod, now)
        if self.attempts[pod] + 1 < len(self.job.runs[pod]):
            self.attempts[pod] += 1
            return True
        self.ended.add(pod)
        return False

    def next_release(self, pod: int, usual: int) -> int:
        """How long this pod holds its node after the eviction that happens now."""
        number = self.released.get(pod, 0)
        self.released[pod] = number + 1
        known = self.job.releases.get(pod, ())
        return known[number] if number < len(known) else usual

    def look(self, now: int) -> bool:
        """Note whether it has started. Returns whether something of it waits."""
        group = self.group
        if group is None:
            return False
        placed = sum(pod.status in _PLACED for pod in group.pods)
        if self.started is None and placed >= max(1, group.min_available):
            self.started = now
        return not group.pods or any(pod.status is PodStatus.PENDING for pod in group.pods)

    def may_start(self, room: FreeRoom, *, is_whole: bool) -> bool:
        """Whether something of it might get a node, as far as room goes. `is_whole`: only with its minimum."""
        group = self.group
        if group is None:
            return False
        if self._wants[0] is not group:
            waiting = tuple([pod.request for pod in group.pods if pod.status is PodStatus.PENDING])
            missing = group.min_available - sum(pod.status in _PLACED for pod in group.pods)
            is_alone = not is_whole or group.topology is not None or bool(group.sub_groups)
            self._wants = group, 1 if is_alone else max(1, missing), waiting
        _group, least, requests = self._wants
        return bool(requests) and room.most(requests) >= least


def _again(pod: PodSpec, now: float) -> PodSpec:
    """The next attempt of a pod that left its node; others stay. Its age counts: the youngest is evicted first."""
    if pod.status in _OVER:
        return pod
    return replace(pod, status=PodStatus.PENDING, node="", nominated_node="", created_at=now, scheduled_at=0.0)
