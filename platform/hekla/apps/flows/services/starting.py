"""Starts flows: all of a flow is validated before any of it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4, uuid5

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.flows import selectors
from hekla.apps.flows.models import Flow, FlowStep, JobTemplate
from hekla.apps.flows.services.advancing import begin_what_is_due
from hekla.apps.flows.services.resolving import ResolvedFlow, resolve
from hekla.apps.flows.services.telling import tell
from hekla.apps.flows.services.templates import FlowNameConflict, save_template
from hekla.apps.jobs import services as job_services
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Invalid, Problem, Refused
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.domain.validation import join

_KEYS = UUID("0b6f4f0e-54d5-4b0b-a5a0-6a2f5f1d9d3c")  # the namespace of idempotency keys


class FlowKeyConflict(Refused):
    """The idempotency key was used for another flow."""

    code = "key_used"


@dataclass(frozen=True, slots=True)
class AppliedManifest:
    """The result of applying a manifest."""

    templates: Sequence[JobTemplate]
    flow: Flow | None
    warnings: tuple[str, ...]


def apply(
    *, templates: Sequence[JobSpec], flow: FlowSpec | None, tenant: Tenant, user: User, now: datetime, key: str = ""
) -> AppliedManifest:
    """Save these templates and start this flow, all or nothing. Raises what `save_template` and `start` raise."""
    with unit_of_work():
        saved = [save_template(spec=spec, tenant=tenant, user=user, now=now) for spec in templates]
        started, warnings = _start(flow, tenant, user, now, key) if flow else (None, ())
    return AppliedManifest(saved, started, warnings)


def start(*, spec: FlowSpec, tenant: Tenant, user: User, now: datetime, key: str = "") -> Flow:
    """Start a flow. With an idempotency `key`, a second start by the same person returns the flow of the first.

    Raises NotFound, Forbidden, Invalid, FlowNameConflict, FlowKeyConflict, and what submitting a job raises.
    """
    return _start(spec, tenant, user, now, key)[0]


def check(*, spec: FlowSpec, tenant: Tenant, user: User, more: Sequence[JobSpec] = ()) -> ResolvedFlow:
    """The jobs of the flow, not submitted; raises what `start` raises. `more`: templates to be saved with it."""
    job_services.require_submission_right(tenant, user)
    known, coming = selectors.templates_of(tenant), {template.name: template for template in more}
    needed = known.filter(name__in={step.template_name for step in spec.steps} - set(coming))
    templates = {template.name: JobSpec.parse(template.spec) for template in needed} | coming
    resolved = resolve(spec, templates, [*coming, *known.values_list("name", flat=True)])
    _check_names(spec, tenant)
    _check_jobs(spec, resolved, tenant, user)
    return resolved


def _start(spec: FlowSpec, tenant: Tenant, user: User, now: datetime, key: str) -> tuple[Flow, tuple[str, ...]]:
    uid = uuid5(_KEYS, f"{user.pk}:{key}") if key else uuid4()
    if key and (known := Flow.objects.filter(uid=uid).first()):
        job_services.require_submission_right(tenant, user)
        return _the_same(known, spec, tenant), ()
    resolved = check(spec=spec, tenant=tenant, user=user)
    try:
        with unit_of_work():
            flow = _create(uid, spec, resolved, tenant, user, now)
    except IntegrityError as error:
        if key and (known := Flow.objects.filter(uid=uid).first()):
            return _the_same(known, spec, tenant), ()
        raise _name_conflict(spec, tenant) from error
    begin_what_is_due(flow.pk, now=now)
    flow.refresh_from_db()
    return flow, resolved.warnings


def _create(uid: UUID, spec: FlowSpec, resolved: ResolvedFlow, tenant: Tenant, user: User, now: datetime) -> Flow:
    flow = Flow.objects.create(uid=uid, name=spec.name, tenant=tenant, owner=user, spec=spec.document(), started_at=now)
    FlowStep.objects.bulk_create(
        FlowStep(flow=flow, place=place, name=step.name, spec=resolved.jobs[step.name].document())
        for place, step in enumerate(spec.steps)
    )
    tell(flow, events.FlowStarted(name=spec.name, steps=len(spec.steps)), actor=actor_of(user), now=now)
    return flow


def _the_same(known: Flow, spec: FlowSpec, tenant: Tenant) -> Flow:
    if known.deleted_at is not None or known.tenant_id != tenant.pk or known.spec != spec.document():
        raise FlowKeyConflict(_("This idempotency key belongs to another or a deleted flow. Use a new key."))
    return known


def _check_names(spec: FlowSpec, tenant: Tenant) -> None:
    if Flow.objects.filter(tenant=tenant, name=spec.name, deleted_at=None).exists():
        raise _name_conflict(spec, tenant)
    in_use = selectors.names_in_use(tenant, [spec.job_name(step.name) for step in spec.steps])
    for place, step in enumerate(spec.steps):
        if (name := spec.job_name(step.name)) in in_use:
            sentence = _("%(tenant)s has a job “%(name)s” already. Rename the flow, or delete that job.")
            raise FlowNameConflict(sentence % {"tenant": tenant, "name": name}, join("steps", place, "name"))


def _check_jobs(spec: FlowSpec, resolved: ResolvedFlow, tenant: Tenant, user: User) -> None:
    """Check that each job can be submitted now, and can ever run. Raises Invalid, Refused, with paths in the flow."""
    problems: list[Problem] = []
    for place, step in enumerate(spec.steps):
        here = join("steps", place, "job")
        try:
            job_services.check(spec=resolved.jobs[step.name], tenant=tenant, user=user)
        except Invalid as error:
            problems += [Problem(join(here, problem.path), problem.message) for problem in error.problems]
        except Refused as error:
            error.path = join(here, error.path)
            raise
    if problems:
        raise Invalid(problems)


def _name_conflict(spec: FlowSpec, tenant: Tenant) -> FlowNameConflict:
    sentence = _("%(tenant)s has a flow “%(name)s” already. Choose another name, or delete that flow.")
    return FlowNameConflict(sentence % {"tenant": tenant, "name": spec.name}, "name")
