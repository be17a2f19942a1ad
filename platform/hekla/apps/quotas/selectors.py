"""Queries about quotas."""

from collections.abc import Collection

from django.db.models import QuerySet

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant

PERMISSIONS = {
    Quota.Of.TENANT: Permission.SET_TENANT_QUOTAS,
    Quota.Of.EACH: Permission.SET_MEMBER_QUOTAS,
    Quota.Of.ONE: Permission.SET_MEMBER_QUOTAS,
}


def _of_tenant() -> QuerySet[Quota]:
    of_tenant = Quota.objects.filter(tenant=Parameter("tenant", Tenant._meta.pk))
    return of_tenant.select_related("tenant").order_by("pk")


_OF_TENANT = CompiledQuery(_of_tenant)
_LOCKED_OF_TENANT = CompiledQuery(lambda: _of_tenant().select_for_update(of=("self",)))
_OF_LIMITED_TENANTS = CompiledQuery(
    lambda: Quota.objects.filter(tenant__in=Quota.objects.exclude(resources={}).values("tenant")).order_by("pk")
)


def may_set(user: User, tenant: Tenant, of: Quota.Of) -> bool:
    """Whether this person may set this kind of quota in the tenant."""
    return tenancy.may(user, tenant.pk, PERMISSIONS[of])


def of_tenant(tenant: Tenant) -> list[Quota]:
    """All quotas of a tenant: its own, that of each member, and those of single members by name."""
    found = Quota.objects.filter(tenant=tenant).select_related("user", "tenant")
    return sorted(found, key=lambda quota: (Quota.Of.values.index(quota.of), str(quota.user or "")))


def that_bound_resources() -> list[Quota]:
    """All quotas of tenants with at least one quota that limits resources."""
    return _OF_LIMITED_TENANTS.rows()


def of_tenants(tenant_ids: Collection[int]) -> dict[int, dict[str, str]]:
    """Resource limits of these tenants per cluster, as quantities by name; tenants without any are absent."""
    found = Quota.objects.filter(tenant__in=tenant_ids, of=Quota.Of.TENANT).exclude(resources={})
    return dict(found.values_list("tenant_id", "resources"))


def binding(tenant: Tenant, user: User, *, is_dry: bool = False) -> list[Quota]:
    """The quotas that apply to a person in a tenant.

    They are locked until the transaction ends, so that the next submission counts this one too. `is_dry`: nothing is
    submitted, so nothing is locked.
    """
    found = (_OF_TENANT if is_dry else _LOCKED_OF_TENANT).rows(tenant=tenant.pk)
    own = [quota for quota in found if quota.user_id == user.pk]
    each = [quota for quota in found if quota.of == Quota.Of.EACH]
    return [*(quota for quota in found if quota.of == Quota.Of.TENANT), *(own or each)]
