"""Pods that others made and that are placed from here: taken in as jobs, bound, evicted, told why they wait.

Level-triggered like all of a turn: what is to be done follows from the rows and from what is in the cluster.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from django.utils import translation

from hekla.apps.adopted import selectors, services
from hekla.apps.adopted.models import AdoptedPod
from hekla.apps.adopted.services import Gathered
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import wording
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.adopted import AdoptingBackend, Adoption, EvictionRefused
from hekla.backends.base import Backend, BackendError
from hekla.controller import sparing
from hekla.controller.observations import Hold
from hekla.domain.adopted import GroupKind, GroupRef, OthersPod, PodGroup, Rules
from hekla.domain.errors import HeklaError
from hekla.domain.phases import GangPhase, PodPhase

log = logging.getLogger(__name__)
_NOBODY = Rules({}, "", "")
Groups = Mapping[tuple[str, str], PodGroup] | None


def follow(cluster: Cluster, hold: Hold, *, now: datetime) -> None:
    """Take in what came, and take down what became of the others."""
    adoption, memory = _of(hold.backend), hold.memory.others
    if adoption is None and (memory.has_begun or not isinstance(hold.backend, AdoptingBackend)):
        return
    rules = adoption.rules if adoption else _NOBODY
    seen = adoption.pods(afresh=rules.tenants.keys() - memory.looked) if adoption else {}
    found = _by_group(pod for pods in seen.values() for pod in pods)
    groups = adoption.groups(_names(found)) if adoption else None
    hidden = rules.tenants.keys() - seen.keys()
    refs = {ref.key: ref for ref in (*map(_ref, selectors.open_groups(cluster.pk)), *found)}
    memory.refused = {}
    changed = [
        _take(cluster, hold, rules, ref, found.get(ref, []), groups, now)
        for ref in refs.values()
        if ref.namespace not in hidden
    ]
    memory.taken = {key: taken for key, taken in memory.taken.items() if key in refs}
    if adoption and (any(changed) or not memory.has_begun):
        adoption.count({one.uid for one in selectors.living(cluster.pk)})
    memory.has_begun, memory.looked = True, set(seen)


def _of(backend: Backend) -> Adoption | None:
    return backend.adoption if isinstance(backend, AdoptingBackend) else None


def _all(adoption: Adoption) -> list[OthersPod]:
    return [pod for pods in adoption.pods().values() for pod in pods]


def _by_group(pods: Iterable[OthersPod]) -> dict[GroupRef, list[OthersPod]]:
    found: dict[GroupRef, list[OthersPod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: pod.uid):
        found[pod.group].append(pod)
    return found


def _ref(key: str) -> GroupRef:
    namespace, kind, name, owner = key.split("/")
    return GroupRef(namespace, GroupKind(kind), name, owner)


def _names(found: Iterable[GroupRef]) -> set[tuple[str, str]]:
    return {(ref.namespace, ref.name) for ref in found if ref.kind is GroupKind.POD_GROUP}


def _take(
    cluster: Cluster,
    hold: Hold,
    rules: Rules,
    ref: GroupRef,
    pods: Sequence[OthersPod],
    groups: Groups,
    now: datetime,
) -> bool:
    """Unless it is what was taken down before. What is refused is tried again at the next look."""
    memory, gathered = hold.memory.others, _gathered(ref, pods, groups)
    if memory.taken.get(ref.key) == gathered:
        return False
    hold.require()
    try:
        changed = services.follow(cluster, hold.epoch, gathered, rules, now=now)
    except HeklaError as refusal:
        memory.refused[ref.key] = str(refusal)
        return False
    memory.taken[ref.key] = gathered
    return changed


def _gathered(ref: GroupRef, pods: Sequence[OthersPod], groups: Groups) -> Gathered:
    asked = next((pod.queue for pod in pods if pod.queue), "")
    if ref.kind is not GroupKind.POD_GROUP or groups is None:
        return Gathered(ref, tuple(pods), queue=asked)
    group = groups.get((ref.namespace, ref.name))
    if group is None:
        return Gathered(ref, tuple(pods), minimum=0, queue=asked)
    return Gathered(ref, tuple(pods), minimum=group.minimum, queue=group.queue or asked)


# What the rows say


def carry_out(hold: Hold, pods: Sequence[Pod], *, now: datetime) -> None:
    """Bind what has a node by its row, evict what is to go."""
    adoption = _of(hold.backend)
    due = [pod for pod in pods if pod.stopping or pod.phase == PodPhase.BOUND]
    if adoption is None or not due:
        return
    objects, there = selectors.objects_of([pod.pk for pod in due]), {pod.uid: pod for pod in _all(adoption)}
    here = [(pod, there[one.uid]) for pod in due if (one := objects.get(pod.pk)) and one.uid in there]
    open_to = [(pod, one) for pod, one in here if not one.is_ending and not one.phase.is_final]
    _evict(hold, adoption, [(pod, one) for pod, one in open_to if pod.stopping], now)
    _bind(hold, adoption, [(one, pod.node) for pod, one in open_to if not (pod.stopping or one.node)])


def _bind(hold: Hold, adoption: Adoption, binds: Iterable[tuple[OthersPod, str]]) -> None:
    bound = hold.memory.others.bound
    for (pod, node), error in adoption.bind_many(
        [(pod, node) for pod, node in binds if pod.uid not in bound], meanwhile=hold.require
    ):
        if error is None:
            bound.add(pod.uid)
        else:
            log.warning("could not bind %s/%s to %s, will try again: %s", pod.namespace, pod.name, node, error)


def _evict(hold: Hold, adoption: Adoption, evictions: Sequence[tuple[Pod, OthersPod]], now: datetime) -> None:
    """What a budget keeps is spared, and the engine looks for others."""
    rows = {one.uid: pod for pod, one in evictions}
    spared: dict[int, str] = {}
    if not rows:
        return
    for one, error in adoption.evict_many([one for _pod, one in evictions], meanwhile=hold.require):
        if isinstance(error, EvictionRefused):
            spared[rows[one.uid].pk] = str(error)
        elif error is not None:
            log.warning("could not evict %s/%s, will try again: %s", one.namespace, one.name, error)
    sparing.spare(hold, spared, now=now)


# What is told in the cluster


def tell(hold: Hold, pods: Sequence[Pod]) -> None:
    """Write to those that wait why they do, once for each reason; and to gangs how far they are."""
    adoption = _of(hold.backend)
    if adoption is None:
        return
    there = _all(adoption)
    waiting = [pod for pod in there if pod.phase is PodPhase.PENDING and not (pod.node or pod.is_ending)]
    hold.memory.others.bound &= {pod.uid for pod in waiting}
    hold.memory.others.told = {
        uid: kind for uid, kind in hold.memory.others.told.items() if uid in {pod.uid for pod in waiting}
    }
    _tell_why(hold, adoption, list(_news(hold, waiting, _rows(waiting, pods))))
    _tell_groups(hold, adoption, _names({pod.group for pod in there}))


def _rows(waiting: Sequence[OthersPod], pods: Sequence[Pod]) -> dict[str, Job]:
    mine = {pod.pk: pod.job for pod in pods if pod.job.is_adopted and pod.phase == PodPhase.PENDING}
    if not (waiting and mine):
        return {}
    objects: Mapping[int, AdoptedPod] = selectors.objects_of(list(mine))
    return {one.uid: mine[pk] for pk, one in objects.items()}


def _news(hold: Hold, waiting: Iterable[OthersPod], jobs: Mapping[str, Job]) -> Iterator[tuple[OthersPod, str, object]]:
    """What is to be written, with its kind: other numbers alone are no news."""
    memory = hold.memory.others
    for pod in waiting:
        message, kind = _why(pod, memory.refused.get(pod.group.key, ""), jobs.get(pod.uid))
        if message and memory.told.get(pod.uid) != kind:
            memory.told[pod.uid] = kind
            if message != pod.told:
                yield pod, message, kind


def _why(pod: OthersPod, refusal: str, job: Job | None) -> tuple[str, object]:
    if job is not None and job.waiting:
        first = job.waiting[0]
        with translation.override("en"):
            return wording.reason(first), (first["cause"], first["plugin"], first["code"])
    message = pod.obstacle or refusal if job is None else ""
    return message, message


def _tell_why(hold: Hold, adoption: Adoption, news: Sequence[tuple[OthersPod, str, object]]) -> None:
    if not news:
        return
    for (pod, _message), error in adoption.tell_many(
        [(pod, message) for pod, message, _kind in news], meanwhile=hold.require
    ):
        if error is not None:
            hold.memory.others.told.pop(pod.uid, None)
            log.warning("could not tell %s/%s why it waits: %s", pod.namespace, pod.name, error)


_TOLD_AS = {phase: phase.capitalize() for phase in GangPhase}


def _tell_groups(hold: Hold, adoption: Adoption, names: set[tuple[str, str]]) -> None:
    groups = adoption.groups(names) or {}
    keys = {GroupRef(one.namespace, GroupKind.POD_GROUP, one.name).key: one for one in groups.values()}
    for key, phase in selectors.gang_phases(hold.cluster_id, list(keys)).items():
        if keys[key].phase != _TOLD_AS[phase]:
            hold.require()
            try:
                adoption.advance_group(keys[key], _TOLD_AS[phase])
            except BackendError as error:
                log.warning("could not tell the group %s how far it is: %s", key, error)
