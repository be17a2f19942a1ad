"""The rows of jobs and their pods, as changes read them. Nearly every step of a reconcile begins with these queries."""

from collections.abc import Collection
from uuid import UUID

from hekla.apps.compiled import CompiledQuery, OneOf, Parameter
from hekla.apps.jobs.models import Job, Pod

_ID, _POD_ID, _UID = Job._meta.pk, Pod._meta.pk, Job._meta.get_field("uid")
_CLUSTER = Job._meta.get_field("cluster")
_JOB_OF_POD = Pod._meta.get_field("job")
_LOCKED = CompiledQuery(lambda: Job.objects.select_for_update().filter(pk=Parameter("pk", _ID)))
_LOCKED_BY_UID = CompiledQuery(lambda: Job.objects.select_for_update().filter(uid=Parameter("uid", _UID)))
_LOCKED_IN_ORDER = CompiledQuery(
    lambda: (
        Job.objects.select_for_update()
        .filter(OneOf("pk", "pks", _ID), cluster=Parameter("cluster", _CLUSTER))
        .order_by("pk")
    )
)
_PODS_OF = CompiledQuery(
    lambda: Pod.objects.filter(job=Parameter("job", _ID)).order_by("task", "index", "attempt"),
)
_PODS = CompiledQuery(lambda: Pod.objects.filter(OneOf("pk", "pks", _POD_ID)))


def locked(job_id: int) -> Job:
    """The job, locked until the transaction ends. Raises Job.DoesNotExist."""
    for job in _LOCKED.rows(pk=job_id):
        return job
    raise Job.DoesNotExist


def locked_by_uid(uid: UUID) -> Job | None:
    """The job with this uid, locked until the transaction ends, or None."""
    return next(iter(_LOCKED_BY_UID.rows(uid=uid)), None)


def locked_in_order(cluster_id: int, job_ids: Collection[int]) -> dict[int, Job]:
    """Those of these jobs that are in this cluster, locked until the transaction ends, by row id."""
    return {job.pk: job for job in _LOCKED_IN_ORDER.rows(cluster=cluster_id, pks=list(job_ids))}


def pods_of(job: Job) -> list[Pod]:
    """Every attempt of every replica of the job, in order."""
    pods = _PODS_OF.rows(job=job.pk)
    for pod in pods:
        _JOB_OF_POD.set_cached_value(pod, job)
    return pods


def pods(pod_ids: Collection[int]) -> dict[int, Pod]:
    """These pods, by row id."""
    return {pod.pk: pod for pod in _PODS.rows(pks=list(pod_ids))} if pod_ids else {}
