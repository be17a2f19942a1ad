"""Questions about external pods."""

from collections.abc import Collection, Sequence

from hekla.apps.external_pods.models import ExternalGroup, ExternalPodRow
from hekla.apps.jobs.models import Job
from hekla.domain.phases import FINAL_JOB_PHASES, FINAL_POD_PHASES, GangPhase

_OVER_PODS, _OVER_JOBS = sorted(FINAL_POD_PHASES), sorted(FINAL_JOB_PHASES)


def living(cluster_id: int) -> set[str]:
    """The uids of pods that are not over by their rows."""
    found = ExternalPodRow.objects.filter(cluster_id=cluster_id).exclude(pod__phase__in=_OVER_PODS)
    return set(found.values_list("uid", flat=True))


def job_uids(cluster_id: int, uids: Collection[str]) -> dict[str, str | None]:
    """Of those among them that were taken in, by uid, the group; None: its job was deleted."""
    if not uids:
        return {}
    found = ExternalPodRow.objects.filter(cluster_id=cluster_id, uid__in=uids)
    rows = found.values_list("uid", "pod__job__external__key", "pod__job__deleted_at")
    return {uid: key if deleted_at is None else None for uid, key, deleted_at in rows}


def objects_of(pod_ids: Sequence[int]) -> dict[int, ExternalPodRow]:
    """By the row of the pod, the object that it is."""
    return ExternalPodRow.objects.in_bulk(pod_ids) if pod_ids else {}


def open_groups(cluster_id: int) -> set[str]:
    """The groups whose jobs are not over."""
    found = ExternalGroup.objects.filter(cluster_id=cluster_id).exclude(job__phase__in=_OVER_JOBS)
    return set(found.values_list("key", flat=True))


def group_of(cluster_id: int, key: str) -> ExternalGroup | None:
    """The newest job of a group that is not deleted."""
    found = ExternalGroup.objects.filter(cluster_id=cluster_id, key=key, job__deleted_at=None)
    return found.order_by("-pk").first()


def pods_of(job: Job) -> dict[str, ExternalPodRow]:
    """The objects of a job's pods, by uid."""
    return {one.uid: one for one in ExternalPodRow.objects.filter(pod__job=job)}


def gang_phases(cluster_id: int, keys: Sequence[str]) -> dict[str, GangPhase]:
    """How far the newest jobs of these groups are."""
    if not keys:
        return {}
    found = ExternalGroup.objects.filter(cluster_id=cluster_id, key__in=keys, job__deleted_at=None)
    return {key: GangPhase(phase) for key, phase in found.order_by("pk").values_list("key", "job__gang_phase")}
