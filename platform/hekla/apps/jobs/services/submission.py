"""Submission of jobs: forms, YAML, REST and the command line all call `submit`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid4, uuid5

from django.db import IntegrityError
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import spec_checks
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import quota, routing
from hekla.apps.jobs.services.routing import Route
from hekla.apps.jobs.services.telling import tell
from hekla.apps.priorities import selectors as priorities
from hekla.apps.priorities.selectors import Offering, RequestedPriority
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.quotas import selectors as quotas
from hekla.apps.secrets import services as keeping
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import cards, events
from hekla.domain import secrets as naming
from hekla.domain.errors import Forbidden, Invalid, NotFound, Problem, Refused
from hekla.domain.job_kinds import EXTERNAL
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import Resources, format_quantity
from hekla.domain.scaling import immutable_fields

_KEYS = UUID("5d3a1f0e-8f0c-4d0e-9a5d-6f5b0c1e7a42")  # the namespace of idempotency keys


class QueueNotOpen(Refused):
    """The queue accepts no submissions now."""

    code = "queue_closed"


class JobNameConflict(Refused):
    """The tenant has a job with that name already."""

    code = "name_taken"


class JobKeyConflict(Refused):
    """The idempotency key belongs to another job."""

    code = "key_used"


def submit(
    *,
    spec: JobSpec,
    tenant: Tenant,
    user: User,
    now: datetime,
    key: str = "",
    secrets: Mapping[str, str] | None = None,
) -> Job:
    """Submit a job.

    Raises NotFound, Refused, QueueNotOpen, QuotaExceeded, JobNameConflict, JobKeyConflict, Invalid (can never run).
    With an idempotency `key`, the same person's second submission under it returns the job of the first. `secrets`: the
    values of the secrets that its commands name; they are stored apart from the job.
    """
    uid = uuid5(_KEYS, f"{user.pk}:{key}") if key else uuid4()
    if key and (known := Job.objects.filter(uid=uid).first()):
        require_submission_right(tenant, user)
        return _the_same(known, spec, tenant)
    offer = priorities.offer_to(tenant)
    route = route_for(spec=spec, tenant=tenant, user=user)
    problems = [*_job_problems(spec, offer, secrets), *_queue_problems(spec, route.queue)]
    problems += spec_checks.problems(spec, tenant)
    requested = offer.requested(spec)
    try:
        with unit_of_work():
            bounds = quotas.binding(tenant, user)
            _refuse([*problems, *quota.never_fitting(spec, tenant=tenant, user=user, bounds=bounds)])
            try:
                quota.require([spec], [route.queue], tenant=tenant, user=user, now=now, bounds=bounds)
            except Refused as error:
                if _is_name_used(spec, tenant):  # the first reason; mostly the row itself finds that
                    raise _name_conflict(spec, tenant) from error
                raise
            job = new_row(spec, requested, tenant=tenant, queue=route.queue, user=user, at=now)
            job.uid = uid
            job.save(force_insert=True)
            tell(job, submitted(job), actor=actor_of(user), now=now)
            routing.note(job, route, actor=actor_of(user), now=now)
            keeping.keep(uid, secrets or {})
    except IntegrityError as error:
        if key and (known := Job.objects.filter(uid=uid).first()):
            return _the_same(known, spec, tenant)
        raise _name_conflict(spec, tenant) from error
    return job


def try_out(
    *, spec: JobSpec, tenant: Tenant, user: User, now: datetime, secrets: Mapping[str, str] | None = None
) -> None:
    """Check whether `submit` would accept this job now, if its name is free. Raises what `submit` raises."""
    route = check(spec=spec, tenant=tenant, user=user, secrets=secrets)
    quota.require([spec], [route.queue], tenant=tenant, user=user, now=now, is_dry=True)


def check(
    *,
    spec: JobSpec,
    tenant: Tenant,
    user: User,
    secrets: Mapping[str, str] | None = None,
    offer: Offering | None = None,
) -> Route:
    """Check whether this person may submit this job here, and whether it could ever run. Returns its route.

    `offer`: the priority classes of the tenant; pass them if already read. Raises Invalid, and what `route_for` raises.
    """
    route = route_for(spec=spec, tenant=tenant, user=user)
    _refuse(
        [
            *_job_problems(spec, offer or priorities.offer_to(tenant), secrets),
            *_queue_problems(spec, route.queue),
            *spec_checks.problems(spec, tenant),
            *quota.never_fitting(spec, tenant=tenant, user=user),
        ]
    )
    return route


def _refuse(problems: list[Problem]) -> None:
    """Raises Invalid if there are any."""
    if problems:
        raise Invalid(problems)


def find_problems(
    *,
    spec: JobSpec,
    tenant: Tenant,
    user: User,
    now: datetime,
    secrets: Mapping[str, str] | None = None,
    has_own_name: bool = True,
) -> list[Problem]:
    """Everything for which `submit` would refuse this job now, for a form that shows all problems at once.

    `submit` itself stops at the first kind of problem. `has_own_name`: the job gets this name, not one derived from it.
    """
    offer = priorities.offer_to(tenant)
    found = [*_job_problems(spec, offer, secrets), *spec_checks.problems(spec, tenant)]
    found += quota.never_fitting(spec, tenant=tenant, user=user)
    if has_own_name and _is_name_used(spec, tenant):
        found.append(_as_problem(_name_conflict(spec, tenant)))
    try:
        queue = route_for(spec=spec, tenant=tenant, user=user, is_timed=False).queue
        found += _queue_problems(spec, queue)
        quota.require([spec], [queue], tenant=tenant, user=user, now=now, is_dry=True)
    except Refused as error:
        found.append(_as_problem(error))
    return found


def _as_problem(error: Refused) -> Problem:
    return Problem(error.path, error.message)


def _job_problems(spec: JobSpec, offer: Offering, secrets: Mapping[str, str] | None) -> Iterable[Problem]:
    """The problems that the job has in every queue."""
    yield from _reserved_kind(spec)
    yield from _unknown_environments(spec)
    yield from _missing_secrets(spec, secrets or {})
    yield from offer.problems(spec)


def _queue_problems(spec: JobSpec, queue: Queue) -> Iterable[Problem]:
    yield from _missing_commands(spec, queue)
    yield from _unfreezable(spec, queue)
    yield from never_fitting(spec, queue)


def route_for(*, spec: JobSpec, tenant: Tenant, user: User, is_timed: bool = True) -> Route:
    """The route of the job to the open queue that it names, or through the federated queue that it names.

    Raises NotFound, Forbidden (this person may not submit here), Refused.
    """
    require_submission_right(tenant, user)
    open_to = queues.listed_open_to(tenant)
    if all(queue.name != spec.queue for queue in open_to):  # queues and federated queues share their names
        federated = queues.federated_open_to(tenant).filter(name=spec.queue).first()
        if federated is not None:
            return routing.through(federated, spec, tenant=tenant, user=user, is_timed=is_timed)
    return Route(_open_queue(spec.queue, tenant, open_to))


def require_submission_right(tenant: Tenant, user: User) -> None:
    """Raises NotFound unless the person may see the tenant, Forbidden unless they may submit jobs to it."""
    if tenancy.may(user, tenant.pk, Permission.SUBMIT_JOBS):  # every role with this permission may see the tenant
        return
    if not tenancy.visible_to(user).filter(pk=tenant.pk).exists():
        raise NotFound(_("Unknown tenant."))
    raise Forbidden(_("You can view this tenant, but not submit to it. Ask a tenant admin."), "tenant")


def _the_same(known: Job, spec: JobSpec, tenant: Tenant) -> Job:
    if known.deleted_at is not None or known.tenant_id != tenant.pk or not _is_the_same(known, spec):
        raise JobKeyConflict(_("This idempotency key belongs to another or a deleted job. Use a new key."))
    return known


def _is_the_same(known: Job, spec: JobSpec) -> bool:
    """Whether this is the specification that was submitted; the job's size may have changed since."""
    if known.revision == 1:
        return bool(known.spec == spec.document())
    return immutable_fields(JobSpec.parse(known.spec)) == immutable_fields(spec)


