"""What people do with failed pods that stay: continue there, let them stay longer, let them go.

Who may abort or delete the job may do it, as with terminals. A job that continues there is submitted like any other:
quotas, queues and priorities apply to it.
"""

from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import selectors
from hekla.apps.jobs.debug_spec import debug_spec
from hekla.apps.jobs.models import FrozenPod, Job
from hekla.apps.jobs.selectors import freezing as frozen_selectors
from hekla.apps.jobs.services import freezing
from hekla.apps.jobs.services.commands import require_right
from hekla.apps.jobs.services.submission import submit
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events
from hekla.domain.errors import Invalid, NotFound, Problem, Refused
from hekla.domain.events import ReleaseReason
from hekla.domain.jobspec import MAX_JOB_NAME, MAX_KEEP_SECONDS

_PREFIX = "debug-"


def open_frozen(pod_id: int, *, user: User, now: datetime) -> tuple[Job, bool]:
    """The job that continues where the pod failed, and whether it is new. At most one does at a time.

    Raises NotFound, Forbidden, Refused, Invalid, and what `submit` raises.
    """
    with unit_of_work():
        frozen = _locked(pod_id, user)
        job = frozen.pod.job
        if frozen.debug_job is not None and frozen_selectors.is_in_use(frozen):
            if frozen.debug_job.is_final:
                raise Refused(_("Job %(job)s still ends. Try again in a moment.") % {"job": frozen.debug_job})
            return frozen.debug_job, False
        if job.deleted_at is not None or frozen.until <= now:
            raise NotFound(_("The files of this pod are not kept, or no longer."))
        if frozen.size is None:
            raise Refused(_("The files of this pod are being measured. Try again in a moment."))
        name = selectors.free_name(job.tenant, f"{_PREFIX}{job.name}"[: MAX_JOB_NAME - 8].rstrip("-"))
        made = submit(spec=debug_spec(job, frozen.pod, name), tenant=job.tenant, user=user, now=now)
        frozen.debug_job = made
        frozen.save(update_fields=["debug_job"])
        facts = {**freezing.place(frozen.pod), "debug_job": made.uid.hex, "name": made.name}
        tell(job, events.FrozenPodOpened.model_validate(facts), actor=actor_of(user), now=now)
    return made, True


def keep_frozen(pod_id: int, seconds: int, *, user: User, now: datetime) -> FrozenPod:
    """Let the files of the pod stay this long from now, within the maximum since its end. It only ever gets later.

    Raises NotFound, Forbidden, Refused, Invalid.
    """
    if not 0 < seconds <= MAX_KEEP_SECONDS:
        raise Invalid([Problem("seconds", _("A number from 1 to %(most)d.") % {"most": MAX_KEEP_SECONDS})])
    with unit_of_work():
        frozen = _locked(pod_id, user)
        until = min(now + timedelta(seconds=seconds), last_moment(frozen))
        if frozen.pod.job.deleted_at is not None:
            raise Refused(_("The files of a deleted job are deleted."))
        if until <= frozen.until:
            raise Refused(_("The files of this pod already stay that long. The maximum is 7 days after its end."))
        frozen.until = until
        frozen.save(update_fields=["until"])
        event = events.FrozenPodExtended.model_validate({**freezing.place(frozen.pod), "until": until})
        tell(frozen.pod.job, event, actor=actor_of(user), now=now)
    return frozen


def release_frozen(pod_id: int, *, user: User, now: datetime) -> None:
    """Let the files of the pod go now. Raises NotFound, Forbidden, and Refused while a job continues there."""
    with unit_of_work():
        freezing.release(_locked(pod_id, user), ReleaseReason.PERSON, actor=actor_of(user), now=now)


def last_moment(frozen: FrozenPod) -> datetime:
    """Until when the files of the pod may stay."""
    return (frozen.pod.finished_at or frozen.until) + timedelta(seconds=MAX_KEEP_SECONDS)


def _locked(pod_id: int, user: User) -> FrozenPod:
    """What stays of the pod, locked. Raises NotFound, Forbidden."""
    found = selectors.frozen_pod(pod_id, user)
    require_right(found.pod.job, user)
    frozen = freezing.lock(found.pk)
    if frozen is None or frozen.released_at is not None:
        raise NotFound(_("The files of this pod are not kept, or no longer."))
    frozen.pod.job.refresh_from_db(fields=["deleted_at"])  # the lock may have waited for the job's deletion
    return frozen
