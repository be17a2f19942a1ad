"""The specification of a job from its group of external pods, and its changes with those of the PodGroup."""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hekla.apps.event_log.services import CONTROLLER
from hekla.apps.external_pods.models import ExternalGroup
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.telling import tell
from hekla.apps.queues import selectors as queues
from hekla.domain import events, external_pods
from hekla.domain.errors import Invalid
from hekla.domain.external_pods import ExternalTasks, GroupKind, ObservedGroup
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import PodRef
from hekla.domain.phases import GangPhase

log = logging.getLogger(__name__)


def tasks_of(group: ObservedGroup, spec: JobSpec | None, *, has_pods: bool) -> ExternalTasks:
    """The tasks of the job; a placeholder while there are no pods."""
    tasks = ExternalTasks(spec)
    if not has_pods and group.minimum:
        tasks.expect(group.request, group.minimum)
    return tasks


def priority_of(group: ObservedGroup, job: Job | None) -> int:
    """The priority of its PodGroup, or of its last one if that is missing; else the highest one of its pods."""
    own = job.external.priority if job and not group.minimum else group.priority
    return max((pod.priority for pod in group.pods), default=0) if own is None else own


def spec_of_group(
    group: ObservedGroup,
    known: JobSpec | None,
    tasks: ExternalTasks,
    refs: Sequence[PodRef],
    *,
    name: str,
    queue: str,
    priority: int,
) -> JobSpec:
    """The job spec of the group with these replicas. If its PodGroup is missing, the known one's policy stays."""
    return external_pods.build_spec(
        group.ref,
        tasks,
        refs,
        name=name,
        queue=queue,
        priority=priority,
        minimum=group.minimum or (known.gang_minimum if known else 1),
        request=group.request if group.minimum or known is None else known.min_resources,
        topology=_topology(known) if known and not group.minimum else group.policy.topology,
    )


def differs(job: Job, group: ObservedGroup) -> bool:
    """Whether the PodGroup of an unfinished job has changed. Costs no query."""
    if group.ref.kind is not GroupKind.POD_GROUP or not group.minimum or job.is_final:
        return False
    spec, own, policy = spec_of(job), job.external, group.policy
    known = (own.roles, own.sub_groups, own.priority, spec.gang_minimum, spec.min_resources, _topology(spec))
    minimum = external_pods.gang_minimum(group.minimum)
    return known != (policy.roles, list(policy.sub_groups), group.priority, minimum, group.request, policy.topology)


def adapt(job: Job, group: ObservedGroup, pods: Sequence[Pod], now: datetime) -> None:
    """Change the job as its PodGroup has changed."""
    spec = spec_of(job)
    priority = spec.priority if group.priority == job.external.priority else priority_of(group, job)
    tasks, refs = tasks_of(group, spec, has_pods=bool(pods)), [PodRef(pod.task, pod.index, pod.attempt) for pod in pods]
    try:
        new = spec_of_group(group, spec, tasks, refs, name=spec.name, queue=spec.queue, priority=priority)
    except Invalid as error:  # its pods are followed all the same
        log.warning("the changed group %s does not count: %s", group.ref.key, error)
    else:
        resize(job, group, new, now)


def follow_queue(job: Job, group: ObservedGroup, now: datetime) -> bool:
    """Move a job that is not admitted yet to the queue that its PodGroup names, if its tenant may use it."""
    spec = spec_of(job)
    names_another = group.ref.kind is GroupKind.POD_GROUP and group.queue and group.queue != spec.queue
    if not names_another or job.is_final or job.gang_phase != GangPhase.PENDING:
        return False
    found = (one for one in queues.open_to(job.tenant) if one.cluster_id == job.cluster_id and one.is_open)
    queue = next((one for one in found if one.name == group.queue), None)
    if queue is None:
        return False
    changes = {"queue": events.FieldChange(old=spec.queue, new=queue.name)}
    job.spec_in_hand = spec.model_copy(update={"queue": queue.name})
    job.queue, job.spec, job.revision = queue, job.spec_in_hand.document(), job.revision + 1
    job.save(update_fields=["queue", "spec", "revision"])
    tell(job, events.JobChanged(changes=changes, revision=job.revision), actor=CONTROLLER, now=now)
    return True


def _topology(spec: JobSpec) -> dict[str, Any]:
    """The network topology of the job, as in its group's policy."""
    if (found := spec.network_topology) is None:
        return {}
    return {"mode": found.mode, **found.model_dump(mode="json", exclude={"mode"}, exclude_defaults=True)}


def resize(job: Job, group: ObservedGroup, spec: JobSpec, now: datetime) -> None:
    """Change the specification of the job, and how its pods are placed together."""
    old, own = spec_of(job), job.external
    before, after = _sizes(old), _sizes(spec)
    changes = {name: events.FieldChange(old=before.get(name, 0), new=size) for name, size in after.items()}
    changes = {name: change for name, change in changes.items() if change.old != change.new}
    fields = [name for name in ("min_resources", "network_topology") if getattr(old, name) != getattr(spec, name)]
    fields += _write_policy(own, group) if group.minimum else []
    if old == spec and not fields:
        return
    job.spec, job.replicas, job.priority, job.revision = spec.document(), spec.replicas, spec.priority, job.revision + 1
    job.spec_in_hand = spec
    job.save(update_fields=["spec", "replicas", "priority", "revision"])
    changes |= {name: events.FieldChange() for name in fields}
    tell(job, events.JobChanged(changes=changes, revision=job.revision), actor=CONTROLLER, now=now)


def _write_policy(own: ExternalGroup, group: ObservedGroup) -> list[str]:
    """Record the policy. Returns the names of the fields that changed, for the event log."""
    policy: dict[str, Any] = {"roles": dict(group.policy.roles), "sub_groups": list(group.policy.sub_groups)}
    wanted = policy | {"priority": group.priority}
    changed = [name for name, value in wanted.items() if getattr(own, name) != value]
    for name in changed:
        setattr(own, name, wanted[name])
    if changed:
        own.save(update_fields=changed)
    return [name for name in changed if name in policy]


def _sizes(spec: JobSpec) -> dict[str, int]:
    """The fields that can change, by their names in the event log."""
    replicas = {f"{task.name}.replicas": task.replicas for task in spec.tasks}
    return {"priority": spec.priority, "min_available": spec.gang_minimum, **replicas}
