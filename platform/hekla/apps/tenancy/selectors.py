"""Questions about tenants. What is outside one's tenants does not exist."""

from django.db.models import Count, QuerySet

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import BY_TENANT_ROLE, Permission
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.domain.errors import NotFound


def visible_to(user: User) -> QuerySet[Tenant]:
    """The tenants that exist for this person."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return Tenant.objects.order_by("name")
    return Tenant.objects.filter(memberships__user=user, is_active=True).order_by("name")


def all_tenants() -> QuerySet[Tenant]:
    """Every tenant, for those who manage the platform."""
    return Tenant.objects.order_by("name")


def own(user: User) -> QuerySet[Tenant]:
    """The active tenants that the person is a member of."""
    return Tenant.objects.filter(memberships__user=user, is_active=True).order_by("name")


def with_member_counts(tenants: QuerySet[Tenant]) -> QuerySet[Tenant]:
    """Each with `member_count`."""
    ids = tenants.values("pk")
    return Tenant.objects.filter(pk__in=ids).annotate(member_count=Count("memberships")).order_by("name")


def get(slug: str, user: User) -> Tenant:
    """The tenant of that short name. Raises NotFound."""
    tenant = visible_to(user).filter(slug=slug).first()
    if tenant is None:
        raise NotFound("There is no such tenant.")
    return tenant


def members(tenant: Tenant) -> QuerySet[Membership]:
    """Who belongs to the tenant."""
    return Membership.objects.filter(tenant=tenant).select_related("user").order_by("user__username")


def may(user: User, tenant_id: int, permission: Permission) -> bool:
    """Whether the person's role in that tenant, or on the platform, allows it."""
    if accounts.may(user, permission):
        return True
    role = Membership.objects.filter(user=user, tenant_id=tenant_id, tenant__is_active=True).values_list(
        "role", flat=True
    )
    return user.is_active and any(permission in BY_TENANT_ROLE.get(name, frozenset()) for name in role)


def where(user: User, permission: Permission) -> list[int]:
    """The ids of the tenants in which the person's tenant role allows it."""
    roles = [role for role, allowed in BY_TENANT_ROLE.items() if permission in allowed]
    found = Membership.objects.filter(user=user, role__in=roles, tenant__is_active=True)
    return list(found.values_list("tenant_id", flat=True))


def current(user: User, slug: str) -> Tenant | None:
    """The tenant that the person works for now: the one named, else the first of their own."""
    mine = list(own(user))
    return next((tenant for tenant in mine if tenant.slug == slug), mine[0] if mine else None)
