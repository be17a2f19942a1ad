"""Who may do what: one table, read by services, selectors, pages and the access tests.

A platform role holds everywhere; a tenant role holds inside one tenant. What is not named here is refused.
"""

from enum import StrEnum

from django.utils.translation import gettext_lazy as _


class Permission(StrEnum):
    """Something that one may do. `*_any_*` reaches across tenants."""

    SEE_TENANT = "see_tenant"
    SUBMIT_JOBS = "submit_jobs"
    ACT_ON_OWN_JOBS = "act_on_own_jobs"
    ACT_ON_TENANT_JOBS = "act_on_tenant_jobs"
    MANAGE_MEMBERS = "manage_members"
    SET_RETENTION = "set_retention"
    SEE_EVERYTHING = "see_everything"
    ACT_ON_ANY_JOB = "act_on_any_job"
    MANAGE_QUEUES = "manage_queues"
    MANAGE_CLUSTERS = "manage_clusters"
    MANAGE_TENANTS = "manage_tenants"
    MANAGE_PEOPLE = "manage_people"


class PlatformRole(StrEnum):
    """What a person is to the whole platform; most people are nothing but members of tenants."""

    ADMIN = "admin"
    OPERATOR = "operator"
    MANAGER = "manager"
    EDITOR = "editor"
    MODERATOR = "moderator"


class TenantRole(StrEnum):
    """What a person is in one tenant."""

    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


PLATFORM_ROLE_LABELS = {
    PlatformRole.ADMIN: _("Platform admin"),
    PlatformRole.OPERATOR: _("Operator"),
    PlatformRole.MANAGER: _("Manager"),
    PlatformRole.EDITOR: _("Editor"),
    PlatformRole.MODERATOR: _("Moderator"),
}
TENANT_ROLE_LABELS = {
    TenantRole.ADMIN: _("Admin"),
    TenantRole.MEMBER: _("Member"),
    TenantRole.VIEWER: _("Viewer"),
}

_P = Permission
BY_PLATFORM_ROLE: dict[str, frozenset[Permission]] = {
    PlatformRole.ADMIN: frozenset(Permission),
    PlatformRole.OPERATOR: frozenset({_P.SEE_EVERYTHING, _P.ACT_ON_ANY_JOB, _P.MANAGE_QUEUES, _P.MANAGE_CLUSTERS}),
    PlatformRole.MANAGER: frozenset({_P.SEE_EVERYTHING}),
    PlatformRole.EDITOR: frozenset(),
    PlatformRole.MODERATOR: frozenset(),
}
BY_TENANT_ROLE: dict[str, frozenset[Permission]] = {
    TenantRole.ADMIN: frozenset(
        {
            _P.SEE_TENANT,
            _P.SUBMIT_JOBS,
            _P.ACT_ON_OWN_JOBS,
            _P.ACT_ON_TENANT_JOBS,
            _P.MANAGE_MEMBERS,
            _P.SET_RETENTION,
        }
    ),
    TenantRole.MEMBER: frozenset({_P.SEE_TENANT, _P.SUBMIT_JOBS, _P.ACT_ON_OWN_JOBS}),
    TenantRole.VIEWER: frozenset({_P.SEE_TENANT}),
}
