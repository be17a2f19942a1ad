"""A workload as one JSON document: for the process that runs it, and for files that people store.

Reading runs no code: objects of the engine are those of `scheduling.column_codec`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hekla.engine.model import ClusterState, NodeSpec, QueueSpec
from hekla.scheduling.column_codec import InvalidRecord, Json
from hekla.scheduling.cycle_document import CycleOutcome, RecordedCycle, document, read
from hekla.simulation.lab.workload import (
    MAX_JOBS,
    MAX_PODS,
    CapacityChange,
    EvictionEffect,
    History,
    PolicyUpdate,
    QueueUpdate,
    RecordedBind,
    RecordGap,
    RunTime,
    Workload,
    WorkloadJob,
    WorkloadNote,
)

FORMAT = 2
_KIND = "hekla workload"


def workload_document(workload: Workload) -> dict[str, Any]:
    """The workload as JSON."""
    nodes = tuple(one.node for one in workload.changes if one.node is not None)
    return {
        "kind": _KIND,
        "format": FORMAT,
        "period": [workload.starts, workload.ends],
        "state": _state(replace(workload.state, jobs=tuple(job.group for job in workload.jobs))),
        "jobs": [_job(job) for job in workload.jobs],
        "changes": [[one.at, one.name, one.node is not None] for one in workload.changes],
        "changed_nodes": _state(ClusterState(nodes, (), ())),
        "notes": {str(name): count for name, count in workload.notes.items()},
        "instants": list(workload.instants),
        "queues": [one.at for one in workload.queues],
        "queue_specs": _state(ClusterState((), tuple(one.queue for one in workload.queues), ())),
        "policies": [list(one) for one in workload.policies],
        "release": workload.release,
    }


def _state(state: ClusterState) -> Json:
    return document(RecordedCycle(state, "", 0.0, CycleOutcome()))


def _job(job: WorkloadJob) -> Json:
    history = job.history
    return [
        job.submitted,
        _runs(job.runs),
        job.tenant,
        job.person,
        job.leaves,
        str(job.on_eviction),
        [history.started, history.finished, history.evictions, [list(one) for one in history.binds]],
        [[pod, node] for pod, node in job.placed.items()],
        [[*key, time] for key, time in job.stops.items()],
        [[pod, list(times)] for pod, times in job.releases.items()],
        [list(one) for one in job.priorities],
        list(map(str, job.gaps)),
    ]


def _runs(runs: tuple[tuple[RunTime, ...], ...]) -> Json:
    """The run times of each pod; once if all pods have the same."""
    return ["all", list(runs[0])] if len(set(runs)) == 1 else ["each", [list(one) for one in runs]]


def read_workload(data: Json) -> Workload:
    """The workload of a document. Raises InvalidRecord."""
    try:
        if not isinstance(data, dict) or data["kind"] != _KIND or data["format"] != FORMAT:
            raise InvalidRecord("The file is no workload in a format that this version reads.")
        state = read(data["state"]).state
        if len(state.jobs) > MAX_JOBS or sum(len(group.pods) for group in state.jobs) > MAX_PODS:
            raise InvalidRecord("The workload is too large.")
        starts, ends = map(_whole, data["period"])
        jobs = tuple(_read_job(group, one) for group, one in zip(state.jobs, data["jobs"], strict=True))
        if len({job.uid for job in jobs}) < len(jobs):
            raise InvalidRecord("Two jobs have the same name.")
        changes = _read_changes(data["changes"], read(data["changed_nodes"]).state.nodes)
        notes = {WorkloadNote(name): _whole(count) for name, count in data["notes"].items()}
        instants = tuple(sorted(map(_whole, data["instants"])))
        return Workload(
            starts,
            ends,
            replace(state, jobs=()),
            jobs,
            changes,
            notes,
            instants,
            _read_queues(data["queues"], read(data["queue_specs"]).state.queues),
            tuple(PolicyUpdate(_whole(at), str(text)) for at, text in data["policies"]),
            _whole(data["release"]),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, StopIteration) as error:
        if isinstance(error, InvalidRecord):
            raise
        raise InvalidRecord("The workload is incomplete.") from error


def _read_job(group: Any, data: Json) -> WorkloadJob:  # noqa: ANN401
    submitted, runs, tenant, person, leaves, effect, history, placed, *rest = data
    stops, releases, priorities, gaps = rest
    started, finished, evictions, binds = history
    pods = len(group.pods)
    times = _read_runs(runs, pods)
    if len(times) != pods or any(not 0 <= one[0] < pods for one in (*binds, *placed)):
        raise InvalidRecord("The pods of a job are incomplete.")
    return WorkloadJob(
        group,
        _whole(submitted),
        times,
        str(tenant),
        str(person),
        _time(leaves),
        EvictionEffect(effect),
        History(_time(started), _time(finished), tuple(_bind(one) for one in binds), _whole(evictions)),
        {_whole(pod): str(node) for pod, node in placed},
        {(_whole(pod), _whole(attempt)): _whole(time) for pod, attempt, time in stops},
        {_whole(pod): tuple(map(_whole, times)) for pod, times in releases},
        tuple((_whole(at), _priority(priority)) for at, priority in priorities),
        tuple(map(RecordGap, gaps)),
    )


def _priority(value: object) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise InvalidRecord("A priority of the workload is out of range.")
    return value


def _read_queues(times: Json, queues: Sequence[QueueSpec]) -> tuple[QueueUpdate, ...]:
    return tuple(QueueUpdate(_whole(at), queue) for at, queue in zip(times, queues, strict=True))


def _read_runs(data: Json, pods: int) -> tuple[tuple[RunTime, ...], ...]:
    how, times = data
    if how == "all":
        return (tuple(map(_time, times)),) * pods
    return tuple(tuple(map(_time, one)) for one in times)


def _bind(data: Json) -> RecordedBind:
    pod, attempt, node, at, until = data
    return RecordedBind(_whole(pod), _whole(attempt), str(node), _whole(at), _time(until))


def _read_changes(data: Json, nodes: Sequence[NodeSpec]) -> tuple[CapacityChange, ...]:
    new = iter(nodes)
    return tuple(CapacityChange(_whole(at), str(name), next(new) if is_node else None) for at, name, is_node in data)


def _whole(value: object) -> int:
    """A number of the document. Times before 1970 or after the year 9999 are refused: sums would leave what fits."""
    if type(value) is not int or not 0 <= value < 2**48:
        raise InvalidRecord("A number of the workload is out of range.")
    return value


def _time(value: object) -> int | None:
    return None if value is None else _whole(value)
