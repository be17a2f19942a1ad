"""Publishes and withdraws templates, and creates jobs from them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.gallery import selectors
from hekla.apps.gallery.models import Template, TemplateUse, TemplateVersion
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.templates import instantiate, parse_open_fields

MAX_TEMPLATES = 200


class TemplateConflict(Refused):
    """The template has a newer version than the form."""

    code = "template_changed"


def publish(
    *,
    title: str,
    description: str,
    spec: JobSpec,
    fields: Sequence[Mapping[str, Any]],
    tenant: Tenant | None,
    user: User,
    now: datetime,
    template: Template | None = None,
) -> Template:
    """Publish a new template, or the next version of `template`. Raises NotFound, Forbidden, Refused, Invalid."""
    owner = template.tenant if template else tenant
    _require_right(user, owner)
    if not title.strip():
        raise Refused(_("Enter a title."), "title")
    open_ = [field.model_dump(mode="json", exclude_defaults=True) for field in parse_open_fields(spec, fields)]
    with unit_of_work():
        values = {"title": title.strip()[:80], "description": description[:2000], "published_at": now}
        template = template or _create(owner, values)
        changes.lock(template)
        changes.write(template, **values, version=template.version + 1)
        document, number = spec.document(), template.version
        TemplateVersion.objects.create(
            template=template, number=number, spec=document, fields=open_, publisher=user, published_at=now
        )
        _tell(template, events.TemplatePublished(title=template.title, version=template.version), user, now)
    return template


def withdraw(template: Template, *, user: User, now: datetime) -> None:
    """Remove a template from the gallery; jobs created from it stay and still name it. Raises NotFound, Forbidden."""
    _require_right(user, template.tenant)
    with unit_of_work():
        changes.write(template, withdrawn_at=now)
        _tell(template, events.TemplateWithdrawn(title=template.title), user, now)


def begin(
    template: Template,
    *,
    name: str,
    values: Mapping[str, str],
    tenant: Tenant,
    user: User,
    now: datetime,
    expected_version: int | None = None,
) -> Job:
    """Submit a job from a template, with values for its open fields. `expected_version`: the version of the form.

    Raises Invalid (also for a locked field), Refused (of another tenant), Changed, and what `jobs.services.submit`
    raises.
    """
    if template.tenant_id not in (None, tenant.pk):
        raise Refused(_("This template is for %s only.") % template.tenant)
    if expected_version not in (None, template.version):
        raise TemplateConflict(
            _("A new version of the template was published meanwhile. Check the changes, then submit again.")
        )
    version = selectors.latest(template)
    spec = instantiate(selectors.spec_of(version), selectors.open_fields(version), values, name=name)
    with unit_of_work():
        job = jobs.submit(spec=spec, tenant=tenant, user=user, now=now)
        TemplateUse.objects.create(job=job, version=version)
        event = events.JobCreatedFromTemplate(template=str(template.uid), title=template.title, version=version.number)
        record(event, subject=f"job:{job.uid}", tenant=tenant.pk, actor=actor_of(user), at=now)
    return job


def _create(tenant: Tenant | None, values: Mapping[str, Any]) -> Template:
    if Template.objects.filter(tenant=tenant, withdrawn_at=None).count() >= MAX_TEMPLATES:
        raise Refused(_("There are %d templates, the maximum. Withdraw some first.") % MAX_TEMPLATES)
    return Template.objects.create(tenant=tenant, **values)


def _tell(template: Template, event: events.Event, user: User, now: datetime) -> None:
    subject = f"gallery:{template.uid}"
    record(event, subject=subject, tenant=template.tenant_id, actor=actor_of(user), at=now)


def _require_right(user: User, tenant: Tenant | None) -> None:
    if tenant is not None and not tenancy.visible_to(user).filter(pk=tenant.pk).exists():
        raise NotFound(_("Unknown tenant."))
    if not selectors.may_publish(user, tenant.pk if tenant else None):
        raise Forbidden(
            _("Only admins can publish templates: tenant admins for their tenant, platform admins for all tenants.")
        )
