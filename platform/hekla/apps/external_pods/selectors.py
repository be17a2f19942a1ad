"""Queries for external pods and their groups."""

from collections.abc import Collection, Sequence

from django.db.models import prefetch_related_objects

from hekla.apps.external_pods.models import ExternalGroup, ExternalPodRow
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import FINAL_JOB_PHASES, FINAL_POD_PHASES, GangPhase

_OVER_PODS, _OVER_JOBS = sorted(FINAL_POD_PHASES), sorted(FINAL_JOB_PHASES)


def living(cluster_id: int) -> set[str]:
    """The uids of the external pods that have not ended by their rows."""
    found = ExternalPodRow.objects.filter(cluster_id=cluster_id).exclude(pod__phase__in=_OVER_PODS)
    return set(found.values_list("uid", flat=True))


def job_uids(cluster_id: int, uids: Collection[str]) -> dict[str, str | None]:
    """The key of the group by uid, for the recorded pods; None if the job was deleted."""
    if not uids:
        return {}
    found = ExternalPodRow.objects.filter(cluster_id=cluster_id, uid__in=uids)
    rows = found.values_list("uid", "pod__job__external__key", "pod__job__deleted_at")
    return {uid: key if deleted_at is None else None for uid, key, deleted_at in rows}


def objects_of(pod_ids: Sequence[int]) -> dict[int, ExternalPodRow]:
    """The object in the cluster, by row id of the pod."""
    return ExternalPodRow.objects.in_bulk(pod_ids) if pod_ids else {}


def attach_objects(jobs: Sequence[Job], pods: Sequence[Pod]) -> None:
    """Read the groups of these external jobs, and the objects of their pods, at once: as `external` of each."""
    prefetch_related_objects(jobs, "external")
    prefetch_related_objects(pods, "external")


def open_groups(cluster_id: int) -> set[str]:
    """The keys of the groups whose jobs have not ended."""
    found = ExternalGroup.objects.filter(cluster_id=cluster_id).exclude(job__phase__in=_OVER_JOBS)
    return set(found.values_list("key", flat=True))


def group_of(cluster_id: int, key: str) -> ExternalGroup | None:
    """The group's newest job that is not deleted, as its ExternalGroup, or None."""
    found = ExternalGroup.objects.filter(cluster_id=cluster_id, key=key, job__deleted_at=None)
    return found.order_by("-pk").first()


def pods_of(job: Job) -> dict[str, ExternalPodRow]:
    """The objects of a job's pods, by uid."""
    return {one.uid: one for one in ExternalPodRow.objects.filter(pod__job=job)}


def gang_phases(cluster_id: int, keys: Sequence[str]) -> dict[str, GangPhase]:
    """The gang phase of the newest job of each group, by key."""
    if not keys:
        return {}
    found = ExternalGroup.objects.filter(cluster_id=cluster_id, key__in=keys, job__deleted_at=None)
    return {key: GangPhase(phase) for key, phase in found.order_by("pk").values_list("key", "job__gang_phase")}
