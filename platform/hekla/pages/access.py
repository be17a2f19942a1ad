"""Who is answered what: every address by role and verb, every socket by role, and what a token must be good for.

What is declared here is printed by `python3 manage.py access_matrix`, and a test asks every address in every role for
what it says. An address or a socket that is not declared fails that test.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from hekla.apps.accounts.scopes import Scope
from hekla.pages.impersonation import reach

ROLES = {
    "anonymous": "not signed in",
    "stranger": "admin of another tenant",
    "viewer": "viewer of the tenant",
    "member": "member of the tenant",
    "tenant_admin": "admin of the tenant, and owner of the thing",
    "department_admin": "head of the department above the tenant",
    "manager": "manager of the platform, in no tenant",
    "operator": "operator of the platform, in no tenant",
    "platform_admin": "admin of the platform, in no tenant",
}
VERBS = ("get", "post", "put", "patch", "delete")
Verdicts = dict[str, str]


def who(**verdicts: str) -> Verdicts:
    """`ok`, `refused`, `absent`, `wrong` or `sign in` for every role; `rest` for those that are not named."""
    rest = verdicts.pop("rest")
    return dict.fromkeys(ROLES, rest) | {"anonymous": "sign in"} | verdicts


ANYBODY = who(rest="ok", anonymous="ok")
SIGNED_IN = who(rest="ok")
TENANT = who(rest="ok", stranger="absent")
ACTS_ON_THE_JOB = who(rest="ok", stranger="absent", viewer="refused", member="refused", manager="refused")
STARTS_ITS_RUNS = ACTS_ON_THE_JOB | {"operator": "refused"}
MANAGES_MEMBERS = who(rest="refused", stranger="absent", tenant_admin="ok", department_admin="ok", platform_admin="ok")
DEPARTMENT = who(rest="absent", department_admin="ok", manager="ok", operator="ok", platform_admin="ok")
CHANGES_DEPARTMENTS = DEPARTMENT | {"department_admin": "refused", "manager": "refused", "operator": "refused"}
GIVES_ROLES = MANAGES_MEMBERS | {"stranger": "ok"}  # in their own tenant
JOINS = who(rest="ok", viewer="refused", member="refused", tenant_admin="refused")  # who are members already
SHARES_VIEWS = who(rest="refused", tenant_admin="ok", department_admin="ok")  # of a tenant that is one's own
CHANGES_THE_QUEUE = who(rest="refused", stranger="absent", operator="ok", platform_admin="ok")
WRITES_A_DRAFT = who(rest="ok", viewer="refused", manager="absent", operator="absent", platform_admin="absent")
HAS_A_TENANT = who(rest="ok", manager="absent", operator="absent", platform_admin="absent")
AUDITS = GIVES_ROLES | {"operator": "ok"}
PUBLISHES = GIVES_ROLES  # a stranger for their own
SETS_TENANT_QUOTAS = who(rest="refused", stranger="absent", operator="ok", platform_admin="ok")
SETS_QUOTAS = MANAGES_MEMBERS | {"operator": "ok"}
OPERATORS = who(rest="refused", operator="ok", platform_admin="ok")
SEES_ALL = OPERATORS | {"manager": "ok"}
PLATFORM_ADMINS = who(rest="refused", platform_admin="ok")
SUBMITS = who(rest="ok", viewer="refused", manager="refused", operator="refused", platform_admin="refused")
SENDS = SUBMITS | {"manager": "wrong", "operator": "wrong", "platform_admin": "wrong"}  # they are told to name a tenant
ALREADY_IN = who(rest="ok", anonymous="no such method")  # is sent home, whatever was asked
OWN_TOKEN = who(rest="absent", tenant_admin="ok")
NOTHING = who(rest="absent")
NOBODY = who(rest="absent", anonymous="absent")
GUESSES = who(rest="wrong", anonymous="wrong")
ADDS_AS_ALICE = who(rest="refused", tenant_admin="409")  # who has a job of that name


@dataclass(frozen=True)
class Declared:
    """What an address answers to whom, by verb; None for a verb that it does not have."""

    get: Verdicts | None = None
    post: Verdicts | None = None
    put: Verdicts | None = None
    patch: Verdicts | None = None
    delete: Verdicts | None = None

    def by_verb(self) -> Iterator[tuple[str, Verdicts]]:
        """The verbs that it has."""
        return ((verb, verdicts) for verb in VERBS if (verdicts := getattr(self, verb)) is not None)


ROUTES: dict[str, Declared] = {
    "home": Declared(SIGNED_IN),
    "home_needs": Declared(SIGNED_IN),
    "health": Declared(ANYBODY),
    "metrics": Declared(NOBODY),  # but for programs with the token of `HEKLA_METRICS_TOKEN`, where it is set
    "live": Declared(ANYBODY),
    "ready": Declared(ANYBODY),
    "favicon": Declared(ANYBODY),
    "design": Declared(SIGNED_IN),
    "run_example": Declared(post=SUBMITS),
    "set_language": Declared(post=ANYBODY),
    "help:index": Declared(SIGNED_IN),
    "help:page": Declared(SIGNED_IN),
    "accounts:list": Declared(PLATFORM_ADMINS),
    "accounts:create": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:edit": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:give_link": Declared(post=PLATFORM_ADMINS),
    "accounts:act_for": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:end_acting": Declared(post=NOTHING),  # nobody acts for anybody
    "accounts:profile": Declared(SIGNED_IN, SIGNED_IN),
    "accounts:create_token": Declared(post=SIGNED_IN),
    "accounts:revoke_token": Declared(post=OWN_TOKEN),
    "accounts:sign_in": Declared(ANYBODY, ANYBODY, put=ANYBODY, patch=ALREADY_IN, delete=ALREADY_IN),
    "accounts:sign_out": Declared(post=SIGNED_IN),
    "accounts:use_link": Declared(ANYBODY, ANYBODY),
    "audit": Declared(AUDITS),
    "roles": Declared(GIVES_ROLES),
    "tenancy:list": Declared(SIGNED_IN),
    "tenancy:create": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "tenancy:switch": Declared(post=TENANT),
    "tenancy:detail": Declared(TENANT),
    "tenancy:edit": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "tenancy:set_retention": Declared(post=MANAGES_MEMBERS),
    "tenancy:add_member": Declared(post=MANAGES_MEMBERS),
    "tenancy:change_role": Declared(post=MANAGES_MEMBERS),
    "tenancy:remove_member": Declared(post=MANAGES_MEMBERS),
    "departments:list": Declared(SIGNED_IN),
    "departments:create": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "departments:detail": Declared(DEPARTMENT),
    "departments:edit": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "clusters:nodes": Declared(SIGNED_IN),
    "clusters:policy": Declared(SEES_ALL, OPERATORS),
    "clusters:list": Declared(OPERATORS),
    "clusters:create": Declared(OPERATORS, OPERATORS),
    "clusters:detail": Declared(OPERATORS),
    "clusters:remove": Declared(post=OPERATORS),
    "clusters:remove_key": Declared(post=OPERATORS),
    "clusters:cordon": Declared(post=OPERATORS),
    "clusters:environments": Declared(SIGNED_IN),
    "priorities:list": Declared(SIGNED_IN),
    "priorities:create": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "priorities:edit": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "priorities:delete": Declared(post=PLATFORM_ADMINS),
    "clusters:create_environment": Declared(OPERATORS, OPERATORS),
    "clusters:edit_environment": Declared(OPERATORS, OPERATORS),
    "clusters:edit": Declared(OPERATORS, OPERATORS),
    "queues:list": Declared(SIGNED_IN),
    "queues:create": Declared(OPERATORS, OPERATORS),
    "spans:list": Declared(SIGNED_IN),
    "spans:create": Declared(OPERATORS, OPERATORS),
    "spans:detail": Declared(TENANT),
    "spans:edit": Declared(OPERATORS, OPERATORS),
    "spans:delete": Declared(post=CHANGES_THE_QUEUE | {"stranger": "refused"}),
    "queues:edit": Declared(OPERATORS, OPERATORS),
    "queues:detail": Declared(TENANT),
    "search:results": Declared(SIGNED_IN),
    "api:v1:search": Declared(SIGNED_IN),
    "accounts:second_step": Declared(ANYBODY, ANYBODY),
    "accounts:prove": Declared(SIGNED_IN, SIGNED_IN),
    "accounts:second_factor": Declared(SIGNED_IN),
    "accounts:begin_factor": Declared(post=SIGNED_IN),
    "accounts:confirm_factor": Declared(post=SIGNED_IN),
    "accounts:renew_codes": Declared(post=SIGNED_IN),
    "accounts:remove_factor": Declared(post=SIGNED_IN),
    "accounts:add_key": Declared(post=SIGNED_IN),
    "accounts:remove_key": Declared(post=SIGNED_IN),
    "accounts:start_oidc": Declared(NOBODY),
    "accounts:oidc_back": Declared(NOBODY),
    "accounts:identities": Declared(SIGNED_IN),
    "accounts:connect_identity": Declared(post=SIGNED_IN),
    "accounts:disconnect_identity": Declared(post=SIGNED_IN),
    "accounts:visits": Declared(SIGNED_IN),
    "accounts:end_visit": Declared(post=NOTHING),
    "accounts:end_other_visits": Declared(post=SIGNED_IN),
    "accounts:end_visits_of": Declared(post=PLATFORM_ADMINS),
    "accounts:reset_factor": Declared(post=PLATFORM_ADMINS),
    "invitations:list": Declared(MANAGES_MEMBERS, MANAGES_MEMBERS),
    "invitations:import": Declared(GIVES_ROLES, GIVES_ROLES),
    "invitations:resend": Declared(post=MANAGES_MEMBERS),
    "invitations:revoke": Declared(post=MANAGES_MEMBERS),
    "invitations:sign_up": Declared(ANYBODY, ANYBODY),
    "invitations:accept": Declared(post=JOINS),
    "queues:set_state": Declared(post=OPERATORS),
    "queues:preview_new": Declared(post=OPERATORS),
    "queues:preview": Declared(post=OPERATORS),
    "jobs:list_file": Declared(SIGNED_IN),
    "jobs:act_on_all": Declared(post=SIGNED_IN),
    "jobs:arrange": Declared(post=SIGNED_IN),
    "jobs:save_view": Declared(post=SHARES_VIEWS),
    "jobs:delete_view": Declared(
        post=who(rest="absent", tenant_admin="ok", department_admin="ok", viewer="refused", member="refused")
    ),
    "jobs_what_if": Declared(post=WRITES_A_DRAFT),
    "jobs_what_if_take": Declared(post=HAS_A_TENANT),
    "job_unblock": Declared(TENANT),
    "job_ease": Declared(post=ACTS_ON_THE_JOB),
    "jobs:presets": Declared(SIGNED_IN),
    "jobs:rename_preset": Declared(post=MANAGES_MEMBERS),
    "jobs:choose_preset": Declared(post=MANAGES_MEMBERS),
    "jobs:delete_preset": Declared(post=MANAGES_MEMBERS),
    "jobs:priority": Declared(post=ACTS_ON_THE_JOB),
    "notifications:list": Declared(SIGNED_IN),
    "notifications:bell": Declared(SIGNED_IN),
    "notifications:read": Declared(post=SIGNED_IN),
    "notifications:settings": Declared(SIGNED_IN, SIGNED_IN),
    "notifications:secret": Declared(post=who(rest="refused")),  # nobody has a webhook
    "notifications:job": Declared(TENANT, TENANT),
    "api:v1:second_factor": Declared(delete=PLATFORM_ADMINS),
    "api:v1:invitations": Declared(MANAGES_MEMBERS, MANAGES_MEMBERS),
    "api:v1:import_people": Declared(post=GIVES_ROLES),
    "api:v1:invitation": Declared(post=MANAGES_MEMBERS, delete=MANAGES_MEMBERS),
    "api:v1:what_if": Declared(post=SENDS),
    "api:v1:job_copy": Declared(TENANT),
    "api:v1:job_priority": Declared(patch=ACTS_ON_THE_JOB),
    "api:v1:job_start": Declared(TENANT),
    "api:v1:job_waits": Declared(TENANT),
    "api:v1:job_notifications": Declared(TENANT, put=TENANT, delete=TENANT),
    "api:v1:notifications": Declared(SIGNED_IN, SIGNED_IN),
    "api:v1:notification_settings": Declared(SIGNED_IN, put=SIGNED_IN),
    "api:v1:job_receipts": Declared(TENANT),
    "api:v1:presets": Declared(SIGNED_IN, SIGNED_IN),
    "api:v1:preset": Declared(TENANT, patch=MANAGES_MEMBERS, delete=MANAGES_MEMBERS),
    "api:v1:preset_copy": Declared(TENANT),
    "api:v1:spans": Declared(SIGNED_IN, OPERATORS),
    "api:v1:span": Declared(TENANT, patch=CHANGES_THE_QUEUE, delete=CHANGES_THE_QUEUE),
    "api:v1:queue": Declared(TENANT, patch=CHANGES_THE_QUEUE),
    "api:v1:queue_preview": Declared(post=CHANGES_THE_QUEUE),
    "api:v1:queue_standing": Declared(TENANT),
    "api:v1:policy": Declared(SEES_ALL, put=OPERATORS),
    "api:v1:policy_trial": Declared(post=OPERATORS),
    "jobs_what_if_when": Declared(post=WRITES_A_DRAFT),
    "gallery:list": Declared(SIGNED_IN),
    "gallery:publish": Declared(PUBLISHES, PUBLISHES),
    "gallery:template": Declared(TENANT, TENANT),
    "gallery:withdraw": Declared(post=MANAGES_MEMBERS),
    "api:v1:gallery": Declared(SIGNED_IN, MANAGES_MEMBERS),
    "api:v1:gallery_card": Declared(TENANT, delete=MANAGES_MEMBERS),
    "api:v1:gallery_begin": Declared(post=SENDS | {"stranger": "absent"}),
    "api:v1:job_exposure": Declared(TENANT),
    "exposure": Declared(TENANT),
    "live:download_logs": Declared(TENANT),
    "tenancy:quotas": Declared(TENANT, SETS_QUOTAS),
    "api:v1:quotas": Declared(TENANT, put=SETS_TENANT_QUOTAS),
    "jobs:list": Declared(SIGNED_IN),
    "jobs:submit": Declared(SIGNED_IN, SIGNED_IN),
    "jobs:submit_yaml": Declared(SIGNED_IN, SIGNED_IN),
    "jobs:detail": Declared(TENANT),
    "jobs:command": Declared(post=ACTS_ON_THE_JOB),
    "jobs:scale": Declared(post=ACTS_ON_THE_JOB),
    "jobs:delete": Declared(post=ACTS_ON_THE_JOB),
    "jobs:export": Declared(TENANT),
    "jobs:manifest": Declared(TENANT),
    "flows:list": Declared(SIGNED_IN),
    "flows:start": Declared(SIGNED_IN, SIGNED_IN),
    "flows:detail": Declared(TENANT),
    "flows:stop": Declared(post=ACTS_ON_THE_JOB),
    "flows:delete": Declared(post=ACTS_ON_THE_JOB),
    "flows:manifest": Declared(TENANT),
    "flows:templates": Declared(SIGNED_IN),
    "flows:new_template": Declared(SIGNED_IN, SIGNED_IN),
    "flows:template": Declared(TENANT),
    "flows:edit_template": Declared(TENANT, TENANT),
    "flows:delete_template": Declared(post=ACTS_ON_THE_JOB),
    "flows:submit_template": Declared(post=TENANT),
    "flows:template_manifest": Declared(TENANT),
    "batches:list": Declared(SIGNED_IN),
    "batches:sweep": Declared(SIGNED_IN, SIGNED_IN),
    "batches:file": Declared(SIGNED_IN, SIGNED_IN),
    "batches:detail": Declared(TENANT),
    "batches:stop": Declared(post=ACTS_ON_THE_JOB),
    "batches:retry": Declared(post=STARTS_ITS_RUNS),
    "schedules:list": Declared(SIGNED_IN),
    "schedules:create": Declared(SIGNED_IN, SIGNED_IN),
    "schedules:create_yaml": Declared(SIGNED_IN, SIGNED_IN),
    "schedules:detail": Declared(TENANT),
    "schedules:edit": Declared(STARTS_ITS_RUNS, STARTS_ITS_RUNS),
    "schedules:suspend": Declared(post=ACTS_ON_THE_JOB),
    "schedules:run": Declared(post=STARTS_ITS_RUNS),
    "schedules:delete": Declared(post=ACTS_ON_THE_JOB),
    "schedules:manifest": Declared(TENANT),
    "demonstrations:list": Declared(SIGNED_IN),
    "demonstrations:detail": Declared(SIGNED_IN),
    "demonstrations:start": Declared(post=SUBMITS),
    "jobs:timeline": Declared(TENANT),
    "jobs:pod": Declared(TENANT),
    "live:search_log": Declared(TENANT),
    "live:evidence": Declared(TENANT),
    "api:v1:pod_attempts": Declared(TENANT),
    "api:v1:pod_use": Declared(TENANT),
    "api:v1:pod_search": Declared(who(rest="wrong", stranger="absent")),  # they are told to name a text
    "usage:job": Declared(TENANT),
    "usage:pod": Declared(TENANT),
    "live:results": Declared(TENANT),
    "live:download_log": Declared(TENANT),
    "api:v1:schema": Declared(SIGNED_IN),
    "api:v1:me": Declared(SIGNED_IN),
    "api:v1:tokens": Declared(SIGNED_IN, SIGNED_IN),
    "api:v1:token": Declared(delete=OWN_TOKEN),
    "api:v1:audit": Declared(AUDITS),
    "api:v1:roles": Declared(GIVES_ROLES),
    "api:v1:tenants": Declared(SIGNED_IN),
    "api:v1:retention": Declared(TENANT, patch=MANAGES_MEMBERS),
    "api:v1:departments": Declared(SIGNED_IN, PLATFORM_ADMINS),
    "api:v1:department": Declared(DEPARTMENT, patch=CHANGES_DEPARTMENTS),
    "api:v1:jobs": Declared(SIGNED_IN, SENDS),
    "api:v1:jobs_bulk": Declared(post=SIGNED_IN),  # each job answers for itself
    "api:v1:job_groups": Declared(SIGNED_IN),
    "api:v1:job": Declared(TENANT, delete=ACTS_ON_THE_JOB),
    "api:v1:job_actions": Declared(post=ACTS_ON_THE_JOB),
    "api:v1:job_scale": Declared(patch=ACTS_ON_THE_JOB),
    "api:v1:job_events": Declared(TENANT),
    "api:v1:pod_log": Declared(TENANT),
    "api:v1:flows": Declared(SIGNED_IN, SENDS),
    "api:v1:flow": Declared(TENANT, delete=ACTS_ON_THE_JOB),
    "api:v1:flow_stop": Declared(post=ACTS_ON_THE_JOB),
    "api:v1:templates": Declared(SIGNED_IN, SENDS),
    "api:v1:template": Declared(TENANT, delete=ACTS_ON_THE_JOB),
    "api:v1:batches": Declared(SIGNED_IN, SENDS),
    "api:v1:batch": Declared(TENANT),
    "api:v1:batch_actions": Declared(post=ACTS_ON_THE_JOB),
    "api:v1:schedules": Declared(SIGNED_IN, SENDS),
    "api:v1:schedule": Declared(TENANT, patch=STARTS_ITS_RUNS, delete=ACTS_ON_THE_JOB),
    "api:v1:schedule_actions": Declared(post=ACTS_ON_THE_JOB),
    "api:v1:queues": Declared(SIGNED_IN, OPERATORS),
    "api:v1:clusters": Declared(SIGNED_IN, OPERATORS),
    "api:v1:cluster": Declared(OPERATORS, patch=OPERATORS, delete=OPERATORS),
    "api:v1:cluster_try": Declared(post=OPERATORS),
    "api:v1:cluster_key": Declared(delete=OPERATORS),
    "api:v1:nodes": Declared(SIGNED_IN),
    "api:v1:environments": Declared(SIGNED_IN),
    "api:v1:priority_classes": Declared(SIGNED_IN, PLATFORM_ADMINS),
    "api:v1:priority_class": Declared(SIGNED_IN, patch=PLATFORM_ADMINS, delete=PLATFORM_ADMINS),
    "api:nothing": Declared(NOTHING),
}
OPENPAI: dict[str, Declared] = {
    "root": Declared(ANYBODY),
    "info": Declared(ANYBODY),
    "authn_info": Declared(ANYBODY),
    "login": Declared(post=GUESSES),
    "logout": Declared(delete=who(rest="wrong")),
    "token": Declared(post=GUESSES),
    "jobs": Declared(SIGNED_IN, SUBMITS),
    "job": Declared(TENANT),
    "config": Declared(TENANT),
    "ssh": Declared(NOTHING),
    "execution_type": Declared(put=ACTS_ON_THE_JOB),
    "virtual_clusters": Declared(SIGNED_IN),
    "virtual_cluster": Declared(TENANT),
}
ROUTES |= {f"openpai:{version}:{name}": route for version in ("v1", "v2") for name, route in OPENPAI.items()}
ROUTES |= {
    "openpai:root_1": Declared(ANYBODY),
    "openpai:root_2": Declared(ANYBODY),
    "openpai:nothing": Declared(NOTHING),
    "openpai:v1:job": Declared(TENANT, put=ADDS_AS_ALICE, delete=ACTS_ON_THE_JOB),
    "openpai:v1:job_of": Declared(TENANT, put=ADDS_AS_ALICE, delete=ACTS_ON_THE_JOB),
    "openpai:v1:jobs_of": Declared(SIGNED_IN, who(rest="refused", tenant_admin="ok")),
    "openpai:v1:config_of": Declared(TENANT),
    "openpai:v1:ssh_of": Declared(NOTHING),
    "openpai:v1:execution_type_of": Declared(put=ACTS_ON_THE_JOB),
    "openpai:v2:attempt": Declared(TENANT),
    "openpai:v2:task": Declared(TENANT),
    "openpai:v2:logs": Declared(TENANT),
    "openpai:v2:log": Declared(TENANT),
    "openpai:v2:job_attempts": Declared(TENANT),
    "openpai:v2:job_attempt": Declared(TENANT),
    "openpai:v2:attempts_health": Declared(TENANT),
    "openpai:v2:events": Declared(TENANT),
    "openpai:v2:tag": Declared(put=ACTS_ON_THE_JOB, delete=ACTS_ON_THE_JOB),
    "openpai:v2:tokens": Declared(post=GUESSES),
    "openpai:v2:token_check": Declared(SIGNED_IN),
    "openpai:v2:users": Declared(SIGNED_IN),
    "openpai:v2:users_": Declared(SIGNED_IN),
    "openpai:v2:user": Declared(who(rest="absent", tenant_admin="ok", platform_admin="ok")),
    "openpai:v2:user_": Declared(who(rest="absent", tenant_admin="ok", platform_admin="ok")),
    "openpai:v2:storages": Declared(SIGNED_IN),
}

SOCKETS: dict[str, Verdicts] = {
    "logs": TENANT,
    "live job": TENANT,
    "live pod": TENANT,
    "live jobs": SIGNED_IN,
    "live flow": TENANT,
    "live flows": SIGNED_IN,
    "live home": SIGNED_IN,
    "live queues": SIGNED_IN,
    "live queue": TENANT,
    "live demonstration": SIGNED_IN,
    "live batches": SIGNED_IN,
    "live batch": TENANT,
    "live schedules": SIGNED_IN,
    "live schedule": TENANT,
    "live nodes": SIGNED_IN,
    "live clusters": who(rest="absent", operator="ok", platform_admin="ok"),
    "live cluster": who(rest="absent", operator="ok", platform_admin="ok"),
    "live bell": SIGNED_IN,
}
"""Sockets are opened by who is signed in; none takes a token. A list shows only what its reader may see."""


def routes() -> dict[str, Callable[..., Any]]:
    """Every address of the URL configuration, with what answers there."""
    return dict(_routes(get_resolver().url_patterns))


def _routes(patterns: list[URLPattern | URLResolver], namespace: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _routes(pattern.url_patterns, inner)
        else:
            yield f"{namespace}{pattern.name}", pattern.callback


def is_open_to_acting(name: str, verb: str) -> bool:
    """Whether it answers somebody who acts for another: as the person, or where acting ends, as themselves."""
    return name in reach.AS_ONESELF or reach.is_open(name, verb)


def scope_for(answers: Callable[..., Any], verb: str) -> Scope | None:
    """The scope that a token must have there; None where tokens are not looked at."""
    view = getattr(answers, "view_class", None)
    if not getattr(view, "authentication_classes", ()):
        return None
    return Scope.READ if verb == "get" else getattr(view, "writes", Scope.ADMIN)