def new_row(
    spec: JobSpec, requested: RequestedPriority, *, tenant: Tenant, queue: Queue, user: User, at: datetime
) -> Job:
    """The row of a new job, not saved yet."""
    return Job(
        name=spec.name,
        tenant=tenant,
        queue=queue,
        cluster=queue.cluster,
        owner=user,
        spec=spec.document(),
        kind=spec.kind,
        priority=requested.value,
        never_preempts=requested.never_preempts,
        replicas=spec.replicas,
        submitted_at=at,
    )


def submitted(job: Job) -> events.JobSubmitted:
    """The first event of a job."""
    return events.JobSubmitted(name=job.name, queue=job.queue.name, job_kind=job.kind, replicas=job.replicas)


def _is_name_used(spec: JobSpec, tenant: Tenant) -> bool:
    return Job.objects.filter(tenant=tenant, name=spec.name, deleted_at=None).exists()


def _name_conflict(spec: JobSpec, tenant: Tenant) -> JobNameConflict:
    sentence = _("%(tenant)s has a job “%(name)s” already. Choose another name, or delete that job.")
    return JobNameConflict(sentence % {"tenant": tenant, "name": spec.name}, "name")


def _open_queue(name: str, tenant: Tenant, open_to: Sequence[Queue]) -> Queue:
    queue = next((queue for queue in open_to if queue.name == name), None)
    others = _(", ").join(queue.name for queue in open_to if queue.is_open and queue.name != name) or _("none")
    if queue is None:
        sentence = _("%(tenant)s cannot use a queue “%(name)s”. Available queues: %(others)s.")
        raise Refused(sentence % {"tenant": tenant, "name": name, "others": others}, "queue")
    if not queue.is_open:
        raise QueueNotOpen(_why_shut(queue, others), "queue")
    return queue


