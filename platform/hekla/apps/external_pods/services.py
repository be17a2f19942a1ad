"""Records pods of other controllers as jobs, and follows their state. Job policies do not apply to them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.external_pods import group_changes, selectors
from hekla.apps.external_pods.models import ExternalGroup, ExternalPodRow
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.facts import all_pod_facts, job_facts, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.observations import ORDER, POD_FIELDS, Sighting, record_observation
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import enter_pod_phase, write
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.rows import save_all
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events, external_pods
from hekla.domain.addresses import Replica
from hekla.domain.errors import Refused
from hekla.domain.external_pods import ExternalPod, ExternalPodRules, ObservedGroup, RecordedPod
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import PodRef, delegated
from hekla.domain.phases import GangPhase, PodPhase

_FIELDS = (*POD_FIELDS, "node", "bound_at")
_OF_BIND = ("cards", "annotations")
GONE = "The pod was deleted, or pods of its namespace are not placed from here any more."


@dataclass(frozen=True, slots=True)
class GroupOwner:
    """The tenant, queue and owner of a group in the console."""

    tenant: Tenant
    queue: Queue
    owner: User


def find_owner(cluster: Cluster, rules: ExternalPodRules, namespace: str, wanted_queue: str) -> GroupOwner:
    """The tenant, queue and owner of pods in this namespace. Raises Refused with what is missing."""
    slug = rules.tenants.get(namespace, "")
    tenant = tenancy.all_tenants().filter(slug=slug).first()
    if tenant is None:
        sentence = _("Hekla has no tenant “%(slug)s”, so pods of the namespace %(namespace)s are not scheduled.")
        raise Refused(sentence % {"slug": slug, "namespace": namespace})
    open_to = {queue.name: queue for queue in queues.open_to(tenant) if queue.cluster_id == cluster.pk}
    queue = open_to.get(wanted_queue) or open_to.get(rules.queue)
    if queue is None:
        sentence = _("Tenant %(slug)s has no queue “%(name)s” on this cluster.")
        raise Refused(sentence % {"slug": slug, "name": wanted_queue or rules.queue})
    if not queue.is_open:
        raise Refused(_("Queue %(name)s accepts no jobs now.") % {"name": queue.name})
    owner = accounts.by_username(rules.owner)
    if owner is None:
        raise Refused(_("Hekla has no account “%(name)s” to own these pods.") % {"name": rules.owner})
    return GroupOwner(tenant, queue, owner)


def follow(cluster: Cluster, epoch: int, group: ObservedGroup, rules: ExternalPodRules, *, now: datetime) -> bool:
    """Update the rows to the state of the group. Returns whether anything changed.

    Raises Refused if the group cannot be recorded, LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster.pk, epoch)
        known = _job_of(cluster, group)
        if known is None and not group.expects_pods and all(pod.phase.is_final for pod in group.pods):
            return False
        if known is None and not group.minimum:
            raise Refused(_("PodGroup %(name)s does not exist or is not visible to Hekla.") % {"name": group.ref.name})
        at = find_owner(cluster, rules, group.ref.namespace, group.queue) if _has_news(known, group) else None
        has_moved = known is not None and group_changes.follow_queue(known, group, now)
        return _follow(cluster, group, known, at, now) or has_moved


def _job_of(cluster: Cluster, group: ObservedGroup) -> Job | None:
    """The group's job, locked, or None. An ended job does not count if its name is used again by other pods."""
    found = selectors.group_of(cluster.pk, group.ref.key)
    if found is None:
        return None
    job = found.job = job_rows.locked(found.pk)
    if not job.is_final or not (group.pods or group.expects_pods) or (group.maker and group.maker == found.maker):
        return job
    mine = selectors.pods_of(job)
    return job if group.pods and all(pod.uid in mine for pod in group.pods) else None


def _has_news(job: Job | None, group: ObservedGroup) -> bool:
    return (job is None and group.expects_pods) or bool(_fresh(group, selectors.pods_of(job) if job else {}))


def _fresh(group: ObservedGroup, mine: Mapping[str, ExternalPodRow]) -> list[ExternalPod]:
    found = [pod for pod in group.pods if pod.uid not in mine and not pod.phase.is_final and not pod.obstacle]
    return sorted(found, key=lambda pod: (pod.made_at, pod.name))


