"""Permissions by role: one table for services, selectors, pages and the access tests.

A platform role applies everywhere, a tenant role in one tenant. Anything not listed here is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext_lazy as _


class Permission(StrEnum):
    """A permission. `*_any_*` applies across tenants."""

    SEE_TENANT = "see_tenant"
    SUBMIT_JOBS = "submit_jobs"
    ACT_ON_OWN_JOBS = "act_on_own_jobs"
    ACT_ON_TENANT_JOBS = "act_on_tenant_jobs"
    KEEP_TENANT_PRESETS = "keep_tenant_presets"
    SEE_DEPARTMENT = "see_department"
    SEE_AUDIT = "see_audit"
    MANAGE_MEMBERS = "manage_members"
    SET_RETENTION = "set_retention"
    SET_IDLE_RULE = "set_idle_rule"
    SET_ALERT_RULES = "set_alert_rules"
    SHARE_VIEWS = "share_views"
    ANNOUNCE = "announce"
    SET_MEMBER_QUOTAS = "set_member_quotas"
    SET_TENANT_QUOTAS = "set_tenant_quotas"
    SEE_EVERYTHING = "see_everything"
    ACT_ON_ANY_JOB = "act_on_any_job"
    MANAGE_QUEUES = "manage_queues"
    MANAGE_CLUSTERS = "manage_clusters"
    MANAGE_TENANTS = "manage_tenants"
    MANAGE_PEOPLE = "manage_people"
    ACT_FOR_PEOPLE = "act_for_people"
    PUBLISH_FOR_ALL = "publish_for_all"
    MANAGE_PRIORITY_CLASSES = "manage_priority_classes"


class PlatformRole(StrEnum):
    """A person's role on the whole platform; most people have none, only roles in tenants."""

    ADMIN = "admin"
    OPERATOR = "operator"
    MANAGER = "manager"
    EDITOR = "editor"
    MODERATOR = "moderator"


class TenantRole(StrEnum):
    """A person's role in one tenant."""

    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


class DepartmentRole(StrEnum):
    """A person's role in a department, and thereby in each of its tenants."""

    ADMIN = "admin"


PERMISSION_LABELS = {
    Permission.SEE_TENANT: _("View the tenant, its members, its jobs and their logs"),
    Permission.SUBMIT_JOBS: _("Submit jobs for the tenant"),
    Permission.ACT_ON_OWN_JOBS: _("Abort, resume, restart, scale and delete own jobs"),
    Permission.ACT_ON_TENANT_JOBS: _("Abort, resume, restart, scale and delete all jobs of the tenant"),
    Permission.KEEP_TENANT_PRESETS: _("Manage templates of the tenant"),
    Permission.SHARE_VIEWS: _("Share views of the job list with the tenant"),
    Permission.SEE_DEPARTMENT: _("View the resource usage of the tenants in the department"),
    Permission.SEE_AUDIT: _("View the audit log"),
    Permission.MANAGE_MEMBERS: _("Add and remove members of the tenant and assign their roles"),
    Permission.SET_RETENTION: _("Set the retention of deleted jobs in the tenant"),
    Permission.SET_IDLE_RULE: _("Set when idle sessions and jobs end"),
    Permission.SET_ALERT_RULES: _("Create and edit alert rules"),
    Permission.ANNOUNCE: _("Write announcements"),
    Permission.SET_MEMBER_QUOTAS: _("Set quotas for members of the tenant"),
    Permission.SET_TENANT_QUOTAS: _("Set quotas for tenants"),
    Permission.PUBLISH_FOR_ALL: _("Publish templates for all tenants"),
    Permission.SEE_EVERYTHING: _("View all tenants and everything in them"),
    Permission.ACT_ON_ANY_JOB: _("Abort, resume, restart, scale and delete all jobs"),
    Permission.MANAGE_QUEUES: _("Create and edit queues"),
    Permission.MANAGE_CLUSTERS: _("Create and edit clusters, environments and scheduling policies; cordon nodes"),
    Permission.MANAGE_PRIORITY_CLASSES: _("Create and edit priority classes"),
    Permission.MANAGE_TENANTS: _("Create and edit tenants and departments"),
    Permission.MANAGE_PEOPLE: _("Add and edit people and assign their platform roles"),
    Permission.ACT_FOR_PEOPLE: _(
        "Impersonate people who are not platform admins, for up to one hour and with a stated reason"
    ),
}
PLATFORM_ROLE_LABELS = {
    PlatformRole.ADMIN: _("Platform admin"),
    PlatformRole.OPERATOR: _("Operator"),
    PlatformRole.MANAGER: _("Manager"),
    PlatformRole.EDITOR: _("Editor"),
    PlatformRole.MODERATOR: _("Moderator"),
}
DEPARTMENT_ROLE_LABELS = {DepartmentRole.ADMIN: _("Head")}
TENANT_ROLE_LABELS = {
    TenantRole.ADMIN: _("Admin"),
    TenantRole.MEMBER: _("Member"),
    TenantRole.VIEWER: _("Viewer"),
}