def _why_shut(queue: Queue, others: str) -> str:
    facts = {
        "name": queue.name,
        "since": date_format(queue.state_at or queue.created_at, "DATETIME_FORMAT"),
        "who": queue.state_by or _("a platform admin"),
        "others": others,
    }
    if queue.is_draining:
        sentence = _(
            "Queue %(name)s is draining since %(since)s (by %(who)s) and accepts no jobs. Open queues: "
            "%(others)s. You can also ask %(who)s."
        )
    else:
        sentence = _(
            "Queue %(name)s is closed since %(since)s (by %(who)s). Open queues: %(others)s. You can also ask %(who)s."
        )
    return sentence % facts


def _reserved_kind(spec: JobSpec) -> Iterable[Problem]:
    if spec.kind == EXTERNAL:
        yield Problem("kind", _("This kind is reserved for external pods. Choose another kind."))


def _unknown_environments(spec: JobSpec) -> Iterable[Problem]:
    if not any(task.environment for task in spec.tasks):
        return
    known = set(clusters.environments().values_list("name", flat=True))
    for place, task in enumerate(spec.tasks):
        if task.environment and task.environment not in known:
            names = _(", ").join(sorted(known))
            sentence = _("Unknown environment “%(name)s”. Available: %(names)s.")
            yield Problem(f"tasks.{place}.environment", sentence % {"name": task.environment, "names": names})


def _missing_commands(spec: JobSpec, queue: Queue) -> Iterable[Problem]:
    """Problems of tasks that run the command of their image, on a cluster that runs processes without images."""
    for place, task in enumerate(spec.tasks if not queue.cluster.runs_images else ()):
        if not task.command:
            sentence = _("Required on cluster %(cluster)s. It runs processes of this machine, not images.")
            yield Problem(f"tasks.{place}.command", sentence % {"cluster": queue.cluster})


def _unfreezable(spec: JobSpec, queue: Queue) -> Iterable[Problem]:
    """The problem of a job whose failed pods shall stay, where Volcano makes pods without folders that outlive them."""
    if spec.keep_failed_seconds and queue.cluster.leads_jobs:
        sentence = _("Not possible on cluster %(cluster)s: Volcano makes its pods, and their files go with them.")
        yield Problem("keep_failed_seconds", sentence % {"cluster": queue.cluster})


