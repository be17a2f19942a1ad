"""The everyday work of simulated teams (decision 0070): creates the teams, and submits what they submit.

Every arrival is an ordinary submission by an ordinary account, through the services that people use.
"""

import logging
from datetime import datetime, timedelta

from django.db.models import Max

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission, TenantRole
from hekla.apps.batches import services as batches
from hekla.apps.clusters import services as cluster_services
from hekla.apps.clusters.models import Cluster
from hekla.apps.demonstrations import names
from hekla.apps.demonstrations.mix import (
    PREPARE_SECONDS,
    TEAM_OF,
    TEAMS,
    Cancellation,
    SimulatedTeam,
    TeamAction,
    steady,
)
from hekla.apps.demonstrations.models import SimulatedWorkload
from hekla.apps.demonstrations.stage import GPU
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.flows import services as flows
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.apps.quotas import services as quotas
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import HeklaError
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.sweeps import SweepSpec

CLUSTER = "demo"
USERNAMES = frozenset(TEAM_OF)
MOST_UNFINISHED = 40
"""No more arrivals while the teams have so many unfinished jobs."""
_STEADY_NUMBERS = 1000
"""Where the numbers of arrivals after the history begin."""
_NODE = {"cpu": "96", "memory": "768Gi", GPU: "8", "pods": "110"}
_HISTORY_DAYS = 1
_MOST_CLEARED, _CLEARING_GAP = 50, timedelta(seconds=1)
"""How many jobs one look removes, and the time until the next look."""
_FINAL = [phase.value for phase in JobPhase if phase.is_final]
log = logging.getLogger(__name__)


def set_up(*, policy: str, since: datetime) -> SimulatedWorkload:
    """Create the teams, their queues and their cluster, as of the beginning of their history.

    `policy`: the text of the cluster's scheduling policy.
    """
    nodes = [{"name": "gpu", "count": 4, "allocatable": _NODE, "labels": {"gpu": "a100"}}]
    prepare = {"min": PREPARE_SECONDS, "max": PREPARE_SECONDS}
    config = {"nodes": nodes, "seed": 1, "speed": 1, "prepare_seconds": prepare}
    with unit_of_work():
        cluster = cluster_services.create(name=CLUSTER, kind="simulated", config=config, actor=PLATFORM, now=since)
        cluster_services.set_policy(cluster, policy, note="", by=None, actor=PLATFORM, now=since)
        for team in TEAMS:
            tenant = _create_tenant(team, since)
            values = {"weight": team.weight, "description": f"{team.name}, on simulated machines"}
            queues.create(cluster=cluster, name=team.slug, values=values, tenants=[tenant], actor=PLATFORM, now=since)
        return SimulatedWorkload.objects.create(cluster=cluster, since=since)


def _create_tenant(team: SimulatedTeam, now: datetime) -> Tenant:
    """The tenant with its people, marked as simulated in their names."""
    tenant = quotas.create_tenant(
        slug=team.slug,
        name=names.marked(team.name),
        description="Simulated people, whose jobs run on simulated machines.",
        actor=PLATFORM,
        now=now,
    )
    tenancy_services.set_retention(tenant, log_days=0, history_days=_HISTORY_DAYS, actor=PLATFORM, now=now)
    for place, (username, name) in enumerate(team.people.items()):
        user = account_services.create_user(
            username=username, password=None, display_name=names.marked(name), actor=PLATFORM, now=now
        )
        role = TenantRole.MEMBER if place else TenantRole.ADMIN
        tenancy_services.add_member(tenant, user, role, actor=PLATFORM, now=now)
    return tenant


def admit(admin: User, *, now: datetime) -> None:
    """Make this platform admin an admin of the teams too, unless they are, so that they can try their jobs."""
    with unit_of_work():
        for tenant in tenancy.all_tenants().filter(slug__in=[team.slug for team in TEAMS], is_active=True):
            if not tenancy.members(tenant).filter(user=admin).exists():
                tenancy_services.add_member(tenant, admin, TenantRole.ADMIN, actor=PLATFORM, now=now)


