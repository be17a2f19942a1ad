"""One action on many jobs: each job has its own unit of work and its own outcome."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.commands import command
from hekla.apps.jobs.services.priority import set_priority
from hekla.apps.jobs.services.removal import delete
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.policies import LifecycleAction

MOST_AT_ONCE = 1000
DELETE, SET_PRIORITY = "Delete", "SetPriority"
BULK_ACTIONS = (
    LifecycleAction.ABORT_JOB.value,
    LifecycleAction.RESUME_JOB.value,
    LifecycleAction.RESTART_JOB.value,
    SET_PRIORITY,
    DELETE,
)
_MOST_SECONDS = 20.0  # a person waits for the response


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """The outcome for one job: done, or why not."""

    job: Job
    is_done: bool
    why: str = ""


def act_on_all(
    jobs: Sequence[Job], action: str, *, user: User, now: datetime, priority: int | None = None
) -> list[BulkOutcome]:
    """Apply one of `BULK_ACTIONS` to each of these jobs, at most `MOST_AT_ONCE`, in their order.

    An error of one job does not affect the others. Jobs that are not reached in time are reported as timed out, and can
    be retried. Raises Invalid if the action sets a priority and `priority` is None.
    """
    require_priority(action, priority)
    return list(_outcomes(jobs[:MOST_AT_ONCE], _act_of(action, priority, user, now)))


def require_priority(action: str, priority: int | None) -> None:
    """Raises Invalid if the action sets a priority and none is given."""
    if action == SET_PRIORITY and priority is None:
        raise Invalid([Problem("priority", _("Enter a priority."))])


def _act_of(action: str, priority: int | None, user: User, now: datetime) -> Callable[[Job], object]:
    if action == DELETE:
        return lambda job: delete(job, user=user, now=now)
    if action == SET_PRIORITY:
        return lambda job: set_priority(job, priority or 0, user=user, now=now)
    return lambda job: command(job, LifecycleAction(action), user=user, now=now)


def _outcomes(jobs: Sequence[Job], act: Callable[[Job], object]) -> Iterator[BulkOutcome]:
    limit = time.monotonic() + _MOST_SECONDS
    for job in jobs:
        if time.monotonic() > limit:
            yield BulkOutcome(job, False, _("Timed out. Try again."))
        else:
            yield _outcome(job, act)


def _outcome(job: Job, act: Callable[[Job], object]) -> BulkOutcome:
    try:
        act(job)
    except HeklaError as error:
        return BulkOutcome(job, False, str(error))
    return BulkOutcome(job, True)
