"""External pods: pods that others created and Hekla schedules. Records them as jobs, binds and evicts them, and writes
to them why they are pending.

Level-triggered: all actions follow from the rows and the objects in the cluster.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import DataError, IntegrityError
from django.utils import translation

from hekla.apps.clusters.models import Cluster
from hekla.apps.external_pods import selectors, services
from hekla.apps.external_pods.models import ExternalPodRow
from hekla.apps.job_history import explanations
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import BackendError
from hekla.backends.external_pods import EvictionRefused, ExternalPods
from hekla.controller.external_binds import bind_pods
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import ExternalPodState
from hekla.domain.errors import HeklaError
from hekla.domain.external_pods import ExternalPod, ExternalPodRules, GroupKind, GroupRef, ObservedGroup, PodGroup
from hekla.domain.phases import GangPhase, PodPhase
from hekla.scheduling.cache import ClusterCache

log = logging.getLogger(__name__)
Groups = Mapping[str, Mapping[str, PodGroup]] | None


@dataclass(frozen=True, slots=True)
class ExternalObservation:
    """One observation: pods by group, groups by namespace, groups waiting for admission, unreadable namespaces."""

    rules: ExternalPodRules
    pods: Mapping[GroupRef, Sequence[ExternalPod]]
    groups: Groups
    new: Mapping[GroupRef, PodGroup]
    hidden: AbstractSet[str]

    def can_tell(self, ref: GroupRef) -> bool:
        """Whether the state of this group is known: everything about it could be read."""
        if ref.namespace not in self.rules.tenants:
            return True
        needs_group = ref.kind is GroupKind.POD_GROUP and self.groups is not None and ref not in self.pods
        return ref.namespace not in self.hidden and not (needs_group and ref.namespace not in (self.groups or {}))


def observe_external_pods(cluster: Cluster, lease: LeaseContext, *, now: datetime) -> None:
    """Record new external pods, and the states of known ones."""
    external, state = lease.backend.external_pods, _state_of(lease)
    if external is None and state.has_started:
        return
    known = [GroupRef.of(key) for key in selectors.open_groups(cluster.pk)]
    nothing = ExternalObservation(ExternalPodRules({}, "", ""), {}, None, {}, frozenset())
    look = _observe(cluster, external, known, state) if external else nothing
    refs = {ref.key: ref for ref in (*known, *look.new, *look.pods) if look.can_tell(ref)}
    state.refused = {}
    changed = [_record_group(cluster, lease, look.rules, _gathered(ref, look), now) for ref in refs.values()]
    state.recorded = {key: recorded for key, recorded in state.recorded.items() if key in refs}
    if external and (any(changed) or not state.has_started):
        external.set_recorded(selectors.living(cluster.pk))
    state.has_started = True


def _state_of(lease: LeaseContext) -> ExternalPodState:
    """The state of external pods from earlier reconciliations; empty if the facet that lists them has changed."""
    external = lease.backend.external_pods
    if lease.state.external_pods.of is not external:
        lease.state.external_pods = ExternalPodState(of=external)
    return lease.state.external_pods


def _observe(
    cluster: Cluster, external: ExternalPods, known: Sequence[GroupRef], state: ExternalPodState
) -> ExternalObservation:
    namespaces = external.rules.tenants.keys()
    by_namespace = external.list_pods(fresh=namespaces - state.looked)
    state.looked = set(by_namespace)
    pods = _by_group(_in_recorded_groups(cluster, state, [pod for found in by_namespace.values() for pod in found]))
    new = {GroupRef(one.namespace, GroupKind.POD_GROUP, one.name): one for one in external.list_new_groups()}
    groups = external.list_groups({ref.namespace for ref in (*known, *new, *pods) if ref.kind is GroupKind.POD_GROUP})
    return ExternalObservation(external.rules, pods, groups, new, namespaces - by_namespace.keys())


def _in_recorded_groups(
    cluster: Cluster, state: ExternalPodState, pods: Sequence[ExternalPod]
) -> Iterator[ExternalPod]:
    """Each pod in the group in which it was first recorded, even if its labels or owner have changed.

    Pods of deleted jobs are left out.
    """
    state.groups = {pod.uid: state.groups[pod.uid] for pod in pods if pod.uid in state.groups}
    state.groups |= selectors.job_uids(cluster.pk, [pod.uid for pod in pods if pod.uid not in state.groups])
    for pod in pods:
        key = state.groups.get(pod.uid, pod.group.key)
        if key is not None:
            yield pod if key == pod.group.key else replace(pod, group=GroupRef.of(key))


def _all(external: ExternalPods) -> list[ExternalPod]:
    return [pod for pods in external.list_pods().values() for pod in pods]


def _by_group(pods: Iterable[ExternalPod]) -> dict[GroupRef, list[ExternalPod]]:
    found: dict[GroupRef, list[ExternalPod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: pod.uid):
        found[pod.group].append(pod)
    return found


def _record_group(
    cluster: Cluster,
    lease: LeaseContext,
    rules: ExternalPodRules,
    gathered: ObservedGroup,
    now: datetime,
) -> bool:
    """Record the group, unless nothing changed since it was last recorded. Returns whether rows changed.

    A refused group is tried again at the next reconciliation.
    """
    state, key = lease.state.external_pods, gathered.ref.key
    if state.recorded.get(key) == gathered:
        return False
    lease.ensure_leader()
    try:
        with translation.override("en"):  # the refusal is written to pods in the cluster
            changed = services.follow(cluster, lease.epoch, gathered, rules, now=now)
    except HeklaError as refusal:
        state.refused[key] = str(refusal)
        return False
    except (IntegrityError, DataError) as error:  # one invalid group must not block all others
        log.exception("the group %s cannot be taken in", key)
        state.refused[key] = str(error)
        return False
    state.recorded[key] = gathered
    return changed


def _gathered(ref: GroupRef, look: ExternalObservation) -> ObservedGroup:
    """The group with its pods, or a new PodGroup that is admitted before its pods are created."""
    pods = tuple(look.pods.get(ref, ()))
    queue = next((pod.queue for pod in pods if pod.queue), "")
    if (new := look.new.get(ref)) and not pods:
        return ObservedGroup(
            ref,
            (),
            minimum=new.minimum,
            queue=new.queue,
            request=new.request,
            expects_pods=True,
            policy=new.policy,
            priority=new.priority,
        )
    if ref.kind is not GroupKind.POD_GROUP or look.groups is None:
        return ObservedGroup(ref, pods, queue=queue)
    group = look.groups.get(ref.namespace, {}).get(ref.name)
    if group is None:
        return ObservedGroup(ref, pods, minimum=0, queue=queue)
    return ObservedGroup(
        ref,
        pods,
        minimum=group.minimum,
        queue=group.queue or queue,
        request=group.request,
        policy=group.policy,
        priority=group.priority,
    )


# Apply the rows


def protected_pods(lease: LeaseContext, pods: Sequence[Pod]) -> dict[int, str]:
    """The external pods among these that a budget protects: the reason by row."""
    external = lease.backend.external_pods
    here = _open_to(external, [pod for pod in pods if pod.job.is_external]) if external else []
    if external is None or not here:
        return {}
    rows = {one.uid: pod.pk for pod, one in here}
    found = external.protected([one for _pod, one in here], heartbeat=lease.ensure_leader)
    return {rows[uid]: why for uid, why in found.items()}


def apply_decisions(lease: LeaseContext, pods: Sequence[Pod], *, now: datetime) -> dict[int, str]:
    """Bind pods that have a node in their rows, and evict stopping ones. Returns the protected rows with reasons."""
    external = lease.backend.external_pods
    due = [pod for pod in pods if pod.stopping or pod.phase == PodPhase.BOUND]
    if external is None or not due:
        return {}
    here = _open_to(external, due)
    waiting = [(pod, one) for pod, one in here if not (pod.stopping or one.node)]
    bind_pods(lease, external, waiting, now=now)
    return _evict(lease, external, [(pod, one) for pod, one in here if pod.stopping])


def _open_to(external: ExternalPods, pods: Sequence[Pod]) -> list[tuple[Pod, ExternalPod]]:
    """Pods that exist in the cluster and are neither ending nor ended, with their objects."""
    objects = selectors.objects_of([pod.pk for pod in pods])
    there = {pod.uid: pod for pod in _all(external)} if objects else {}
    here = [(pod, there[one.uid]) for pod in pods if (one := objects.get(pod.pk)) and one.uid in there]
    return [(pod, one) for pod, one in here if not (one.is_ending or one.phase.is_final)]


def _evict(lease: LeaseContext, external: ExternalPods, evictions: Sequence[tuple[Pod, ExternalPod]]) -> dict[int, str]:
    rows = {one.uid: pod.pk for pod, one in evictions}
    refused: dict[int, str] = {}
    for one, error in (
        external.evict_many([one for _pod, one in evictions], heartbeat=lease.ensure_leader) if rows else ()
    ):
        if isinstance(error, EvictionRefused):
            refused[rows[one.uid]] = str(error)
        elif error is not None:
            log.warning("could not evict %s/%s, will try again: %s", one.namespace, one.name, error)
    return refused


# Report to the cluster


def report_reasons(lease: LeaseContext, cache: ClusterCache) -> None:
    """Write the pending reason to each pending pod, once per reason, and the phase to each PodGroup."""
    external = lease.backend.external_pods
    if external is None:
        return
    there = _all(external)
    waiting = [pod for pod in there if pod.phase is PodPhase.PENDING and not (pod.node or pod.is_ending)]
    state, uids = lease.state.external_pods, {pod.uid for pod in waiting}
    state.bound = {uid: at for uid, at in state.bound.items() if uid in uids}
    state.refused_binds = {uid: one for uid, one in state.refused_binds.items() if uid in uids}
    state.reported = {uid: kind for uid, kind in state.reported.items() if uid in uids}
    _tell_why(lease, external, list(_news(lease, waiting, _rows(waiting, cache))))
    in_groups = {pod.namespace for pod in there if pod.group.kind is GroupKind.POD_GROUP}
    _tell_groups(lease, external, in_groups | {one.namespace for one in external.list_new_groups()})


def _rows(waiting: Sequence[ExternalPod], cache: ClusterCache) -> dict[str, Job]:
    if not waiting:
        return {}
    mine = {pod.pk: pod.job for pod in cache.pods() if pod.job.is_external and pod.phase == PodPhase.PENDING}
    objects: Mapping[int, ExternalPodRow] = selectors.objects_of(list(mine))
    return {one.uid: mine[pk] for pk, one in objects.items()}


def _news(
    lease: LeaseContext, waiting: Iterable[ExternalPod], jobs: Mapping[str, Job]
) -> Iterator[tuple[ExternalPod, str, object]]:
    """The messages to write, with their kind. Changed numbers alone are not written again."""
    state = lease.state.external_pods
    for pod in waiting:
        message, kind = _why(pod, state.refused.get(pod.group.key, ""), jobs.get(pod.uid))
        if message and state.reported.get(pod.uid) != kind:
            state.reported[pod.uid] = kind
            if message != pod.reported_reason:
                yield pod, message, kind


def _why(pod: ExternalPod, refusal: str, job: Job | None) -> tuple[str, object]:
    if job is not None and explanations.is_waiting(job):
        first = job.waiting[0]
        with translation.override("en"):
            return explanations.first(job), (first["cause"], first["plugin"], first["code"])
    message = pod.obstacle or refusal if job is None else ""
    return message, message


def _tell_why(lease: LeaseContext, external: ExternalPods, news: Sequence[tuple[ExternalPod, str, object]]) -> None:
    if not news:
        return
    for (pod, _message), error in external.write_reasons(
        [(pod, message) for pod, message, _kind in news], heartbeat=lease.ensure_leader
    ):
        if error is not None:
            lease.state.external_pods.reported.pop(pod.uid, None)
            log.warning("could not tell %s/%s why it waits: %s", pod.namespace, pod.name, error)


_PHASE_NAMES = {phase: phase.capitalize() for phase in GangPhase}


def _tell_groups(lease: LeaseContext, external: ExternalPods, namespaces: AbstractSet[str]) -> None:
    found = (external.list_groups(namespaces) or {}).values()
    groups = {GroupRef(one.namespace, GroupKind.POD_GROUP, one.name).key: one for own in found for one in own.values()}
    for key, phase in selectors.gang_phases(lease.cluster_id, list(groups)).items():
        if groups[key].phase != _PHASE_NAMES[phase]:
            lease.ensure_leader()
            try:
                external.set_group_phase(groups[key], _PHASE_NAMES[phase])
            except BackendError as error:
                log.warning("could not tell the group %s how far it is: %s", key, error)
