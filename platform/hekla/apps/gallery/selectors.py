"""Queries for templates. Those of tenants outside a person's tenants count as not existing."""

from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.apps.gallery.models import Template, TemplateUse, TemplateVersion
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec
from hekla.domain.templates import OpenField


def visible_to(user: User) -> QuerySet[Template]:
    """The gallery: templates for all tenants, then those of the person's tenants, by title."""
    theirs = Q(tenant=None) | Q(tenant__in=tenancy.visible_to(user))
    found = Template.objects.filter(theirs, withdrawn_at=None).select_related("tenant")
    return found.order_by(F("tenant__name").asc(nulls_first=True), "title", "pk")


def get(uid: UUID, user: User) -> Template:
    """One template. Raises NotFound outside the person's tenants."""
    template = visible_to(user).filter(uid=uid).first()
    if template is None:
        raise NotFound(_("Unknown template."))
    return template


def latest(template: Template) -> TemplateVersion:
    """The latest version, from which jobs are created now."""
    return TemplateVersion.objects.get(template=template, number=template.version)


def open_fields(version: TemplateVersion) -> tuple[OpenField, ...]:
    """The fields that may be filled in."""
    return tuple(OpenField.model_validate(field) for field in version.fields)


def spec_of(version: TemplateVersion) -> JobSpec:
    """The job spec of a version."""
    return JobSpec.parse(version.spec)


def may_publish(user: User, tenant_id: int | None) -> bool:
    """Whether the person may publish templates for the tenant; None: for all tenants."""
    if tenant_id is None:
        return accounts.may(user, Permission.PUBLISH_FOR_ALL)
    return tenancy.may(user, tenant_id, Permission.KEEP_TENANT_PRESETS)


def use_of(job: Job) -> TemplateUse | None:
    """The template version that the job was created from, or None."""
    return next(iter(_USE_OF.rows(job=job.pk)), None)


_USE_OF = CompiledQuery(
    lambda: TemplateUse.objects.filter(job=Parameter("job", Job._meta.pk)).select_related("version__template")
)
