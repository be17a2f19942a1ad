"""Queries for templates and flows. Those outside a person's tenants count as not existing."""

import re
from collections.abc import Sequence
from itertools import count
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Prefetch, Q, QuerySet, UUIDField, Value
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.flows.models import Flow, FlowStep, JobTemplate
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound

_NUMBER_AT_END = re.compile(r"-\d+$")
_ROOM_FOR_STEPS = 30
_BY_UID = CompiledQuery(
    lambda: Flow.objects.filter(uid=Parameter("uid", UUIDField()), deleted_at=None).select_related("tenant", "owner")
)
_STEPS_OF = CompiledQuery(
    lambda: (
        FlowStep.objects.filter(flow=Parameter("flow", Flow._meta.pk))
        .select_related("job__queue", "job__cluster")
        .order_by("place")
    )
)
_ANY_IN_PROGRESS = "SELECT EXISTS (SELECT 1 FROM flows_flow WHERE ended_at IS NULL)"
"""Written out: it is asked after each change of a job, and building the query costs Django more than running it."""


def visible_to(user: User) -> QuerySet[Flow]:
    """The flows that this person may see, newest first."""
    flows = Flow.objects.filter(_within_reach(user), deleted_at=None).select_related("tenant", "owner")
    return flows.order_by("-started_at", "-id")


def templates(user: User) -> QuerySet[JobTemplate]:
    """The templates that this person may see, by name."""
    return JobTemplate.objects.filter(_within_reach(user)).select_related("tenant", "owner").order_by("name", "id")


def searchable() -> QuerySet[Flow]:
    """All flows without deleted ones, for a search that adds which tenants its reader sees."""
    return Flow.objects.filter(deleted_at=None)


def searchable_templates() -> QuerySet[JobTemplate]:
    """All templates, for a search that adds which tenants its reader sees."""
    return JobTemplate.objects.all()


def _within_reach(user: User) -> Q:
    everything = accounts.may(user, Permission.SEE_EVERYTHING)
    return Q() if everything else Q(tenant__in=tenancy.where(user, Permission.SEE_TENANT))


def get(uid: UUID, user: User) -> Flow:
    """One flow. Raises NotFound outside the person's tenants."""
    for flow in _BY_UID.rows(uid=uid):
        if accounts.may(user, Permission.SEE_EVERYTHING) or tenancy.may(user, flow.tenant_id, Permission.SEE_TENANT):
            return flow
    raise NotFound(_("Unknown flow."))


def template(uid: UUID, user: User) -> JobTemplate:
    """One template. Raises NotFound outside the person's tenants."""
    found = templates(user).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("Unknown template."))
    return found


def templates_of(tenant: Tenant) -> QuerySet[JobTemplate]:
    """All templates of a tenant, by name."""
    return JobTemplate.objects.filter(tenant=tenant).order_by("name")


def may_act(user: User, thing: Flow | JobTemplate) -> bool:
    """Whether the person may stop or delete the flow, or change or delete the template: by the rules of jobs."""
    own = thing.owner_id == user.pk and tenancy.may(user, thing.tenant_id, Permission.ACT_ON_OWN_JOBS)
    wide = tenancy.may(user, thing.tenant_id, Permission.ACT_ON_TENANT_JOBS)
    return own or wide or accounts.may(user, Permission.ACT_ON_ANY_JOB)


def steps_of(flow: Flow) -> list[FlowStep]:
    """The steps of the flow in order, with their jobs."""
    found = _STEPS_OF.rows(flow=flow.pk)
    for step in found:
        step.flow = flow
    return found


def step_counts(flows: Sequence[Flow]) -> dict[int, tuple[int, int]]:
    """By flow (row id), the numbers of completed and of all steps."""
    rows = (
        FlowStep.objects.filter(flow__in=[flow.pk for flow in flows])
        .values_list("flow_id")
        .annotate(done=Count("id", filter=Q(job__phase="completed")), all=Count("id"))
    )
    return {flow: (done, all_) for flow, done, all_ in rows}


def origin_of(job: Job | Parameter) -> QuerySet[Flow, tuple[str, UUID, str]]:
    """`flow`, uid and name of the flow that contains the job as a step; people who may see the job may see the flow."""
    found = Flow.objects.filter(steps__job=job, deleted_at=None).annotate(origin=Value("flow"))
    return found.order_by().values_list("origin", "uid", "name")


def history(flow: Flow) -> QuerySet[LoggedEvent]:
    """Everything that happened to the flow, oldest first."""
    return event_log.about(f"flow:{flow.uid}")


def names_in_use(tenant: Tenant, names: Sequence[str]) -> set[str]:
    """Those of the names that are in use by jobs of the tenant."""
    return set(Job.objects.filter(tenant=tenant, deleted_at=None, name__in=names).values_list("name", flat=True))


def free_name(tenant: Tenant, like: str) -> str:
    """The first of `nightly-1`, `nightly-2` … that neither a flow of the tenant nor jobs of a flow use."""
    stem = _NUMBER_AT_END.sub("", like)[:_ROOM_FOR_STEPS].rstrip("-")
    flows = Flow.objects.filter(tenant=tenant, deleted_at=None, name__startswith=stem)
    jobs = Job.objects.filter(tenant=tenant, deleted_at=None, name__startswith=f"{stem}-")
    in_use = list(flows.values_list("name", flat=True)), list(jobs.values_list("name", flat=True))
    return next(
        name
        for number in count(1)
        if (name := f"{stem}-{number}") not in in_use[0] and not any(job.startswith(f"{name}-") for job in in_use[1])
    )


# For advancing flows


def in_progress() -> list[Flow]:
    """Flows that have not ended, with their steps and jobs. Specs are deferred: they are read when needed."""
    steps = FlowStep.objects.select_related("job__cluster").defer("spec", "job__spec", "job__waiting")
    alive = Flow.objects.filter(ended_at=None).defer("spec").order_by("id")
    return list(alive.prefetch_related(Prefetch("steps", queryset=steps)))


def any_in_progress() -> bool:
    """Whether any flow has not ended."""
    with connection.cursor() as cursor:
        cursor.execute(_ANY_IN_PROGRESS)
        return bool(cursor.fetchone()[0])


def advance_work() -> list[QuerySet[Any, Any]]:
    """Flows that have not ended (see `due_work`)."""
    return [Flow.objects.filter(ended_at=None)]