def _missing_secrets(spec: JobSpec, values: Mapping[str, str]) -> Iterable[Problem]:
    """Problems with secrets that a JobConfig names without a value, as in a clone, or that make a command too long."""
    for place, task in enumerate(spec.tasks if "openpai" in spec.plugins else ()):
        if missing := sorted(naming.secret_names(task.command) - set(values)):
            sentence = _("The secret “%(name)s” has no value. Send the whole JobConfig with its secrets.")
            yield Problem(f"tasks.{place}.command", sentence % {"name": missing[0]})
        elif any(naming.filled_length(word, values) > naming.MAX_FILLED for word in task.command):
            sentence = _("The command with its secrets exceeds %(most)d KiB.")
            yield Problem(f"tasks.{place}.command", sentence % {"most": naming.MAX_FILLED // 1024})


def never_fitting(spec: JobSpec, queue: Queue) -> Iterable[Problem]:
    """Problems of a job that exceeds every node, all nodes together, or the queue's limit, or requests whole GPUs where
    they are only shared.
    """
    return too_large(spec, queue, clusters.sizes(queue.cluster))


def too_large(spec: JobSpec, queue: Queue, sizes: Sequence[Resources]) -> Iterable[Problem]:
    """The same, for nodes of these sizes."""
    counts = Counter(id(size.amounts) for size in sizes)  # equal amounts are the same mapping (`Resources`)
    kinds = list({id(size.amounts): size for size in sizes}.values())
    yield from _larger_than_any_node(spec, kinds) if sizes else ()
    yield from _whole_shared_cards(spec, queue.cluster, kinds)
    least = spec.minimum_resources()
    cluster = _("cluster %s") % queue.cluster
    limits = [
        (name, sum(size.amount(name) * counts[id(size.amounts)] for size in kinds), cluster) for name in least if sizes
    ]
    capability = Resources.parse_limits(queue.capability or {})
    limits += [(name, capability.amount(name), _("queue %s") % queue) for name in least if name in capability]
    for name, limit, owner in limits:
        if least.amount(name) > limit:
            yield Problem("tasks", _too_much(name, least.amount(name), limit, owner))


def _whole_shared_cards(spec: JobSpec, cluster: Cluster, sizes: Sequence[Resources]) -> Iterable[Problem]:
    """Problems of tasks that request whole GPUs of machines that give only parts of them (`hekla.backends.local`)."""
    largest = max((cards.largest_part(size) for size in sizes), default=0)
    for place, task in enumerate(spec.tasks if largest and not cluster.gives_whole_shared_cards else ()):
        if task.request.amount(cards.NUMBER):
            sentence = _(
                "Jobs share the GPUs of cluster %(cluster)s, so they request memory of one. A whole one is "
                "%(memory)s: %(most)d."
            )
            facts = {"cluster": cluster, "memory": cards.MEMORY, "most": largest}
            yield Problem(f"tasks.{place}.resources.{cards.NUMBER}", sentence % facts)


def _larger_than_any_node(spec: JobSpec, sizes: Sequence[Resources]) -> Iterable[Problem]:
    for place, task in enumerate(spec.tasks):
        if any(task.request.fits_in(size) for size in sizes):
            continue
        for name, need in task.request.items():
            largest = max(size.amount(name) for size in sizes)
            if need > largest:
                sentence = _("One replica requests %(need)s of %(name)s. The largest node has %(have)s.")
                have = format_quantity(name, largest)
                facts = {"need": format_quantity(name, need), "name": name, "have": have}
                yield Problem(f"tasks.{place}.resources.{name}", sentence % facts)


def _too_much(name: str, need: float, have: float, owner: str) -> str:
    sentence = _(
        "The job needs at least %(need)s of %(name)s in total. The capacity of %(owner)s is %(have)s, so the "
        "job can never start."
    )
    return sentence % {
        "need": format_quantity(name, need),
        "name": name,
        "owner": owner,
        "have": format_quantity(name, have),
    }
