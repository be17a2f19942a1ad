"""Which jobs a person can see, and what they may do with them."""

from collections.abc import Callable, Collection
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import CompiledQuery, OneOf, Parameter
from hekla.apps.jobs import cards
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.errors import NotFound

_RELATED = ("tenant", "queue", "cluster", "owner")
_LISTED = (
    *("uid", "name", "kind", "priority", "replicas", "phase", "reason", "waiting", "message", "message_facts"),
    *("tenant__slug", "tenant__name", "owner__username", "owner__display_name"),
    *("queue__name", "cluster__name", "cluster__kind", "cluster__config"),
    *("submitted_at", "started_at", "finished_at", "deleted_at"),
    *("gang_phase", "version", "revision", "retry_count", "deadline_at", "restart_at"),
)


def _with_listed_columns() -> QuerySet[Job]:
    """Jobs with only what a list shows: half of a job's columns are wide."""
    jobs = Job.objects.filter(OneOf("pk", "ids", Job._meta.pk)).select_related(*_RELATED)
    return cards.with_tasks(jobs.only(*_LISTED))


_LISTED_AMONG = CompiledQuery(_with_listed_columns, shares=True)
_BY_UID = CompiledQuery(
    lambda: Job.objects.filter(uid=Parameter("uid", Job._meta.get_field("uid"))).select_related(
        *_RELATED, "cluster__lease"
    )
)


def visible_to(user: User, rights: Rights | None = None) -> QuerySet[Job]:
    """The jobs that this person can see, newest first, without deleted ones. `rights`: pass them if already read."""
    return known_to(user, rights).filter(deleted_at=None)


def searchable() -> QuerySet[Job]:
    """All jobs without deleted ones, for a search that adds which tenants its reader sees."""
    return Job.objects.filter(deleted_at=None)


def deleted_for(user: User, rights: Rights | None = None) -> QuerySet[Job]:
    """The deleted jobs that this person can still see, newest first."""
    return known_to(user, rights).filter(deleted_at__isnull=False)


def known_to(user: User, rights: Rights | None = None) -> QuerySet[Job]:
    """All jobs that this person can see, including deleted ones, newest first."""
    jobs = Job.objects.select_related(*_RELATED)
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        jobs = jobs.filter(tenant__in=(rights or tenancy.rights(user)).where(Permission.SEE_TENANT))
    return jobs.order_by("-submitted_at", "-id")


def names(uids: Collection[str]) -> dict[str, str]:
    """The names of these jobs, by uid, also of deleted ones. For events that their reader may see."""
    found = Job.objects.filter(uid__in=uids).order_by().values_list("uid", "name") if uids else ()
    return {str(uid): name for uid, name in found}


def listed(jobs: QuerySet[Job]) -> list[Job]:
    """These jobs, in their order, with what a list shows. Only these are joined with other rows.

    Their queues, clusters etc. are shared objects, to be read only.
    """
    return _LISTED_AMONG.rows_among("ids", jobs)


def newest(jobs: QuerySet[Job], most: int) -> list[Job]:
    """The newest of these jobs, at most so many, with what a list shows."""
    return listed(jobs.order_by("-submitted_at", "-pk")[:most])


def get(uid: UUID, user: User, rights: Rights | None = None) -> Job:
    """One job, possibly deleted, with the lease of its cluster. Raises NotFound."""
    sees_all = accounts.may(user, Permission.SEE_EVERYTHING)
    for job in _BY_UID.rows(uid=uid):
        if sees_all or job.tenant_id in (rights or tenancy.rights(user)).where(Permission.SEE_TENANT):
            return job
    raise NotFound(_("Unknown job."))


def by_name(name: str, user: User) -> Job:
    """The newest job of that name. Raises NotFound."""
    job = visible_to(user).filter(name=name).first()
    if job is None:
        raise NotFound(_("Unknown job “%(name)s”.") % {"name": name[:60]})
    return job


def may_act(user: User, job: Job) -> bool:
    """Whether the person may abort, resume, restart or delete the job."""
    return action_predicate(user, tenancy.rights(user))(job)


def seeing(user: User, rights: Rights) -> Callable[[Job], bool]:
    """A check whether this person can see a job and it is not deleted, for many jobs without further queries."""
    may_know = knowing(user, rights)
    return lambda job: job.deleted_at is None and may_know(job)


def knowing(user: User, rights: Rights) -> Callable[[Job], bool]:
    """As `seeing`, also for deleted jobs: `known_to` as a check."""
    everywhere, tenants = accounts.may(user, Permission.SEE_EVERYTHING), set(rights.where(Permission.SEE_TENANT))
    return lambda job: everywhere or job.tenant_id in tenants


def action_predicate(user: User, rights: Rights) -> Callable[[Job], bool]:
    """`may_act` as a check for many jobs, without further queries."""
    if accounts.may(user, Permission.ACT_ON_ANY_JOB):
        return lambda _job: True
    own, wide = rights.where(Permission.ACT_ON_OWN_JOBS), rights.where(Permission.ACT_ON_TENANT_JOBS)
    return lambda job: job.tenant_id in wide or (job.owner_id == user.pk and job.tenant_id in own)
