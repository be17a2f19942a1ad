"""Queries about tenants. Tenants outside the person's own do not exist."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import (
    BY_DEPARTMENT_ROLE,
    BY_TENANT_ROLE,
    DEPARTMENT_TABLE,
    PLATFORM_TABLE,
    TENANT_TABLE,
    DepartmentRole,
    Permission,
    RoleTable,
)
from hekla.apps.tenancy.models import Department, DepartmentHead, Membership, Tenant
from hekla.domain.errors import Forbidden, NotFound

_MOST_DEPARTMENTS = 200
"""Choices of a filter."""

# Every page runs this. It is raw SQL because the ORM takes longer to build it than the database to run it.
_ROLE_SNAPSHOT_OF = """
    SELECT tenant.*, joined.role, headed.id IS NOT NULL AS is_headed
    FROM tenancy_tenant AS tenant
    LEFT JOIN tenancy_membership AS joined ON joined.tenant_id = tenant.id AND joined.user_id = %(user)s
    LEFT JOIN tenancy_departmenthead AS headed
        ON headed.department_id = tenant.department_id AND headed.user_id = %(user)s
    WHERE tenant.is_active AND (joined.id IS NOT NULL OR headed.id IS NOT NULL)
    ORDER BY joined.id IS NULL, tenant.name
"""

# Runs every two seconds for all open pages together, and whenever a page is opened.
_ROLE_SNAPSHOTS = """
    SELECT person.id, person.platform_role, had.tenant, had.role
    FROM accounts_user AS person
    LEFT JOIN (
        SELECT joined.user_id AS person, joined.tenant_id AS tenant, joined.role
        FROM tenancy_membership AS joined
        JOIN tenancy_tenant AS tenant ON tenant.id = joined.tenant_id AND tenant.is_active
        WHERE joined.user_id = ANY(%(people)s)
        UNION ALL
        SELECT headed.user_id, tenant.id, %(above)s
        FROM tenancy_departmenthead AS headed
        JOIN tenancy_tenant AS tenant ON tenant.department_id = headed.department_id AND tenant.is_active
        WHERE headed.user_id = ANY(%(people)s)
    ) AS had ON had.person = person.id
    WHERE person.id = ANY(%(people)s) AND person.is_active
"""


def visible_to(user: User) -> QuerySet[Tenant]:
    """The tenants that this person can see."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return Tenant.objects.order_by("name")
    return own(user)


def visible_ids(user: User) -> frozenset[int]:
    """The ids of `visible_to`, from the person's rights if these suffice."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return frozenset(Tenant.objects.values_list("pk", flat=True))
    return frozenset(tenant.pk for tenant in rights(user).tenants)


def all_tenants() -> QuerySet[Tenant]:
    """Every tenant, for those who manage the platform."""
    return Tenant.objects.order_by("name")


def own(user: User) -> QuerySet[Tenant]:
    """The active tenants in which the person has a role; those of which they are a member come first."""
    joined = Exists(Membership.objects.filter(tenant=OuterRef("pk"), user=user))
    return _allowing(user, Permission.SEE_TENANT).order_by(joined.desc(), "name")


def _allowing(user: User, permission: Permission) -> QuerySet[Tenant]:
    """The active tenants in which the person's role, there or in the department, has the permission."""
    if _known_rights.get() is not None:  # by ids, the query is much shorter, and most requests read them anyway
        return Tenant.objects.filter(pk__in=rights(user).where(permission))
    roles = [role for role, allowed in BY_TENANT_ROLE.items() if permission in allowed]
    held = Q(pk__in=Membership.objects.filter(user=user, role__in=roles).values("tenant"))
    if permission in BY_DEPARTMENT_ROLE[DepartmentRole.ADMIN]:
        held |= Q(department__in=DepartmentHead.objects.filter(user=user).values("department"))
    return Tenant.objects.filter(held, is_active=True)


def with_member_counts(tenants: QuerySet[Tenant]) -> QuerySet[Tenant]:
    """These tenants with `member_count`, by name."""
    ids = tenants.values("pk")
    return Tenant.objects.filter(pk__in=ids).annotate(member_count=Count("memberships")).order_by("name")


def get(slug: str, user: User) -> Tenant:
    """The tenant of that short name. Raises NotFound."""
    tenant = visible_to(user).filter(slug=slug).first()
    if tenant is None:
        raise NotFound(_("Unknown tenant."))
    return tenant


class NamedTenant(NamedTuple):
    """A tenant, for a link to its page."""

    slug: str
    name: str


def named_by_member(user_ids: Collection[int]) -> dict[int, list[NamedTenant]]:
    """The tenants of which each of these people is a member, by name."""
    found: dict[int, list[NamedTenant]] = defaultdict(list)
    memberships = Membership.objects.filter(user__in=user_ids).order_by("tenant__name")
    for user_id, slug, name in memberships.values_list("user_id", "tenant__slug", "tenant__name"):
        found[user_id].append(NamedTenant(slug, name))
    return found


def members(tenant: Tenant) -> QuerySet[Membership]:
    """The memberships of the tenant, by username."""
    return Membership.objects.filter(tenant=tenant).select_related("user").order_by("user__username")


def known_people(user: User) -> QuerySet[User]:
    """The people that this person can see: members of their tenants; everybody for those who manage people."""
    if accounts.may(user, Permission.MANAGE_PEOPLE):
        return accounts.everybody()
    return accounts.everybody().filter(memberships__tenant__in=own(user)).distinct()


def may(user: User, tenant_id: int, permission: Permission) -> bool:
    """Whether the person's role in that tenant, in its department, or on the platform has the permission."""
    if accounts.may(user, permission):
        return True
    if _known_rights.get() is not None:
        return tenant_id in rights(user).where(permission)
    return user.is_active and _allowing(user, permission).filter(pk=tenant_id).exists()