def _follow(cluster: Cluster, group: ObservedGroup, job: Job | None, at: GroupOwner | None, now: datetime) -> bool:
    mine = selectors.pods_of(job) if job else {}
    pods = job_rows.pods_of(job) if job else []
    current = {pod.uid: pod for pod in group.pods}
    by_pk = {pod.pk: pod for pod in pods}
    changed = _follow_pods(job, {uid: by_pk[one.pk] for uid, one in mine.items()}, current, now) if job else False
    if at is not None:
        job, changed = _joined(cluster, group, job, at, pods, mine, now), True
        fresh = {uid: one for uid, one in selectors.pods_of(job).items() if uid not in mine}
        by_pk = {pod.pk: pod for pod in pods}
        _follow_pods(job, {uid: by_pk[one.pk] for uid, one in fresh.items()}, current, now)
    elif job is not None and group_changes.differs(job, group):
        group_changes.adapt(job, group, pods, now)
        changed = True
    is_empty = not (pods or group.minimum)
    return (job is not None and bool(pods or is_empty) and _follow_job(job, pods, now)) or changed


def _joined(
    cluster: Cluster,
    group: ObservedGroup,
    job: Job | None,
    at: GroupOwner,
    pods: list[Pod],
    mine: Mapping[str, ExternalPodRow],
    now: datetime,
) -> Job:
    """Record new pods as attempts of replicas, in a new job or in the job resized to fit them."""
    spec = spec_of(job) if job else None
    roles = group_changes.tasks_of(group, spec, has_pods=bool(pods or group.pods))
    names = {one.pk: one.name for one in mine.values()}
    held = [RecordedPod(_ref(pod), names.get(pod.pk, ""), PodPhase(pod.phase)) for pod in pods]
    with_task = [(pod, task) for pod in _fresh(group, mine) if (task := roles.task_of(pod))]
    places = external_pods.assign_refs(with_task, held)
    refs = [*(one.ref for one in held), *(ref for _pod, ref in places)]
    name = spec.name if spec else _free_name(group, at.tenant)
    queue = spec.queue if spec else at.queue.name
    priority = group_changes.priority_of(group, job)
    new = group_changes.spec_of_group(group, spec, roles, refs, name=name, queue=queue, priority=priority)
    if job is None:
        job = _submitted(cluster, group, at, new, now)
    else:
        group_changes.resize(job, group, new, now)
    if job.never_preempts != group.never_preempts:  # unknown while a group has no pods yet
        job.never_preempts = group.never_preempts
        job.save(update_fields=["never_preempts"])
    _make_rows(cluster, job, pods, places, now)
    return job


def _free_name(group: ObservedGroup, tenant: Tenant) -> str:
    name = external_pods.job_name(group.title)
    if not Job.objects.filter(tenant=tenant, name=name, deleted_at=None).exists():
        return name
    seed = f"{group.ref.key} {Job.objects.filter(tenant=tenant).count()}"
    return external_pods.job_name(group.title, distinct=hashlib.sha256(seed.encode()).hexdigest()[:8])


def _submitted(cluster: Cluster, group: ObservedGroup, at: GroupOwner, spec: JobSpec, now: datetime) -> Job:
    job = Job.objects.create(
        name=spec.name,
        tenant=at.tenant,
        queue=at.queue,
        cluster=cluster,
        owner=at.owner,
        spec=spec.document(),
        kind=spec.kind,
        priority=spec.priority,
        never_preempts=group.never_preempts,
        replicas=spec.replicas,
        submitted_at=now,
    )
    ExternalGroup.objects.create(
        job=job,
        cluster=cluster,
        key=group.ref.key,
        maker=group.maker,
        roles=dict(group.policy.roles),
        sub_groups=list(group.policy.sub_groups),
        priority=group.priority,
    )
    event = events.JobSubmitted(name=spec.name, queue=at.queue.name, job_kind=spec.kind, replicas=spec.replicas)
    tell(job, event, actor=CONTROLLER, now=now)
    return job


