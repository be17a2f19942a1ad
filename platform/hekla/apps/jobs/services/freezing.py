"""Failed pods whose files and environment stay for a while: when they begin to, and when they no longer do.

`freeze` is part of the unit of work that ends the job. The controller does the rest (`hekla.controller.frozen_pods`):
it reads the rows, so it continues after any interruption. Files are deleted only after that was recorded.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import CONTROLLER, Actor, unit_of_work
from hekla.apps.jobs import spending
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import FrozenPod, Job, Pod
from hekla.apps.jobs.selectors import freezing
from hekla.apps.jobs.services.telling import tell
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Refused
from hekla.domain.events import ReleaseReason
from hekla.domain.phases import JobPhase, PodPhase

MOST_OF_JOB = 16
"""Failed pods of one job that stay. Those that ended first tell the most."""
_BATCH = 50
_STOPPED, _LEFT = "Stopped", (PodPhase.FAILED, PodPhase.LOST)
_BY_SIGNAL = frozenset({130, 137, 143})


def freeze(job: Job, pods: Sequence[Pod], *, now: datetime) -> None:
    """Let the failed pods of a job that has just ended stay, if it wants that; those of an aborted one do not.

    Call inside its unit of work.
    """
    seconds = spec_of(job).keep_failed_seconds
    if not seconds or not job.is_final or job.is_external:
        return
    chosen = [] if job.phase == JobPhase.ABORTED or job.deleted_at else _chosen(pods, now)
    rows = [FrozenPod(pod=pod, until=now + timedelta(seconds=seconds)) for pod in chosen]
    if _outlive_their_pods(job):
        rest = [pod for pod in pods if pod.phase in _LEFT and pod.node and pod not in chosen]
        rows += [FrozenPod(pod=pod, until=now, size=0, released_at=now) for pod in rest]
    if rows:
        known = set(FrozenPod.objects.filter(pod__job=job).values_list("pod", flat=True))
        FrozenPod.objects.bulk_create([row for row in rows if row.pod_id not in known], batch_size=1000)


def _chosen(pods: Sequence[Pod], now: datetime) -> list[Pod]:
    """Those that stay: the last attempts that failed by themselves."""
    last = {(pod.task, pod.index): pod for pod in sorted(pods, key=lambda pod: pod.attempt)}
    failed = [pod for pod in last.values() if _failed_itself(pod)]
    failed.sort(key=lambda pod: (pod.finished_at or now, pod.pk))
    return failed[:MOST_OF_JOB]


def _outlive_their_pods(job: Job) -> bool:
    """Whether working folders exist until they are released: those of pods that do not stay are released at once."""
    return job.cluster.kind == Cluster.Kind.KUBERNETES


def note_size(cluster_id: int, epoch: int, frozen_id: int, size: int, *, now: datetime) -> None:
    """Record what the files of a frozen pod occupy: from now on it can be opened. Those that exceed the room of their
    tenant do not stay.

    Raises LeaseLost.
    """
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        frozen = lock(frozen_id)
        if frozen is None or frozen.released_at is not None or frozen.size is not None:
            return
        tenant = frozen.pod.job.tenant
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)  # one at a time
        frozen.size = size
        frozen.save(update_fields=["size"])
        if not settings.KEEP_FAILED_BYTES or spending.frozen_bytes(tenant) > settings.KEEP_FAILED_BYTES:
            release(frozen, ReleaseReason.ROOM, actor=CONTROLLER, now=now)
            return
        facts = {**place(frozen.pod), "until": frozen.until, "size": size}
        tell(frozen.pod.job, events.PodFrozen.model_validate(facts), actor=CONTROLLER, now=now)


def release_due(cluster_id: int, epoch: int, *, is_supported: bool, now: datetime) -> None:
    """Release frozen pods whose time is over, some at a time. Not `is_supported`: the cluster can keep none.

    Raises LeaseLost.
    """
    for pk in freezing.due(cluster_id, now=now if is_supported else None, limit=_BATCH):
        with unit_of_work():
            leases.assert_held(cluster_id, epoch)
            frozen = lock(pk)
            if frozen is None or frozen.released_at is not None or freezing.is_in_use(frozen):
                continue
            if not is_supported:
                release(frozen, ReleaseReason.CLUSTER, actor=CONTROLLER, now=now)
            elif frozen.until <= now:
                reason = ReleaseReason.PERSON if frozen.pod.job.deleted_at else ReleaseReason.TIME
                release(frozen, reason, actor=CONTROLLER, now=now)


def mark_frozen_cleaned(cluster_id: int, epoch: int, frozen_ids: Iterable[int], *, now: datetime) -> None:
    """Record that the files of these released pods are deleted. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        FrozenPod.objects.filter(pk__in=list(frozen_ids), cleaned_at=None).update(cleaned_at=now)


def expire_now(job: Job, *, now: datetime) -> None:
    """Let the frozen pods of a deleted job go as soon as nothing uses them. Call inside a unit of work."""
    FrozenPod.objects.filter(pod__job=job, released_at=None, until__gt=now).update(until=now)


def lock(frozen_id: int) -> FrozenPod | None:
    """The frozen pod with its job, locked until the transaction ends; None if it was purged."""
    found = FrozenPod.objects.select_related("pod__job__tenant", "pod__job__cluster", "pod__job__queue", "debug_job")
    return found.select_for_update(of=("self",)).filter(pk=frozen_id).first()


def release(frozen: FrozenPod, reason: ReleaseReason, *, actor: Actor, now: datetime) -> None:
    """Record that nobody can continue there any more; the controller then deletes the files."""
    if freezing.is_in_use(frozen):
        raise Refused(_("Job %(job)s runs in these files. Abort it first.") % {"job": frozen.debug_job})
    frozen.released_at = now
    frozen.save(update_fields=["released_at"])
    event = events.FrozenPodReleased.model_validate({**place(frozen.pod), "reason": reason})
    tell(frozen.pod.job, event, actor=actor, now=now)


def place(pod: Pod) -> dict[str, str | int]:
    """The pod, as events name it."""
    return {"task": pod.task, "index": pod.index, "attempt": pod.attempt}


def _failed_itself(pod: Pod) -> bool:
    """Whether its own program failed, and nobody stopped it."""
    if pod.phase != PodPhase.FAILED or not pod.exit_code or pod.evicted or pod.reason == _STOPPED:
        return False
    return not (pod.stopping and pod.exit_code in _BY_SIGNAL)
