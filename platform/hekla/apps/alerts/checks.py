"""Whether a rule can be saved: what it measures, where, and whether its owner may do what it does."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.alerts import measures
from hekla.apps.alerts.measures import AlertMeasure, SubjectKind
from hekla.apps.clusters import selectors as clusters
from hekla.apps.notifications import addresses
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import (
    AlertActionSpec,
    AlertAudience,
    AlertRuleSpec,
    CordonAction,
    HoldQueueAction,
    LabelNodeAction,
    NotifyAction,
    StopJobAction,
    WebhookAction,
)
from hekla.domain.errors import HeklaError, Invalid, Problem


def require(spec: AlertRuleSpec, tenant: Tenant | None, user: User) -> None:
    """Raises Invalid with every problem of a rule that this person saves."""
    measure = measures.find(spec.measure)
    found = [*_of_scope(spec, measure, tenant, user)]
    for number, action in enumerate(spec.actions):
        path = f"actions.{number}"
        found += [
            Problem(f"{path}.{one.path}".rstrip("."), one.message) for one in _of_action(action, measure, tenant, user)
        ]
    if found:
        raise Invalid(found)


def _of_scope(spec: AlertRuleSpec, measure: AlertMeasure, tenant: Tenant | None, user: User) -> Iterator[Problem]:
    if tenant is not None and not measure.for_tenants:
        yield Problem("measure", _("Only rules about the platform can use this measure."))
    if spec.cluster and not clusters.all_clusters().filter(name=spec.cluster).exists():
        yield Problem("cluster", _("Unknown cluster."))
    if spec.queue and not measure.takes_queue:
        yield Problem("queue", _("This measure cannot be limited to a queue."))
    elif spec.queue and not queues.visible_to(user).filter(name=spec.queue).exists():
        yield Problem("queue", _("Unknown queue."))
    if spec.queue and spec.cluster:
        yield Problem("cluster", _("Choose a cluster or a queue. A queue is in one cluster."))
    if spec.node_label and not measure.takes_label:
        yield Problem("node_label", _("This measure cannot be limited to nodes with a label."))


def _of_action(action: AlertActionSpec, measure: AlertMeasure, tenant: Tenant | None, user: User) -> Iterator[Problem]:
    match action:
        case NotifyAction():
            yield from _of_people(action, tenant)
        case WebhookAction():
            try:
                addresses.check(action.url)
            except HeklaError as error:
                yield Problem("url", error.message)
        case CordonAction() | LabelNodeAction():
            yield from _of_platform(tenant, user, Permission.MANAGE_CLUSTERS)
            if measure.subject is not SubjectKind.NODE:
                yield Problem("", _("Only rules with a measure of nodes can cordon or label."))
        case HoldQueueAction():
            yield from _of_platform(tenant, user, Permission.MANAGE_QUEUES)
            if not action.queue and measure.subject is not SubjectKind.QUEUE:
                yield Problem("queue", _("Choose the queue: this measure is not about queues."))
            elif action.queue and not queues.all_queues().filter(name=action.queue).exists():
                yield Problem("queue", _("Unknown queue."))
        case StopJobAction():
            if measure.subject is not SubjectKind.JOB:
                yield Problem("", _("Only rules with a measure of jobs can abort jobs."))
            elif not may_stop(user, tenant):
                yield Problem("", _("You may not abort these jobs."))


def may_stop(user: User, tenant: Tenant | None) -> bool:
    """Whether the person may abort all jobs of the tenant; None: all jobs."""
    if tenant is None:
        return accounts.may(user, Permission.ACT_ON_ANY_JOB)
    of_tenant = tenancy.may(user, tenant.pk, Permission.ACT_ON_TENANT_JOBS)
    return of_tenant or accounts.may(user, Permission.ACT_ON_ANY_JOB)


def _of_platform(tenant: Tenant | None, user: User, permission: Permission) -> Iterator[Problem]:
    if tenant is not None:
        yield Problem("", _("Rules about a tenant cannot do this."))
    elif not accounts.may(user, permission):
        yield Problem("", _("Your role does not allow this."))


def _of_people(action: NotifyAction, tenant: Tenant | None) -> Iterator[Problem]:
    if not action.people and not action.roles:
        yield Problem("people", _("Choose whom to notify."))
    if AlertAudience.TENANT_ADMINS in action.roles and tenant is None:
        yield Problem("roles", _("Only rules about a tenant can notify its admins."))
    if AlertAudience.OPERATORS in action.roles and tenant is not None:
        yield Problem("roles", _("Only rules about the platform can notify operators."))
    known = accounts.everybody().filter(username__in=action.people, is_active=True)
    if tenant is not None:
        known = known.filter(memberships__tenant=tenant)
    missing = set(action.people) - set(known.values_list("username", flat=True))
    for name in sorted(missing):
        yield Problem("people", _("Unknown person “%s”.") % name)