_P = Permission
BY_PLATFORM_ROLE: dict[str, frozenset[Permission]] = {
    PlatformRole.ADMIN: frozenset(Permission),
    PlatformRole.OPERATOR: frozenset(
        {
            _P.SEE_EVERYTHING,
            _P.SEE_AUDIT,
            _P.ACT_ON_ANY_JOB,
            _P.MANAGE_QUEUES,
            _P.MANAGE_CLUSTERS,
            _P.SET_TENANT_QUOTAS,
            _P.SET_IDLE_RULE,
            _P.SET_ALERT_RULES,
            _P.ANNOUNCE,
        }
    ),
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
            _P.KEEP_TENANT_PRESETS,
            _P.SEE_AUDIT,
            _P.MANAGE_MEMBERS,
            _P.SET_RETENTION,
            _P.SET_IDLE_RULE,
            _P.SET_ALERT_RULES,
            _P.SHARE_VIEWS,
            _P.SET_MEMBER_QUOTAS,
        }
    ),
    TenantRole.MEMBER: frozenset({_P.SEE_TENANT, _P.SUBMIT_JOBS, _P.ACT_ON_OWN_JOBS}),
    TenantRole.VIEWER: frozenset({_P.SEE_TENANT}),
}
BY_DEPARTMENT_ROLE: dict[str, frozenset[Permission]] = {
    DepartmentRole.ADMIN: BY_TENANT_ROLE[TenantRole.ADMIN] | {_P.SEE_DEPARTMENT},
}


@dataclass(frozen=True, slots=True)
class RoleTable:
    """Permissions by role, for display; built from the tables that the code checks."""

    place: str
    allowed: Mapping[str, frozenset[Permission]]
    labels: Mapping[Any, object]

    @property
    def heads(self) -> list[str]:
        """The labels of the roles."""
        return [str(self.labels[role]) for role in self.allowed]

    @property
    def rows(self) -> list[tuple[Permission, str, list[tuple[str, bool]]]]:
        """Permission, label, and (role label, whether it has it) of each permission that any of the roles has."""
        roles = list(zip(self.heads, self.allowed.values(), strict=True))
        return [
            (permission, str(PERMISSION_LABELS[permission]), [(head, permission in held) for head, held in roles])
            for permission in Permission
            if any(permission in held for held in self.allowed.values())
        ]


TENANT_TABLE = RoleTable("tenant", BY_TENANT_ROLE, TENANT_ROLE_LABELS)
DEPARTMENT_TABLE = RoleTable("department", BY_DEPARTMENT_ROLE, DEPARTMENT_ROLE_LABELS)
PLATFORM_TABLE = RoleTable("platform", BY_PLATFORM_ROLE, PLATFORM_ROLE_LABELS)
