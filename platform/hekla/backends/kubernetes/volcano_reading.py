"""From objects of Volcano to what the controller knows."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hekla.backends.delegated import JobReport, JobSize, NewPod, PodReport
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.reading import Seen
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

_MOST = 500


def job_report(job: Json, group: Json | None) -> JobReport:
    """How the job stands; `group`: its PodGroup, which it has not at once and not for ever."""
    status = job.get("status") or {}
    state = status.get("state") or {}
    phase = _phase(state.get("phase"))
    return JobReport(
        phase=phase,
        gang_phase=_gang_phase(group, phase),
        retry_count=int(status.get("retryCount") or 0),
        reason=str(state.get("reason") or ""),
        message=str(state.get("message") or "")[:_MOST],
        waits=_condition(group) if phase is JobPhase.PENDING else "",
        size=size_of(job),
    )


def size_of(job: Json) -> JobSize:
    """A task that says no minimum needs all of its replicas."""
    spec = job.get("spec") or {}
    tasks = {task["name"]: (int(task.get("replicas") or 0), task) for task in spec.get("tasks") or ()}
    sizes = {name: (count, int(task.get("minAvailable", count))) for name, (count, task) in tasks.items()}
    return JobSize(sizes, int(spec.get("minAvailable") or 0))


def lacks_group(job: Json, group: Json | None) -> bool:
    """Whether it was killed to begin again, and has no PodGroup by which Volcano would begin."""
    status = job.get("status") or {}
    phase = _phase((status.get("state") or {}).get("phase"))
    return group is None and phase in (JobPhase.PENDING, JobPhase.RESTARTING) and bool(status.get("version"))


def _phase(word: object) -> JobPhase:
    """One that no controller has seen yet has none."""
    try:
        return JobPhase(str(word).lower())
    except ValueError:
        return JobPhase.PENDING


def _gang_phase(group: Json | None, phase: JobPhase) -> GangPhase:
    if group is None:
        is_over = phase.is_final and phase is not JobPhase.ABORTED
        return GangPhase.COMPLETED if is_over else GangPhase.PENDING
    try:
        return GangPhase(str((group.get("status") or {}).get("phase")).lower())
    except ValueError:
        return GangPhase.PENDING


def _condition(group: Json | None) -> str:
    """Why its pods find no place."""
    conditions = ((group or {}).get("status") or {}).get("conditions") or ()
    told = [one for one in conditions if one.get("type") == "Unschedulable" and one.get("status") == "True"]
    return _sentence(told[-1]) if told else ""


def _sentence(told: Mapping[str, Any]) -> str:
    return str(told.get("message") or told.get("reason") or "")[:_MOST]


def last_words(events: Iterable[Json]) -> dict[str, str]:
    """What was said last of each object, by its uid: why it is not let in, else whatever it was."""
    ordered = sorted(events, key=lambda event: (_keeps_out(event), _when(event)))
    return {event["involvedObject"].get("uid", ""): _sentence(event) for event in ordered}


def _keeps_out(event: Json) -> bool:
    """It says why a gang is not let in, which its condition does not; Volcano takes that for normal."""
    return event.get("type") == "Normal" and event.get("reason") == "Unschedulable"


def _when(event: Json) -> str:
    """Seconds are enough to order them, and all are written in the same form."""
    told = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return str(told)[:19]


def with_words(report: JobReport, said: Mapping[str, str], job: Json, group: Json | None) -> JobReport:
    """The report with what was last said of its group, else of the job itself, else as it is."""
    uids = [one["metadata"]["uid"] for one in (group, job) if one is not None]
    return replace(report, waits=next((said[uid] for uid in uids if uid in said), report.waits))


def needs_words(report: JobReport) -> bool:
    """Whether only events tell why it waits: of a gang that is not let in, conditions say only that it has no pods."""
    return report.phase is JobPhase.PENDING and (not report.waits or report.gang_phase is GangPhase.PENDING)


def new_pod(pod: Json) -> NewPod | None:
    """Which replica it is, by its name: that ends with its number in every version of Volcano."""
    meta = pod["metadata"]
    labels, number = meta["labels"], meta["name"].rpartition("-")[2]
    if not (number.isdigit() and names.JOB in labels and names.TASK in labels):
        return None
    return NewPod(labels[names.JOB], labels[names.TASK], int(number), meta["name"], meta["uid"])


def report(pod: Seen) -> PodReport:
    """One that has no machine yet waits for it, whatever its containers say."""
    told = pod.observation
    if not (pod.is_bound or told.phase.is_final):
        told = replace(told, phase=PodPhase.PENDING)
    return PodReport(told, pod.node, pod.is_stopping)


def difference(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes what is there as it is wanted; fields of which nothing is wanted stay."""
    found: dict[str, Any] = {}
    for name, value in wanted.items():
        old = there.get(name)
        if isinstance(value, Mapping):
            inner = {key: None for key in old or {} if key not in value} | difference(old or {}, value)
            found |= {name: inner} if inner else {}
        elif old != value and not (old is None and value in (None, 0) and value is not False):
            found[name] = value
    return found
