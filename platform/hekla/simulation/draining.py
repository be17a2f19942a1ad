"""What happens if a node is drained: who loses what, and where and when the evicted pods start again.

The lifecycle decides what becomes of each job, and the engine where its pods start, as both will when it happens.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Node
from hekla.apps.jobs.facts import job_facts, pod_facts, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.draining import token_of
from hekla.domain import lifecycle
from hekla.domain.card_resources import card_counts
from hekla.domain.job_kinds import SESSION
from hekla.domain.lifecycle import JobOutcome
from hekla.domain.phases import FINAL_JOB_PHASES, STOPPING_JOB_PHASES, PodPhase
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction
from hekla.engine.model import PodGroupSpec
from hekla.simulation import eta
from hekla.simulation.eta import Eta
from hekla.simulation.holders import HOLDING
from hekla.simulation.simulator import Simulator
from hekla.simulation.snapshot_cache import Outlook, looking_at
from hekla.simulation.what_if import require_predictions

_CHECKING_SECONDS = 3.0
"""The time for the question which jobs fit nowhere else: each takes a cycle of the engine."""
_ENDS = FINAL_JOB_PHASES | STOPPING_JOB_PHASES
_STAYS = frozenset({LifecycleAction.SYNC_JOB, *PARTIAL_ACTIONS})


class DrainFate(StrEnum):
    """What a drain does to a job: only some pods start again, the whole job does, it ends, or its pods stay."""

    MOVES = "moves"
    RESTARTS = "restarts"
    ENDS = "ends"
    STAYS = "stays"


@dataclass(frozen=True, slots=True)
class DrainedJob:
    """A job with `pods` pods on the node: `keys`, their row ids. `stopped`: how many stop in all.

    `lost_seconds`: the longest run time of these; `lost_gpu_seconds`: run time times cards of all. `ends_as`: the phase
    of a job that ends. `restarts_left`: by its policy; None if it does not restart as a whole. `nodes`: where its pods
    start at once; `starts`: when they do otherwise, None: not within the horizon of the simulation. `fits`: whether
    they fit anywhere else at all.
    """

    job: Job
    pods: int
    fate: DrainFate
    keys: frozenset[int] = frozenset()
    stopped: int = 0
    lost_seconds: float = 0.0
    lost_gpu_seconds: float = 0.0
    ends_as: str = ""
    restarts_left: int | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)
    starts: Eta | None = None
    fits: bool = True

    @property
    def is_session(self) -> bool:
        """Whether a person works in it."""
        return self.job.kind == SESSION

    @property
    def goes_on(self) -> bool:
        """Whether its pods start again."""
        return self.fate in (DrainFate.MOVES, DrainFate.RESTARTS)


@dataclass(frozen=True, slots=True)
class DrainPreview:
    """`at`: its time. `jobs`: with pods on the node, those that lose most first. `stranded`: waiting jobs that fit only
    with this node. `unchecked`: of how many waiting jobs this is not known, for lack of time.
    """

    at: datetime
    jobs: tuple[DrainedJob, ...] = ()
    stranded: tuple[Job, ...] = ()
    unchecked: int = 0

    @property
    def pods(self) -> int:
        """How many pods are evicted."""
        return sum(one.pods for one in self.jobs if one.fate is not DrainFate.STAYS)

    @property
    def token(self) -> str:
        """Names the pods that are evicted, for `apps.jobs.services.drain`."""
        return token_of(key for one in self.jobs for key in one.keys)


def preview_drain(node: Node, *, user: User) -> DrainPreview:
    """Preview the drain of a node. Raises Forbidden, and NoForecast where Volcano schedules the cluster."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    require_predictions(node.cluster)
    with looking_at(node.cluster, is_long=True) as outlook:
        return outlook.once(("drain", node.name), lambda: _Drain(outlook, node.name).preview())


