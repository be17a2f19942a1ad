"""Failed pods whose files and environment stay for a while."""

from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import FrozenPod, Job, Pod
from hekla.apps.jobs.selectors.visibility import known_to
from hekla.domain.errors import NotFound
from hekla.domain.phases import FINAL_POD_PHASES

_FINAL_PODS = [phase.value for phase in FINAL_POD_PHASES]


def frozen_pods(job: Job) -> list[FrozenPod]:
    """The pods of a job whose files stay, or stayed, in order. The caller has checked that the person may see it."""
    stayed = FrozenPod.objects.filter(pod__job=job).exclude(released_at=F("until"))
    found = stayed.select_related("pod", "debug_job")
    return list(found.order_by("pod__task", "pod__index", "pod__attempt"))


def frozen_pod(pod_id: int, user: User) -> FrozenPod:
    """What stays of this pod. Raises NotFound if nothing does, or the person may not see its job."""
    found = _whole().filter(pod=pod_id, released_at=None).first()
    if found is None or not known_to(user).filter(pk=found.pod.job_id).exists():
        raise NotFound(_("The files of this pod are not kept, or no longer."))
    return found


def source_of(job: Job) -> Pod | None:
    """The failed pod in whose files this job continues, with its job; None if it is an ordinary job."""
    found = FrozenPod.objects.filter(debug_job=job).select_related("pod__job__tenant", "pod__job__owner").first()
    return found.pod if found else None


def source_to_start_in(job: Job) -> Pod | None:
    """The same for a pod of this job that starts now. Raises NotFound if the files are deleted, or will be."""
    found = FrozenPod.objects.filter(debug_job=job).only("released_at").first()
    if found is not None and found.released_at is not None:
        raise NotFound(_("The files of this pod are not kept, or no longer."))
    return source_of(job) if found else None


def is_in_use(frozen: FrozenPod) -> bool:
    """Whether a job continues there now, or its pod has not ended yet."""
    return in_use().filter(pk=frozen.pk).exists()


def in_use() -> QuerySet[FrozenPod]:
    """Those in which a job continues now."""
    running = Pod.objects.filter(job=OuterRef("debug_job")).exclude(phase__in=_FINAL_PODS)
    return FrozenPod.objects.filter(Q(debug_job__finished_at=None) | Exists(running), debug_job__isnull=False)


def due(cluster_id: int, *, now: datetime | None, limit: int) -> list[int]:
    """The keys of those of a cluster whose time is over, and that nothing uses. Without a time, of all."""
    found = FrozenPod.objects.filter(pod__job__cluster=cluster_id, released_at=None, cleaned_at=None)
    if now is not None:
        found = found.filter(until__lte=now)
    return list(found.exclude(pk__in=in_use().values("pk")).order_by("until").values_list("pk", flat=True)[:limit])


def unmeasured(cluster_id: int, *, limit: int) -> list[FrozenPod]:
    """Those of a cluster whose size is not known."""
    return list(_any(_whole().filter(pod__job__cluster=cluster_id, released_at=None, size=None), limit))


def to_release(cluster_id: int, *, limit: int) -> list[FrozenPod]:
    """Released ones of a cluster whose files are not deleted yet."""
    found = _whole().filter(pod__job__cluster=cluster_id, released_at__isnull=False, cleaned_at=None)
    return list(_any(found, limit))


def _any(found: QuerySet[FrozenPod], limit: int) -> QuerySet[FrozenPod]:
    """Some of them, each time others: those of which the backend can do nothing now must not stop the rest."""
    return found.order_by("?")[:limit]


def _whole() -> QuerySet[FrozenPod]:
    return FrozenPod.objects.select_related(
        "pod__job__tenant", "pod__job__cluster", "pod__job__queue", "pod__job__owner", "debug_job"
    )
