"""Deletes a job, step by step. Each step is one unit of work and has no effect if repeated.

`delete` only records the intent. The controller does the rest (`hekla.controller.garbage_collection`): it reads the
rows, so it continues after any interruption.
"""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import leases
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import CONTROLLER, PLATFORM, Actor, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.models import FrozenPod, Job
from hekla.apps.jobs.services import freezing
from hekla.apps.jobs.services.commands import require_right
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import request_stop
from hekla.apps.secrets import services as secrets
from hekla.domain import events
from hekla.domain.errors import Refused

_MOST_EXPIRED = 200


def delete(job: Job, *, user: User, now: datetime) -> None:
    """Delete a finished job: hide it from lists, and request its clean-up. Raises Refused if it is not finished."""
    require_right(job, user)
    with unit_of_work():
        job = changes.locked(job)
        if not job.is_final:
            raise Refused(_("The job is not finished. Abort it first, then delete it."))
        _delete(job, actor_of(user), now)


def delete_expired(cluster_id: int, epoch: int, *, now: datetime) -> None:
    """Delete finished jobs whose time to live is over, some at a time; not while failed pods of theirs stay.

    Raises LeaseLost.
    """
    expired = Job.objects.filter(cluster_id=cluster_id, expires_at__lte=now, deleted_at=None).order_by("pk")
    expired = expired.exclude(pk__in=FrozenPod.objects.filter(released_at=None).values("pod__job"))
    for pk in expired.values_list("pk", flat=True)[:_MOST_EXPIRED]:
        with unit_of_work():
            leases.assert_held(cluster_id, epoch)
            job = job_rows.locked(pk)
            if job.is_final and job.expires_at and job.expires_at <= now:
                _delete(job, CONTROLLER, now)


def delete_finished(job_id: int, *, now: datetime) -> bool:
    """Delete a finished job on behalf of the platform. Returns whether it was deleted."""
    with unit_of_work():
        job = job_rows.locked(job_id)
        if not job.is_final or job.deleted_at is not None:
            return False
        _delete(job, PLATFORM, now)
        return True


def _delete(job: Job, actor: Actor, now: datetime) -> None:
    if job.deleted_at is None:
        job.deleted_at = now
        job.save(update_fields=["deleted_at"])
        tell(job, events.JobDeleted(name=job.name), actor=actor, now=now)
        freezing.expire_now(job, now=now)
        secrets.forget(job.uid)


def end_pods(cluster_id: int, epoch: int, job_id: int, *, now: datetime) -> bool:
    """Request the stop of a deleted job's unfinished pods. Returns whether all have ended. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = job_rows.locked(job_id)
        pods = [pod for pod in job_rows.pods_of(job) if not pod.is_final]
        for pod in pods:
            request_stop(job, pod, "Deleted", actor=CONTROLLER, now=now)
        return all(pod.is_final for pod in pods)


def mark_cleaned(cluster_id: int, epoch: int, job_id: int, *, now: datetime) -> None:
    """Record that the clean-up of this deleted job is done. Raises LeaseLost."""
    with unit_of_work():
        leases.assert_held(cluster_id, epoch)
        job = job_rows.locked(job_id)
        if job.cleaned_at is None:
            job.cleaned_at = now
            job.save(update_fields=["cleaned_at"])
            tell(job, events.JobCleanedUp(), actor=CONTROLLER, now=now)
