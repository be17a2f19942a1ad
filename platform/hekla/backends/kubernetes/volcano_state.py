"""Convert Volcano's objects to reports for the controller."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hekla.backends.delegated import DelegatedJobSize, JobReport, NewPod, PodReport
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.pod_state import PodState
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.queue_settings import OF_ANNOTATIONS

_MAX_MESSAGE = 500


def job_report(job: Json, group: Json | None) -> JobReport:
    """The state of the job. `group`: its PodGroup, which is created after the job and may be deleted before it."""
    status = job.get("status") or {}
    state = status.get("state") or {}
    phase = _phase(state.get("phase"))
    return JobReport(
        phase=phase,
        gang_phase=_gang_phase(group, phase),
        retry_count=int(status.get("retryCount") or 0),
        reason=str(state.get("reason") or ""),
        message=str(state.get("message") or "")[:_MAX_MESSAGE],
        waits=_condition(group) if phase is JobPhase.PENDING else "",
        size=size_of(job),
    )


def size_of(job: Json) -> DelegatedJobSize:
    """The size of the job. A task without a minimum needs all its replicas."""
    spec = job.get("spec") or {}
    tasks = {task["name"]: (int(task.get("replicas") or 0), task) for task in spec.get("tasks") or ()}
    sizes = {name: (count, int(task.get("minAvailable", count))) for name, (count, task) in tasks.items()}
    return DelegatedJobSize(sizes, int(spec.get("minAvailable") or 0))


def lacks_group(job: Json, group: Json | None) -> bool:
    """Whether the job was killed for a restart, and has no PodGroup, without which Volcano does not restart it."""
    status = job.get("status") or {}
    phase = _phase((status.get("state") or {}).get("phase"))
    return group is None and phase in (JobPhase.PENDING, JobPhase.RESTARTING) and bool(status.get("version"))


def _phase(text: object) -> JobPhase:
    """The phase of a job; pending if no controller has handled it yet."""
    try:
        return JobPhase(str(text).lower())
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
    """Why the pods of the group cannot be placed; empty if not known."""
    conditions = ((group or {}).get("status") or {}).get("conditions") or ()
    waiting = [one for one in conditions if one.get("type") == "Unschedulable" and one.get("status") == "True"]
    return _message(waiting[-1]) if waiting else ""


def _message(found: Mapping[str, Any]) -> str:
    return str(found.get("message") or found.get("reason") or "")[:_MAX_MESSAGE]


def last_messages(events: Iterable[Json]) -> dict[str, str]:
    """The last message about each object, by its uid. A message why it is not admitted has precedence."""
    ordered = sorted(events, key=lambda event: (_is_not_admitted(event), _time(event)))
    return {event["involvedObject"].get("uid", ""): _message(event) for event in ordered}


def _is_not_admitted(event: Json) -> bool:
    """Whether the event says why a gang is not admitted. Conditions do not say it; Volcano reports it as Normal."""
    return event.get("type") == "Normal" and event.get("reason") == "Unschedulable"


def _time(event: Json) -> str:
    """The time of the event as text, to the second, for sorting."""
    time = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return str(time)[:19]


def with_message(report: JobReport, messages: Mapping[str, str], job: Json, group: Json | None) -> JobReport:
    """The report with the last message about its PodGroup, else about the job, else unchanged."""
    uids = [one["metadata"]["uid"] for one in (group, job) if one is not None]
    return replace(report, waits=next((messages[uid] for uid in uids if uid in messages), report.waits))


def needs_message(report: JobReport) -> bool:
    """Whether only events say why the job is pending. Conditions of a gang that is not admitted say only that it has
    no pods.
    """
    return report.phase is JobPhase.PENDING and (not report.waits or report.gang_phase is GangPhase.PENDING)


def new_pod(pod: Json) -> NewPod | None:
    """The pod with its replica, or None if it is not a job's. In all versions of Volcano its name ends in the index."""
    meta = pod["metadata"]
    labels, number = meta["labels"], meta["name"].rpartition("-")[2]
    if not (number.isdigit() and names.JOB in labels and names.TASK in labels):
        return None
    return NewPod(labels[names.JOB], labels[names.TASK], int(number), meta["name"], meta["uid"])


def pod_report(pod: PodState) -> PodReport:
    """The report of the pod. A pod without a node that has not ended is pending."""
    observation = pod.observation
    if not (pod.is_bound or observation.phase.is_final):
        observation = replace(observation, phase=PodPhase.PENDING)
    return PodReport(observation, pod.node, pod.is_stopping)


def queue_patch(found: Json, wanted: Json) -> Json:
    """The merge patch of a Queue's spec and of the annotations that are Hekla's; empty if nothing differs."""
    notes = dict.fromkeys(OF_ANNOTATIONS.values()) | wanted["metadata"].get("annotations", {})
    annotations = merge_patch(found.get("metadata", {}).get("annotations") or {}, notes)
    spec = merge_patch(found.get("spec") or {}, wanted["spec"])
    return ({"metadata": {"annotations": annotations}} if annotations else {}) | ({"spec": spec} if spec else {})


def merge_patch(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from `found` to `wanted`. Top-level fields that are not in `wanted` stay."""
    change: dict[str, Any] = {}
    for name, value in wanted.items():
        old = found.get(name)
        if isinstance(value, Mapping):
            inner = {key: None for key in old or {} if key not in value} | merge_patch(old or {}, value)
            change |= {name: inner} if inner else {}
        elif old != value and not (old is None and value in (None, 0) and value is not False):
            change[name] = value
    return change
