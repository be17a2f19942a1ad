"""Queries about jobs by their OpenPAI names: `user~name`."""

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.openpai.models import Submission
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound
from hekla.domain.phases import PodPhase

_BY_ITSELF = [PodPhase.FAILED.value, PodPhase.LOST.value]


def visible_to(user: User) -> QuerySet[Job]:
    """The jobs that this person can see, with `openpai_name` and `has_failed_pod` (stopped pods do not count)."""
    failed = Pod.objects.filter(job=OuterRef("pk"), version=OuterRef("version"), stopping=False, phase__in=_BY_ITSELF)
    return (
        jobs.visible_to(user)
        .select_related("tenant", "queue", "cluster", "owner", "jobconfig")
        .annotate(openpai_name=Coalesce("jobconfig__name", F("name")), has_failed_pod=Exists(failed))
    )


def get(owner: str, name: str, user: User) -> Job:
    """The job of that owner and name; of several a JobConfig first, then the newest. Raises NotFound."""
    found = visible_to(user).filter(_called(name), owner__username=owner)
    job = found.order_by(F("jobconfig__pk").desc(nulls_last=True), "-submitted_at").first()
    if job is None:
        raise NotFound(_("Unknown job."))
    return job


def name_exists(owner: User, name: str) -> bool:
    """Whether the person has a job of that name already, however it was submitted."""
    return Job.objects.filter(_called(name), owner=owner, deleted_at=None).exists()


def submission_of(job: Job) -> Submission | None:
    """The JobConfig submission of this job, or None."""
    return Submission.objects.filter(job=job).first()


def tenant_of(user: User, queue: str) -> Tenant | None:
    """The first of the person's tenants that may submit to that queue, else their first tenant, or None."""
    mine = list(tenancy.own(user).filter(pk__in=tenancy.where(user, Permission.SUBMIT_JOBS)))
    return next((one for one in mine if queues.open_to(one).filter(name=queue).exists()), next(iter(mine), None))


def _called(name: str) -> Q:
    """Matches the OpenPAI name, or the job's own name if it was not submitted as a JobConfig."""
    return Q(jobconfig__name=name) | Q(jobconfig__isnull=True, name=name)