def submit(arrival: TeamAction, *, now: datetime) -> None:
    """Do what arrives, as its person. A refusal, for example by a quota, is an answer like that to a person."""
    user = accounts.by_username(arrival.person)
    tenant = tenancy.all_tenants().filter(slug=TEAM_OF[arrival.person].slug).first()
    if user is None or tenant is None:
        return
    try:
        _submit(arrival.work, tenant, user, now)
    except HeklaError as refusal:
        log.info("the simulated person %s was refused: %s", arrival.person, refusal)


def _submit(work: JobSpec | SweepSpec | FlowSpec | Cancellation, tenant: Tenant, user: User, now: datetime) -> None:
    match work:
        case JobSpec():
            jobs.submit(spec=work, tenant=tenant, user=user, now=now)
        case SweepSpec():
            batches.submit_sweep(spec=work, tenant=tenant, user=user, now=now)
        case FlowSpec():
            flows.start(spec=work, tenant=tenant, user=user, now=now)
        case Cancellation():
            newest = Job.objects.filter(owner=user, tenant=tenant).exclude(phase__in=_FINAL).order_by("-pk").first()
            if newest is not None:
                jobs.command(newest, LifecycleAction.ABORT_JOB, user=user, now=now)


def made_until(workload: SimulatedWorkload) -> datetime:
    """How far its history is made: the latest event of a team, or its beginning."""
    teams = tenancy.all_tenants().filter(slug__in=[team.slug for team in TEAMS])
    made = LoggedEvent.objects.filter(tenant_id__in=teams.order_by().values("pk"))
    latest: datetime | None = made.aggregate(latest=Max("at"))["latest"]
    return max(latest or workload.since, workload.since)


def end_history(workload: SimulatedWorkload, *, now: datetime) -> None:
    """The history is made until now; the steady work begins."""
    workload.history_until = workload.next_at = now
    workload.save(update_fields=["history_until", "next_at"])


def advance(*, now: datetime) -> datetime | None:
    """Submit what is due now: at most one arrival, however long nobody looked. Returns when the next is due."""
    with unit_of_work():
        workload = SimulatedWorkload.objects.select_for_update(skip_locked=True).first()
        if workload is None or workload.next_at is None:
            return None
        if workload.removed_at is not None:
            return now + _CLEARING_GAP if _clear(workload.cluster, now) else None
        if workload.next_at > now:
            return workload.next_at
        arrival, gap = steady(_STEADY_NUMBERS + workload.count)
        workload.count, workload.next_at = workload.count + 1, now + gap
        workload.save(update_fields=["count", "next_at"])
        next_at, is_full = workload.next_at, _unfinished(workload.cluster) >= MOST_UNFINISHED
    if not is_full and not workload.cluster.is_paused:
        submit(arrival, now=now)
    return next_at


def remove(*, actor: Actor, now: datetime) -> None:
    """End the workload: nobody submits any more, and all its jobs are ended and deleted soon. Raises Forbidden.

    Its people and tenants are deactivated. The retention of the tenants purges their history a day later.
    """
    account_services.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        workload = SimulatedWorkload.objects.select_for_update().filter(removed_at=None).first()
        if workload is None:
            return
        workload.removed_at = workload.next_at = now
        workload.save(update_fields=["removed_at", "next_at"])
        event = events.SimulatedTeamsRemoved(name=workload.cluster.name)
        record(event, subject=f"cluster:{workload.cluster_id}", actor=actor, at=now)
        for user in accounts.everybody().filter(username__in=USERNAMES, is_active=True):
            account_services.change_user(user, {"is_active": False}, password=None, actor=PLATFORM, now=now)
        for tenant in tenancy.all_tenants().filter(slug__in=[team.slug for team in TEAMS], is_active=True):
            tenancy_services.change(tenant, {"is_active": False}, actor=PLATFORM, now=now)


def _clear(cluster: Cluster, now: datetime) -> bool:
    """End and delete some of the jobs. Returns whether there may be more. Jobs that end already are left alone."""
    found = list(Job.objects.filter(cluster=cluster, deleted_at=None).order_by("pk")[:_MOST_CLEARED])
    for job in found:
        if job.phase != JobPhase.TERMINATING and not jobs.end(job.pk, now=now):
            jobs.delete_finished(job.pk, now=now)
    return bool(found)


def _unfinished(cluster: Cluster) -> int:
    return Job.objects.filter(cluster=cluster, deleted_at=None).exclude(phase__in=_FINAL).count()
