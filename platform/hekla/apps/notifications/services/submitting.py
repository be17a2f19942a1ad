"""Submits a job together with its owner's notification choice: both or neither."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import selectors
from hekla.apps.notifications.services.choosing import choose_for_job
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec

Choice = dict[str, Any]


def submit(
    *,
    spec: JobSpec,
    tenant: Tenant,
    user: User,
    now: datetime,
    choice: Choice | None,
    key: str = "",
    secrets: Mapping[str, str] | None = None,
) -> Job:
    """Submit a job. Raises what `jobs.services.submit` raises; Invalid at `notify_by` for a channel without an address.

    Without a `choice`, or with one equal to the person's defaults, no choice is stored for this job.
    """
    if choice is None:
        return jobs.submit(spec=spec, tenant=tenant, user=user, now=now, key=key, secrets=secrets)
    with unit_of_work():
        job = jobs.submit(spec=spec, tenant=tenant, user=user, now=now, key=key, secrets=secrets)
        if not _is_usual(choice, user):
            _choose(user, job, choice)
    return job


def _choose(user: User, job: Job, choice: Choice) -> None:
    try:
        choose_for_job(user, job, choice)
    except Invalid as error:
        raise Invalid([Problem("notify_by", problem.message) for problem in error.problems]) from error


def _is_usual(choice: Choice, user: User) -> bool:
    usual = selectors.preference(user)
    lists = all(set(choice[name]) == set(getattr(usual, name)) for name in ("moments", "channels"))
    return lists and choice.get("long_wait_minutes", usual.long_wait_minutes) == usual.long_wait_minutes
