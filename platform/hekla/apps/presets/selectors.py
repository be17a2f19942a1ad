"""Queries about presets. Other people's own presets, and those outside the person's tenants, do not exist."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.presets.models import Preset
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec


def visible_to(user: User) -> QuerySet[Preset]:
    """The person's own presets, then those of the tenants that they can see, by name."""
    return _in_order(Q(owner=user, tenant=None) | Q(tenant__in=tenancy.visible_to(user)))


def offered(user: User, tenant: Tenant) -> QuerySet[Preset]:
    """The presets from which the person may start a job of that tenant."""
    own = Q(owner=user, tenant=None)
    sees = accounts.may(user, Permission.SEE_EVERYTHING) or tenant.pk in tenancy.where(user, Permission.SEE_TENANT)
    return _in_order(own | Q(tenant=tenant) if sees else own)


def _in_order(which: Q) -> QuerySet[Preset]:
    found = Preset.objects.filter(which).select_related("owner", "tenant")
    return found.order_by(F("tenant__name").asc(nulls_first=True), "name")


def get(uid: UUID, user: User) -> Preset:
    """One preset. Raises NotFound."""
    preset = visible_to(user).filter(uid=uid).first()
    if preset is None:
        raise NotFound(_("Unknown template."))
    return preset


def default_of(presets: Iterable[Preset]) -> Preset | None:
    """The person's own default preset among those of `offered`, else the tenant's, or None."""
    return next((preset for preset in presets if preset.is_default), None)


def of(user: User, tenant: Tenant | None) -> QuerySet[Preset]:
    """The presets among which a name is unique: the person's own, or the tenant's."""
    return Preset.objects.filter(tenant=tenant) if tenant else Preset.objects.filter(owner=user, tenant=None)


def may_change(user: User, preset: Preset) -> bool:
    """Whether the person may rename, replace or delete it."""
    return may_change_each(user, [preset])[0]


def may_change_each(user: User, presets: Iterable[Preset]) -> list[bool]:
    """The same for many presets, in their order, with one query for the person's roles."""
    everywhere = accounts.may(user, Permission.KEEP_TENANT_PRESETS)
    tenants = set(tenancy.where(user, Permission.KEEP_TENANT_PRESETS))
    return [
        preset.owner_id == user.pk if preset.tenant_id is None else everywhere or preset.tenant_id in tenants
        for preset in presets
    ]


def spec_of(preset: Preset) -> JobSpec:
    """The job of the preset."""
    return JobSpec.parse(preset.spec)
