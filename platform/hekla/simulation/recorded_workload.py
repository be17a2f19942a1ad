"""The workload of a cluster as the console recorded it: jobs and pods from rows, nodes from rows and events."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median

from hekla.apps.clusters import node_history
from hekla.apps.clusters.models import Cluster
from hekla.apps.clusters.selectors import policy_texts
from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import job_facts, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.policy_lab.problems import LabProblem, english
from hekla.domain import lifecycle
from hekla.domain.errors import Refused
from hekla.domain.events import FieldChange, JobChanged, NodeChanged
from hekla.domain.lifecycle import Stimulus
from hekla.domain.phases import GangPhase, JobPhase
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction, LifecycleEvent
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.engine.devices import Devices
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec
from hekla.engine.storage import Storage
from hekla.scheduling import cache, snapshot
from hekla.scheduling.runtime_classes import RuntimeClassesByName
from hekla.simulation.lab.workload import (
    MAX_JOBS,
    MAX_PODS,
    CapacityChange,
    EvictionEffect,
    History,
    PolicyUpdate,
    RecordedBind,
    RecordGap,
    RunTime,
    Workload,
    WorkloadJob,
    WorkloadNote,
    in_order,
    with_priority,
)
from hekla.simulation.recorded_queues import queue_history
from hekla.simulation.recorded_times import PodKey, RecordedChange, RecordedTimes, milliseconds, recorded_times

_MAX_EVENTS = 20_000
"""With more changes of nodes, those of the present are used."""
_AT_ONCE = 2000
_GO_ON = frozenset({LifecycleAction.SYNC_JOB, *PARTIAL_ACTIONS})
_RESTARTS = frozenset({LifecycleAction.RESTART_JOB})
Slot = tuple[str, int]


class WorkloadTooLarge(Refused):
    """The period has too many jobs or pods. `problem`: which, as experiments store it."""

    def __init__(self, code: str, limit: int) -> None:
        self.problem = LabProblem(code, {"limit": limit})
        super().__init__(english(self.problem))


def recorded_workload(cluster: Cluster, starts_at: datetime, ends_at: datetime, *, now: datetime) -> Workload:
    """What was submitted to a cluster in a period, and what ran there when it began. Raises WorkloadTooLarge.

    Queues and limits are those of the present.
    """
    starts, ends = milliseconds(starts_at), min(milliseconds(ends_at), milliseconds(now))
    if selectors.of_period(cluster, starts_at, ends_at).count() > MAX_JOBS:  # before anything is read of them
        raise WorkloadTooLarge("too_many_jobs", MAX_JOBS)
    current = cache.read_snapshot(cluster, now=now)
    notes: dict[WorkloadNote, int] = {WorkloadNote.SIMULATED: 1} if cluster.is_simulated else {}
    times = recorded_times(cluster.pk, starts_at, ends_at)
    nodes, changes = _nodes(cluster, current.state, (starts_at, ends_at), times, notes)
    queues, queue_changes = queue_history(cluster, times.changes)
    jobs = list(_jobs(cluster, RecordedRows(current.runtimes, times, starts), (starts_at, ends_at), notes))
    state = replace(
        current.state,
        nodes=nodes,
        queues=queues,
        jobs=(),
        last_shuffle_at=None,
        storage=Storage(),
        devices=Devices(),
        quotas=(),
        budgets=(),
    )
    texts = policy_texts(cluster, starts_at, ends_at)
    policies = tuple(PolicyUpdate(max(starts, milliseconds(at)), text) for at, text in texts)
    releases = [time for job in jobs for some in job.releases.values() for time in some]
    release = int(median(releases)) if releases else 0
    return Workload(
        starts, ends, state, in_order(jobs), changes, notes, times.instants, queue_changes, policies, release
    )


# Jobs.


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """What all jobs need: the runtime classes, the recorded times, and the begin of the period in milliseconds."""

    runtimes: RuntimeClassesByName
    times: RecordedTimes
    starts: int

    def end(self, pod: Pod) -> int | None:
        """When the controller could see that the pod had ended; None: it has not."""
        if pod.finished_at is None:
            return None
        return self.times.ends.get(_key(pod), milliseconds(pod.finished_at))

    def stop(self, pod: Pod) -> int | None:
        """When it was to be stopped; None: it was not, or that is not recorded."""
        return self.times.stops.get(_key(pod))


def _key(pod: Pod) -> PodKey:
    return f"job:{pod.job.uid}", pod.task, pod.index, pod.attempt


def _jobs(
    cluster: Cluster, record: RecordedRows, period: tuple[datetime, datetime], notes: dict[WorkloadNote, int]
) -> Iterator[WorkloadJob]:
    rows = selectors.of_period(cluster, *period)
    priorities = _priorities(record.times.changes)
    pods = 0
    for some in _batches(rows.iterator(_AT_ONCE)):
        by_job: dict[int, list[Pod]] = defaultdict(list)
        known = {row.pk: row for row in some}
        for pod in selectors.pods_of([*known]):
            pod.job = known[pod.job_id]
            by_job[pod.job_id].append(pod)
        for row in some:
            job = _job(row, by_job.get(row.pk, []), record, notes)
            if found := priorities.get(f"job:{row.uid}"):
                job = _with_priorities(job, found)
            pods += len(job.group.pods)
            if pods > MAX_PODS:
                raise WorkloadTooLarge("too_many_pods", MAX_PODS)
            if job.group.pods:
                yield job


def _batches(rows: Iterable[Job]) -> Iterator[list[Job]]:
    some: list[Job] = []
    for row in rows:
        some.append(row)
        if len(some) == _AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _job(row: Job, pods: Sequence[Pod], record: RecordedRows, notes: dict[WorkloadNote, int]) -> WorkloadJob:
    attempts, starts = _attempts(row, pods), record.starts
    group = _group(row, [some[0] for some in attempts.values()], record.runtimes, notes)
    positions = {slot: at for at, slot in enumerate(attempts)}
    binds = [bind for slot, some in attempts.items() for bind in _binds(positions[slot], some, record)]
    history = _history(row, group, binds, pods)
    over = record.times.over.get(f"job:{row.uid}", milliseconds(row.finished_at) if row.finished_at else None)
    return WorkloadJob(
        group,
        record.times.submitted.get(f"job:{row.uid}", milliseconds(row.submitted_at)),
        tuple(_runs(some, record) for some in attempts.values()),
        tenant=row.tenant.name,
        person=row.owner.username,
        leaves=over if row.is_final and history.started is None else None,
        on_eviction=_on_eviction(row),
        history=history,
        placed=dict(_placed(positions, attempts, record)),
        stops={key: time for slot, some in attempts.items() for key, time in _stops(positions[slot], some, record)},
        releases={positions[slot]: found for slot, some in attempts.items() if (found := _releases(some, record))},
        gaps=tuple(_gaps(row, group, pods, starts)),
    )


def _attempts(row: Job, pods: Sequence[Pod]) -> dict[Slot, list[Pod]]:
    """The attempts of each replica in order; of a job without pods, those that it would have got."""
    found: dict[Slot, list[Pod]] = defaultdict(list)
    for pod in pods:
        found[pod.task, pod.index].append(pod)
    if found:
        return {slot: sorted(some, key=lambda pod: pod.attempt) for slot, some in sorted(found.items())}
    fresh = copy(row)
    fresh.phase, fresh.gang_phase, fresh.restart_at = JobPhase.PENDING, GangPhase.INQUEUE, None
    outcome = lifecycle.advance(job_facts(fresh), (), LifecycleAction.SYNC_JOB, now=row.submitted_at)
    for at, ref in enumerate(outcome.create):
        one = Pod(job=row, task=ref.task, index=ref.index, attempt=ref.attempt, version=row.version)
        one.pk, one.created_at = -(row.pk * MAX_PODS + at), row.submitted_at
        found[ref.task, ref.index].append(one)
    return dict(found)


def _group(
    row: Job, pods: Iterable[Pod], runtimes: RuntimeClassesByName, notes: dict[WorkloadNote, int]
) -> PodGroupSpec:
    """The job for the engine as it was submitted, without claims to devices and volumes."""
    fresh, spec = copy(row), spec_of(row)
    fresh.gang_phase, fresh.spec_in_hand = GangPhase.PENDING, spec
    group = snapshot.job(fresh, [_fresh(pod, row) for pod in pods], {}, runtimes)
    if not any(_claims(pod) for pod in group.pods):
        return group
    notes[WorkloadNote.NO_CLAIMS] = notes.get(WorkloadNote.NO_CLAIMS, 0) + 1
    return replace(group, pods=tuple(map(_without_claims, group.pods)))


def _fresh(pod: Pod, row: Job) -> Pod:
    """The pod as it was created: pending, of the present version of its job."""
    made = Pod(job=row, task=pod.task, index=pod.index, attempt=pod.attempt, slot=pod.slot, version=row.version)
    made.pk, made.created_at = pod.pk, row.submitted_at
    return made


def _claims(pod: PodSpec) -> bool:
    return bool(pod.constraints.volume_claims or pod.constraints.device_claims)


def _without_claims(pod: PodSpec) -> PodSpec:
    constraints = replace(pod.constraints, volume_claims=(), device_claims=())
    return replace(pod, constraints=constraints, claimed_devices=Resources())


def _gaps(row: Job, group: PodGroupSpec, pods: Sequence[Pod], starts: int) -> Iterator[RecordGap]:
    """Why a run may differ from what happened to this job."""
    if milliseconds(row.submitted_at) < starts:
        yield RecordGap.BEFORE
    if row.version > 1:
        yield RecordGap.RESTARTED
    if row.revision > 1 and (row.reserved_slots or len(group.pods) != row.replicas):
        yield RecordGap.RESIZED
    if spec_of(row).has_dependencies:
        yield RecordGap.STAGES
    if row.is_external:
        yield RecordGap.EXTERNAL
    if any(pod.annotations for pod in pods) or spec_of(row).claims_devices or spec_of(row).volumes:
        yield RecordGap.CLAIMS


def _on_eviction(row: Job) -> EvictionEffect:
    facts = job_facts(row)
    for task in spec_of(row).tasks:
        action = lifecycle.resolve(facts, Stimulus(event=LifecycleEvent.POD_EVICTED, task=task.name))
        if action not in _GO_ON:
            return EvictionEffect.JOB if action in _RESTARTS else EvictionEffect.END
    return EvictionEffect.PODS


def _priorities(changes: Iterable[RecordedChange]) -> Mapping[str, list[tuple[int, FieldChange]]]:
    found: dict[str, list[tuple[int, FieldChange]]] = defaultdict(list)
    for one in changes:
        if isinstance(one.event, JobChanged) and (change := one.event.changes.get("priority")) is not None:
            found[one.subject].append((one.at, change))
    return found


def _with_priorities(job: WorkloadJob, changes: Sequence[tuple[int, FieldChange]]) -> WorkloadJob:
    """The job with the priority that it had first, and those that it got."""
    group = with_priority(job.group, _number(changes[0][1].old))
    return replace(job, group=group, priorities=tuple((at, _number(change.new)) for at, change in changes))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _runs(attempts: Sequence[Pod], record: RecordedRows) -> tuple[RunTime, ...]:
    """The run times from the begin of the period on."""
    found: list[RunTime] = []
    for pod in attempts:
        if pod.bound_at is None or pod.evicted:
            continue
        end = record.end(pod)
        if end is None:
            found.append(None)
        elif end > record.starts:
            found.append(max(0, end - max(record.starts, milliseconds(pod.bound_at))))
    return tuple(found)


def _stops(position: int, attempts: Sequence[Pod], record: RecordedRows) -> Iterator[tuple[tuple[int, int], int]]:
    number = 0
    for pod in attempts:
        if pod.bound_at is None or pod.evicted:
            continue
        end, stop = record.end(pod), record.stop(pod)
        if end is not None and end <= record.starts:
            continue
        if end is not None and stop is not None and stop < end:
            yield (position, number), end - max(stop, milliseconds(pod.bound_at))
        number += 1


def _releases(attempts: Sequence[Pod], record: RecordedRows) -> tuple[int, ...]:
    ends = ((record.stop(pod), record.end(pod)) for pod in attempts if pod.evicted and pod.bound_at is not None)
    return tuple(max(0, end - stop) for stop, end in ends if stop is not None and end is not None)


def _binds(position: int, attempts: Sequence[Pod], record: RecordedRows) -> Iterator[RecordedBind]:
    number = 0
    for pod in attempts:
        if pod.bound_at is None:
            continue
        at, end = milliseconds(pod.bound_at), record.end(pod)
        yield RecordedBind(position, number, pod.node, at, None if end is None else max(at, end))
        number += not pod.evicted


def _history(row: Job, group: PodGroupSpec, binds: Sequence[RecordedBind], pods: Sequence[Pod]) -> History:
    firsts: dict[int, int] = {}
    for one in binds:
        firsts[one.pod] = min(one.at, firsts.get(one.pod, one.at))
    least = max(1, min(group.min_available, len(group.pods)))
    starts = sorted(firsts.values())
    started = starts[least - 1] if len(starts) >= least else None
    ended = row.finished_at if row.is_final and started is not None else None
    finished = None if ended is None or started is None else max(started, milliseconds(ended))
    return History(started, finished, tuple(binds), sum(pod.evicted for pod in pods))


def _placed(
    positions: Mapping[Slot, int], attempts: Mapping[Slot, Sequence[Pod]], record: RecordedRows
) -> Iterator[tuple[int, str]]:
    """The pods that were on nodes when the period began."""
    for slot, some in attempts.items():
        for pod in some:
            began = pod.bound_at is not None and milliseconds(pod.bound_at) < record.starts
            end = record.end(pod)
            if began and (end is None or end > record.starts):
                yield positions[slot], pod.node


# Nodes.


def _nodes(
    cluster: Cluster,
    state: ClusterState,
    period: tuple[datetime, datetime],
    times: RecordedTimes,
    notes: dict[WorkloadNote, int],
) -> tuple[tuple[NodeSpec, ...], tuple[CapacityChange, ...]]:
    """The nodes at the begin of the period, and their changes from then on, as far as events tell.

    Those after the period are left out if there are too many: of an old period, most are after it.
    """
    known = {node.name: replace(node, usage=None) for node in state.nodes}
    starts_at, ends_at = period
    within = [(one.at, one.event) for one in times.changes if isinstance(one.event, NodeChanged)]
    changing = {event.node for _at, event in within}
    if len(within) > _MAX_EVENTS:
        within = [(at, event) for at, event in within if at < milliseconds(ends_at)]
    if len(within) > _MAX_EVENTS:
        notes[WorkloadNote.NODES_NOW] = 1
        return tuple(known.values()), ()
    first = {event.node: event for event in node_history.last_changes(cluster.pk, starts_at)}
    nodes = [found for name in {**known, **first} if (found := _at_begin(name, known, first, changing)) is not None]
    changes = [CapacityChange(at, event.node, _node(event, known)) for at, event in within]
    notes[WorkloadNote.NODES_FROM_EVENTS] = len(changes)
    return tuple(nodes), tuple(changes)


def _at_begin(
    name: str,
    known: Mapping[str, NodeSpec],
    first: Mapping[str, NodeChanged],
    changing: Collection[str],
) -> NodeSpec | None:
    """A node when the period began; None if it did not exist. `changing`: the nodes that changed after its begin."""
    if name in first:
        return _node(first[name], known)
    return None if name in changing else known.get(name)


def _node(event: NodeChanged, known: Mapping[str, NodeSpec]) -> NodeSpec | None:
    """The node after an event; labels are those of today, of a node that is gone there are none."""
    if not event.present:
        return None
    now = known.get(event.node) or NodeSpec(event.node, Resources())
    try:
        size = Resources.parse(event.allocatable) if event.allocatable else now.allocatable
    except InvalidQuantity:
        size = now.allocatable
    size = now.allocatable if size == now.allocatable else size
    return replace(now, allocatable=size, is_ready=event.ready, unschedulable=not (event.ready and event.schedulable))
