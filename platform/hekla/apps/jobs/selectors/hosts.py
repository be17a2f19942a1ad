"""Running pods by the names that people use for them as hosts of SSH."""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db.models import Case, QuerySet, When
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.selectors.visibility import action_predicate, visible_to
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.domain.phases import PodPhase

SUFFIX = ".hekla"
_MOST = 200
_MOST_NAMED = 8


def pod_by_host(host: str, user: User) -> Pod:
    """The running pod that `JOB` or `JOB.TASK-INDEX` names, with or without `.hekla`. JOB is a name or a uid.

    Of jobs with the same name, those count that the person may act on. Raises NotFound, Forbidden, or Refused if the
    name stands for no running pod or for several.
    """
    name, _dot, wanted = host.lower().removesuffix(SUFFIX).partition(".")
    jobs = _jobs(name, user)
    own_first = Case(When(job__owner=user, then=0), default=1)  # others' pods of this name may be too many to read
    all_running = (
        Pod.objects.filter(job__in=jobs, phase=PodPhase.RUNNING).select_related("job").order_by(own_first, "pk")
    )
    running = list(_named(all_running, wanted)[:_MOST] if wanted else all_running[:_MOST])
    is_named, may_act = bool(running), action_predicate(user, tenancy.rights(user))
    running = running or list(all_running[:_MOST])
    if not running:
        found = jobs.first()
        if found is None:
            raise NotFound(_("Unknown job “%(name)s”.") % {"name": name[:60]})
        if not may_act(found):
            raise Forbidden(_("Only the owner of the job and tenant admins can do this."))
        raise Refused(_("No pod of %(job)s is running now.") % {"job": found.name})
    running = [pod for pod in running if may_act(pod.job)] or running[:1]
    if is_named and len(running) == 1:
        return running[0]
    facts = {"name": name, "hosts": _hosts(running, name)}
    if is_named:
        raise Refused(_("“%(name)s” stands for several pods. Name one of: %(hosts)s") % facts)
    raise Refused(_("“%(name)s” has no such running pod. Name one of: %(hosts)s") % facts)


def running_among(pod_ids: Collection[int]) -> set[int]:
    """Those of these pods that are running."""
    return set(Pod.objects.filter(pk__in=pod_ids, phase=PodPhase.RUNNING).values_list("pk", flat=True))


def _jobs(name: str, user: User) -> QuerySet[Job]:
    try:
        return visible_to(user).filter(uid=UUID(name))
    except ValueError:
        return visible_to(user).filter(name=name)


def _named(pods: QuerySet[Pod], wanted: str) -> QuerySet[Pod]:
    task, _dash, index = wanted.rpartition("-")
    is_number = index.isascii() and index.isdigit() and len(index) < 10  # noqa: PLR2004
    return pods.filter(task=task, index=int(index)) if is_number else pods.none()


def _hosts(pods: Sequence[Pod], name: str) -> str:
    """Host names for the first of these pods."""
    is_one_job = len({pod.job_id for pod in pods}) == 1
    hosts = [f"{name if is_one_job else pod.job.uid}.{pod}{SUFFIX}" for pod in pods]
    return ", ".join([*sorted(hosts)[:_MOST_NAMED], *(["…"] if len(hosts) > _MOST_NAMED else [])])