@dataclass(frozen=True, slots=True)
class Rights:
    """What a person may do in tenants, by their roles there and in departments; read once for many checks.

    `tenants`: the same as `own`, in that order.
    """

    allowed: Mapping[int, frozenset[Permission]]
    tenants: Sequence[Tenant] = ()

    def where(self, permission: Permission) -> list[int]:
        """The ids of the tenants in which the permission is given."""
        return [tenant for tenant, permissions in self.allowed.items() if permission in permissions]


_known_rights: ContextVar[dict[int, Rights] | None] = ContextVar("known_rights", default=None)


def rights(user: User) -> Rights:
    """The person's rights in active tenants; none if the person is inactive."""
    if not user.is_active:
        return Rights({})
    known = _known_rights.get()
    if known is None:
        return _read_rights(user)
    if user.pk not in known:
        known[user.pk] = _read_rights(user)
    return known[user.pk]


@contextmanager
def rights_read_once(known: Mapping[int, Rights]) -> Iterator[None]:
    """Within it, `rights` reads those of each person once: for several questions that are answered together.

    `known`: those that are already read, by the person's id.
    """
    token = _known_rights.set({**known})
    try:
        yield
    finally:
        _known_rights.reset(token)


def _read_rights(user: User) -> Rights:
    tenants: list[Any] = list(Tenant.objects.raw(_ROLE_SNAPSHOT_OF, {"user": user.pk}))
    allowed = {tenant.pk: _allowed(tenant.role, is_headed=tenant.is_headed) for tenant in tenants}
    return Rights(allowed, [tenant for tenant in tenants if Permission.SEE_TENANT in allowed[tenant.pk]])


def _allowed(role: str | None, *, is_headed: bool) -> frozenset[Permission]:
    above = BY_DEPARTMENT_ROLE[DepartmentRole.ADMIN] if is_headed else frozenset[Permission]()
    return BY_TENANT_ROLE.get(role or "", frozenset()) | above


@dataclass(frozen=True, slots=True)
class RoleSnapshot:
    """All roles of a person: the platform role, and (tenant id, role) in active tenants or through departments."""

    platform_role: str
    roles: frozenset[tuple[int, str]]


def role_snapshots(people: Collection[int]) -> dict[int, RoleSnapshot]:
    """The roles of each of these people (by user id) who are active."""
    platform: dict[int, str] = {}
    roles: defaultdict[int, set[tuple[int, str]]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(_ROLE_SNAPSHOTS, {"people": list(people), "above": f"department {DepartmentRole.ADMIN}"})
        for user, platform_role, tenant, role in cursor.fetchall():
            platform[user] = platform_role
            if tenant is not None:
                roles[user].add((tenant, role))
    return {user: RoleSnapshot(role, frozenset(roles[user])) for user, role in platform.items()}


def where(user: User, permission: Permission) -> list[int]:
    """The ids of the tenants in which the person's role, there or in the department, has the permission."""
    return rights(user).where(permission)


def chosen(mine: Sequence[Tenant], slug: str) -> Tenant | None:
    """The tenant of that short name among these, else the first, or None."""
    return next((tenant for tenant in mine if tenant.slug == slug), mine[0] if mine else None)


def gives_roles(user: User) -> bool:
    """Whether this person may give roles to people."""
    return accounts.may(user, Permission.MANAGE_PEOPLE) or bool(where(user, Permission.MANAGE_MEMBERS))


def managed_by(user: User) -> QuerySet[Tenant]:
    """The active tenants whose members this person manages."""
    if accounts.may(user, Permission.MANAGE_MEMBERS):
        return all_tenants().filter(is_active=True)
    return _allowing(user, Permission.MANAGE_MEMBERS).order_by("name")


def may_audit(user: User) -> bool:
    """Whether this person may see the audit log of at least one tenant."""
    return accounts.may(user, Permission.SEE_AUDIT) or bool(rights(user).where(Permission.SEE_AUDIT))


def role_tables(user: User) -> list[RoleTable]:
    """The tables of the roles that the person may give. Raises Forbidden if they may give none."""
    if not gives_roles(user):
        raise Forbidden(_("Only tenant admins and platform admins can see the permissions of roles."))
    above = [DEPARTMENT_TABLE, PLATFORM_TABLE] if accounts.may(user, Permission.MANAGE_PEOPLE) else []
    return [TENANT_TABLE, *above]


def departments_of(user: User) -> QuerySet[Department]:
    """The departments that this person can see: those that they head; all for people who see everything."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return Department.objects.order_by("name")
    return Department.objects.filter(heads__user=user).order_by("name")


def departments_with(tenants: QuerySet[Tenant]) -> QuerySet[Department]:
    """The departments of these tenants, by name, at most 200."""
    inside = tenants.order_by().values("department_id")
    return Department.objects.filter(pk__in=inside).order_by("name")[:_MOST_DEPARTMENTS]


def department(slug: str, user: User) -> Department:
    """The department of that short name. Raises NotFound."""
    found = departments_of(user).filter(slug=slug).first()
    if found is None:
        raise NotFound(_("Unknown department."))
    return found


def heads(department: Department) -> QuerySet[User]:
    """The heads of the department, by username."""
    return User.objects.filter(headed_departments__department=department).order_by("username")


def tenants_in(department: Department) -> QuerySet[Tenant]:
    """The tenants of the department, by name."""
    return Tenant.objects.filter(department=department).order_by("name")


def people_in(department: Department) -> int:
    """The number of people in its tenants; a member of several tenants counts once."""
    return Membership.objects.filter(tenant__department=department).values("user").distinct().count()