class _Drain:
    """One simulated drain."""

    def __init__(self, outlook: Outlook, node: str) -> None:
        self._outlook, self._node, self._base = outlook, node, outlook.simulator()
        found = [self._affected(uid) for uid in self._base.placed()]
        self._jobs = {str(one.job.pk): one for one in found if one}
        self._before = {uid: _placed(self._base.job(uid)) for uid in self._jobs}

    def preview(self) -> DrainPreview:
        moving = [uid for uid, one in self._jobs.items() if one.goes_on]
        after = self._simulator()
        after.settle()
        late = [uid for uid in moving if not self._is_back(after, uid)]
        outlook = self._outlook
        etas = eta.ranges(self._simulator, late, outlook.run_times, outlook.now, self._is_back) if late else {}
        for uid in moving:
            where = {} if uid in late else self._places(after, uid)
            self._jobs[uid] = replace(self._jobs[uid], nodes=where, starts=etas.get(uid))
        deadline = time.monotonic() + _CHECKING_SECONDS
        for uid in late:
            fits = time.monotonic() > deadline or self._fits(uid, is_cordoned=True)
            self._jobs[uid] = replace(self._jobs[uid], fits=fits)
        stranded, unchecked = self._stranded(deadline)
        ordered = sorted(self._jobs.values(), key=lambda one: (-one.lost_gpu_seconds, -one.lost_seconds, one.job.pk))
        return DrainPreview(outlook.now, tuple(ordered), stranded, unchecked)

    def _simulator(self) -> Simulator:
        """A simulation that begins with the drain."""
        simulator = self._outlook.simulator()
        simulator.end([uid for uid, one in self._jobs.items() if one.fate is DrainFate.ENDS], simulator.now)
        simulator.drain(self._node, [uid for uid, one in self._jobs.items() if one.goes_on])
        return simulator

    def _affected(self, uid: str) -> DrainedJob | None:
        """A job with pods on the node, by the lifecycle."""
        row, info = self._base.row(uid), self._base.job(uid)
        here = {pod.uid for pod in info.pods if pod.node == self._node and pod.status in HOLDING} if info else set()
        rows = {uid: self._outlook.snapshot.pods[uid] for uid in here if uid in self._outlook.snapshot.pods}
        leaving = [pod for pod in rows.values() if not pod.stopping]
        if row is None or not leaving:
            return None
        if row.is_external:
            return DrainedJob(row, len(leaving), DrainFate.STAYS)
        pods = self._pods_of(row)
        action, outcome = _outcome(row, pods, leaving, self._outlook.now)
        refs = {(pod.task, pod.index, pod.attempt) for pod in leaving}
        refs |= {(ref.task, ref.index, ref.attempt) for ref in outcome.stop}
        lost = _lost(row, [pod for pod in pods if (pod.task, pod.index, pod.attempt) in refs], self._outlook.now)
        fate = _fate(action, outcome)
        counts = action is not LifecycleAction.SYNC_JOB and fate is not DrainFate.ENDS
        return DrainedJob(
            row,
            len(leaving),
            fate,
            frozenset(pod.pk for pod in leaving),
            len([pod for pod in pods if (pod.task, pod.index, pod.attempt) in refs and not pod.is_final]),
            *lost,
            ends_as=outcome.phase.value if fate is DrainFate.ENDS else "",
            restarts_left=max(spec_of(row).max_retry - outcome.retry_count, 0) if counts else None,
        )

    def _pods_of(self, row: Job) -> Sequence[Pod]:
        return next((pods for pods in self._outlook.snapshot.pods_by_job if pods and pods[0].job_id == row.pk), ())

    def _is_back(self, simulator: Simulator, uid: str) -> bool:
        """Whether the job has as many pods on nodes as before; also if it has ended meanwhile."""
        job = simulator.job(uid)
        return job is None or _placed(job) >= self._before[uid]

    def _places(self, after: Simulator, uid: str) -> dict[str, int]:
        """The nodes where its pods start: not those that go on where they are."""
        goes_on = self._base.nodes(uid) if self._jobs[uid].fate is DrainFate.MOVES else {}
        return dict(Counter(after.nodes(uid)) - Counter({n: count for n, count in goes_on.items() if n != self._node}))

    def _stranded(self, deadline: float) -> tuple[tuple[Job, ...], int]:
        """The waiting jobs that start in an empty cluster with this node, and not without; how many are unknown."""
        found = list[Job]()
        waiting = [uid for uid in self._base.waiting() if uid not in self._jobs]
        for place, uid in enumerate(waiting):
            if time.monotonic() > deadline:
                return tuple(found), len(waiting) - place
            if not self._fits(uid, is_cordoned=True) and self._fits(uid, is_cordoned=False):
                found.append(self._outlook.snapshot.jobs[uid])
        return tuple(found), 0

    def _fits(self, uid: str, *, is_cordoned: bool) -> bool:
        row = self._outlook.snapshot.jobs[uid]
        if row.is_external or any(task.affinity.needs_other_pods for task in spec_of(row).tasks):
            return True
        alone = self._outlook.empty()
        if is_cordoned:
            alone.cordon(self._node)
        alone.put(row)
        return alone.settle(until=uid)


def _outcome(
    job: Job, pods: Sequence[Pod], leaving: Collection[Pod], now: datetime
) -> tuple[LifecycleAction, JobOutcome]:
    """What the job's policies do when these pods have been evicted, and its state then."""
    keys = {pod.pk for pod in leaving}
    facts, found = job_facts(job), [pod_facts(pod) for pod in pods]
    gone = {"phase": PodPhase.FAILED, "stopping": True, "evicted": True, "since": now}
    found = [replace(one, **gone) if pod.pk in keys else one for pod, one in zip(pods, found, strict=True)]  # type: ignore[arg-type]
    changed = [one for pod, one in zip(pods, found, strict=True) if pod.pk in keys]
    for stimulus in lifecycle.stimuli_of(facts, found, changed):
        action = lifecycle.resolve(facts, stimulus)
        if action is not LifecycleAction.SYNC_JOB:
            return action, lifecycle.advance(facts, found, action, stimulus.target, now=now)
    return LifecycleAction.SYNC_JOB, lifecycle.advance(facts, found, LifecycleAction.SYNC_JOB, now=now)


def _fate(action: LifecycleAction, outcome: JobOutcome) -> DrainFate:
    if outcome.phase in _ENDS:
        return DrainFate.ENDS
    return DrainFate.MOVES if action in _STAYS else DrainFate.RESTARTS


def _lost(job: Job, pods: Sequence[Pod], now: datetime) -> tuple[float, float]:
    """The longest run time of these pods, and the run time times cards of all, in seconds."""
    longest = on_cards = 0.0
    for pod in pods:
        if pod.started_at is None or pod.is_final:
            continue
        seconds = max((now - pod.started_at).total_seconds(), 0.0)
        longest = max(longest, seconds)
        on_cards += seconds * sum(card_counts(spec_of(job).task(pod.task).request).values())
    return longest, on_cards


def _placed(job: PodGroupSpec | None) -> int:
    return sum(pod.status in HOLDING for pod in job.pods) if job else 0
