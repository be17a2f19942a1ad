"""Many jobs in one submission: all are submitted, or none."""

from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from itertools import count

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import quota, routing
from hekla.apps.jobs.services.routing import Route
from hekla.apps.jobs.services.submission import JobNameConflict, check, new_row, submitted
from hekla.apps.jobs.services.telling import tell
from hekla.apps.priorities import selectors as priorities
from hekla.apps.tenancy.models import Tenant
from hekla.domain import secrets as naming
from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.validation import join

_MOST_PROBLEMS = 20


def submit_many(*, specs: Sequence[JobSpec], tenant: Tenant, user: User, now: datetime) -> list[Job]:
    """Submit jobs, in their order. Raises what `submit` raises; Invalid with paths like `jobs.3.tasks`."""
    routes = check_many(specs=specs, tenant=tenant, user=user)
    queues = [route.queue for route in routes]
    offer = priorities.offer_to(tenant)
    jobs = [
        # The submission time decides the order.
        new_row(
            spec, offer.requested(spec), tenant=tenant, queue=queue, user=user, at=now + timedelta(microseconds=place)
        )
        for place, spec, queue in zip(count(), specs, queues, strict=False)
    ]
    try:
        with unit_of_work():
            quota.require(specs, queues, tenant=tenant, user=user, now=now)
            made = Job.objects.bulk_create(jobs, batch_size=500)
            for job, route in zip(made, routes, strict=True):
                tell(job, submitted(job), actor=actor_of(user), now=now)
                routing.note(job, route, actor=actor_of(user), now=now)
    except IntegrityError as error:
        raise _names_conflict([spec.name for spec in specs], tenant) from error
    return made


def try_out_many(*, specs: Sequence[JobSpec], tenant: Tenant, user: User, now: datetime) -> None:
    """Check whether `submit_many` would accept these jobs now. Raises what `submit_many` raises."""
    queues = [route.queue for route in check_many(specs=specs, tenant=tenant, user=user)]
    quota.require(specs, queues, tenant=tenant, user=user, now=now, is_dry=True)


def check_many(*, specs: Sequence[JobSpec], tenant: Tenant, user: User) -> list[Route]:
    """Check whether these jobs can be submitted together. Returns the route of each.

    Jobs with equal requirements are checked once and get the same route; those that wait there can move later.
    """
    known: dict[Hashable, Route] = {}
    problems: list[Problem] = []
    names: set[str] = set()
    for number, spec in enumerate(specs, start=1):
        if spec.name in names:
            problems.append(Problem(join("jobs", number, "name"), _("Another job here has this name.")))
        names.add(spec.name)
        shape = _shape(spec)
        if shape in known or len(problems) >= _MOST_PROBLEMS:
            continue
        try:
            known[shape] = check(spec=spec, tenant=tenant, user=user)
        except Invalid as error:
            problems += [Problem(join("jobs", number, each.path), each.message) for each in error.problems]
    if problems:
        raise Invalid(problems[:_MOST_PROBLEMS])
    in_use = Job.objects.filter(tenant=tenant, name__in=names, deleted_at=None).order_by("id")
    if first := list(in_use.values_list("name", flat=True)[:5]):
        raise _names_conflict(first, tenant)
    return [known[_shape(spec)] for spec in specs]


def _shape(spec: JobSpec) -> Hashable:
    """Everything in a job that decides whether it could ever run here."""
    tasks = tuple(
        (
            task.replicas,
            task.min_available,
            task.environment,
            tuple(sorted(task.resources.items())),
            frozenset(naming.secret_names(task.command)),
        )
        for task in spec.tasks
    )
    return spec.queue, spec.priority, spec.priority_class, spec.min_available, frozenset(spec.plugins), tasks


def _names_conflict(names: Sequence[str], tenant: Tenant) -> JobNameConflict:
    sentence = _("%(tenant)s has jobs with these names already: %(names)s. Choose another name, or delete those jobs.")
    return JobNameConflict(sentence % {"tenant": tenant, "names": _(", ").join(names[:5])}, "name")