def _make_rows(
    cluster: Cluster, job: Job, pods: list[Pod], places: Sequence[tuple[ExternalPod, PodRef]], now: datetime
) -> None:
    create = tuple(ref for _pod, ref in places)
    write(
        job,
        pods,
        replace(delegated.outcome_of(job_facts(job)), create=create),
        address_of=_unnamed,
        actor=CONTROLLER,
        now=now,
    )
    rows = {_ref(pod): pod for pod in pods}
    ExternalPodRow.objects.bulk_create(
        ExternalPodRow(
            pod=rows[ref],
            cluster=cluster,
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            labels=dict(pod.labels),
            priority=external_pods.bounded_priority(pod.priority),
            volume_claims=list(pod.volume_claims),
        )
        for pod, ref in places
    )


def _unnamed(_replica: Replica) -> str:
    """No address: the controller of external pods tells them how to find one another."""
    return ""


def _ref(pod: Pod) -> PodRef:
    return PodRef(pod.task, pod.index, pod.attempt)


# State of recorded jobs and pods


def _follow_job(job: Job, pods: Sequence[Pod], now: datetime) -> bool:
    facts = job_facts(job)
    outcome = delegated.outcome_of(
        facts, external_pods.phase_changes(facts, all_pod_facts(pods), has_started=job.started_at is not None)
    )
    if outcome.phase.is_final:
        outcome = replace(outcome, gang_phase=GangPhase.COMPLETED)
    elif job.is_final:
        outcome = replace(outcome, gang_phase=GangPhase.PENDING)
    return write(job, list(pods), outcome, actor=CONTROLLER, now=now)


def _follow_pods(job: Job, rows: Mapping[str, Pod], current: Mapping[str, ExternalPod], now: datetime) -> bool:
    changed = [pod for uid, pod in rows.items() if not pod.is_final and _move(job, pod, current.get(uid), now)]
    save_all(changed, _FIELDS)
    return bool(changed)


def _move(job: Job, pod: Pod, current: ExternalPod | None, now: datetime) -> bool:
    """Move the pod to its observed state. Returns whether its phase or node changed."""
    if current is None:
        _end(job, pod, now)
        return True
    before = (pod.phase, pod.node)
    if current.node and pod.phase == PodPhase.PENDING:
        pod.phase, pod.node, pod.bound_at = PodPhase.BOUND, current.node, now
        event = events.PodBound(task=pod.task, index=pod.index, attempt=pod.attempt, node=current.node)
        tell(job, event, actor=CONTROLLER, now=now)
    if ORDER[current.phase] > ORDER[PodPhase(pod.phase)]:
        record_observation(job, pod, _sighting(pod, current))
    return (pod.phase, pod.node) != before


def return_to_pending(cluster_id: int, epoch: int, messages: Mapping[int, str], *, now: datetime) -> None:
    """Take these bound pods off nodes to which the cluster does not bind them. The engine decides about them again.

    `messages`: by row id of the pod, why. Raises LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        ids = Pod.objects.filter(pk__in=messages).values_list("job_id", flat=True)
        jobs = {job.pk: job for job in Job.objects.select_for_update().filter(pk__in=set(ids)).order_by("pk")}
        bound = list(Pod.objects.filter(pk__in=messages, phase=PodPhase.BOUND, stopping=False).order_by("pk"))
        for pod in bound:
            enter_pod_phase(
                jobs[pod.job_id],
                pod,
                PodPhase.PENDING,
                reason="BindFailed",
                message=messages[pod.pk],
                actor=CONTROLLER,
                now=now,
            )
            pod.node, pod.bound_at, pod.cards, pod.annotations = "", None, [], {}
        save_all(bound, (*_FIELDS, *_OF_BIND))


def _sighting(pod: Pod, current: ExternalPod) -> Sighting:
    """The pod as observed; the failure of a stopping pod gets the reason of the stop: it was evicted."""
    reason, message = current.reason, current.message
    if pod.stopping and current.phase is PodPhase.FAILED:
        reason, message = "Stopped", pod.stop_reason
    return Sighting(pod.task, pod.index, pod.attempt, current.phase, current.at, reason, message, current.exit_code)


def _end(job: Job, pod: Pod, now: datetime) -> None:
    """End a pod that is gone: evicted, or deleted by others."""
    phase, reason, message = PodPhase.LOST, "Deleted", GONE
    if pod.stopping:
        phase, reason, message = PodPhase.FAILED, "Stopped", pod.stop_reason
    enter_pod_phase(job, pod, phase, reason=reason, message=message, actor=CONTROLLER, now=now)
