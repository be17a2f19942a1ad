"""Saves, changes and deletes templates."""

from datetime import datetime

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.flows import selectors
from hekla.apps.flows.models import JobTemplate
from hekla.apps.flows.services.telling import tell
from hekla.apps.jobs import services as jobs
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.jobspec import JobSpec

MAX_TEMPLATES = 1_000


class FlowNameConflict(Refused):
    """The tenant has a template or flow, or for a flow a job, with this name."""

    code = "name_taken"


class TooManyTemplates(Refused):
    """The tenant has MAX_TEMPLATES templates already."""

    code = "too_many"


def create_template(*, spec: JobSpec, tenant: Tenant, user: User, now: datetime) -> JobTemplate:
    """Save a job as a template of its name. Raises NotFound, Forbidden, FlowNameConflict, TooManyTemplates."""
    jobs.require_submission_right(tenant, user)
    if selectors.templates_of(tenant).count() >= MAX_TEMPLATES:
        sentence = _("%(tenant)s has %(most)d templates, the maximum. Delete some first.")
        raise TooManyTemplates(sentence % {"tenant": tenant, "most": MAX_TEMPLATES})
    try:
        with unit_of_work():
            template = JobTemplate.objects.create(
                name=spec.name, tenant=tenant, owner=user, spec=spec.document(), created_at=now, changed_at=now
            )
            tell(template, events.JobTemplateCreated(name=spec.name), actor=actor_of(user), now=now)
    except IntegrityError as error:
        raise _name_conflict(spec, tenant) from error
    return template


def change_template(template: JobTemplate, *, spec: JobSpec, user: User, now: datetime) -> JobTemplate:
    """Replace the job of the template, and its name. Raises Forbidden, FlowNameConflict."""
    _require_right(template, user)
    document = spec.document()
    try:
        with unit_of_work():
            template = changes.locked(template)
            changed = sorted(
                name for name in {*document, *template.spec} if document.get(name) != template.spec.get(name)
            )
            if changed:
                template.name, template.spec, template.changed_at = spec.name, document, now
                template.save(update_fields=["name", "spec", "changed_at"])
                event = events.JobTemplateChanged(name=spec.name, fields=tuple(changed))
                tell(template, event, actor=actor_of(user), now=now)
    except IntegrityError as error:
        raise _name_conflict(spec, template.tenant) from error
    return template


def save_template(*, spec: JobSpec, tenant: Tenant, user: User, now: datetime) -> JobTemplate:
    """Create the template, or change the one with the same name. Raises as `create_template` and `change_template`."""
    known = selectors.templates_of(tenant).filter(name=spec.name).first()
    if known is None:
        return create_template(spec=spec, tenant=tenant, user=user, now=now)
    jobs.require_submission_right(tenant, user)
    return known if known.spec == spec.document() else change_template(known, spec=spec, user=user, now=now)


def delete_template(template: JobTemplate, *, user: User, now: datetime) -> None:
    """Delete a template; flows that have started keep their own copy of its job. Raises Forbidden."""
    _require_right(template, user)
    with unit_of_work():
        changes.lock(template)
        tell(template, events.JobTemplateDeleted(name=template.name), actor=actor_of(user), now=now)
        template.delete()


def _require_right(template: JobTemplate, user: User) -> None:
    if not selectors.may_act(user, template):
        raise Forbidden(_("Only the owner of the template and tenant admins can do this."))


def _name_conflict(spec: JobSpec, tenant: Tenant) -> FlowNameConflict:
    sentence = _("%(tenant)s has a template “%(name)s” already. Choose another name, or edit that template.")
    return FlowNameConflict(sentence % {"tenant": tenant, "name": spec.name}, "name")
