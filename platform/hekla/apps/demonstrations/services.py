"""Starts and advances demonstrations. Each step is one transaction, when it is due by the rows."""

import logging
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters import services as cluster_services
from hekla.apps.clusters.models import Cluster
from hekla.apps.demonstrations import catalogue, selectors
from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.demonstrations.scenes import DemoJob, Demonstration
from hekla.apps.demonstrations.stage import Stage
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.models import Job
from hekla.apps.queues import selectors as queues
from hekla.apps.queues import services as queue_services
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, HeklaError, NotFound, Refused
from hekla.domain.phases import PodPhase

PAUSE_SECONDS = 4
"""How long all pods of a job run before a `later` job is submitted."""
log = logging.getLogger(__name__)


class StageMissing(Refused):
    """The simulated cluster does not exist, and this person may not create it."""

    code = "no_simulated_cluster"


class StageInUse(Refused):
    """The name of the demonstration's cluster or queue is in use for something else."""

    code = "name_taken"


class StageBusy(Refused):
    """A demonstration is running on the same nodes."""

    code = "busy"


def start(name: str, *, without: str = "", tenant: Tenant, user: User, now: datetime) -> DemoRun:
    """Start a demonstration for this tenant, or return its run if it is running for the tenant already.

    `without`: a plugin or action of the policy, or a field of tasks, to leave out, if it offers that. Raises NotFound,
    Forbidden, Refused (the cluster is paused), StageMissing, StageInUse, StageBusy, and what submitting a job raises.
    """
    demonstration = catalogue.get(name)
    if not demonstration.has(without):
        raise NotFound(_("Unknown demonstration."))
    if not tenancy.may(user, tenant.pk, Permission.SUBMIT_JOBS):
        raise Forbidden(_("You can view this tenant, but not submit to it. Ask a tenant admin."), "tenant")
    with unit_of_work():
        cluster = _stage_for(demonstration.stage, user, now, without)
        playing = selectors.in_progress_on(cluster)
        if playing is not None:
            return _the_same(playing, demonstration, without, tenant)
        run = DemoRun.objects.create(
            demonstration=name, without=without, cluster=cluster, tenant=tenant, owner=user, started_at=now
        )
        _tell(run, events.DemonstrationStarted(name=name), actor_of(user), now)
        _submit_what_is_due(run, demonstration, [], now)
    return run


def _the_same(playing: DemoRun, demonstration: Demonstration, without: str, tenant: Tenant) -> DemoRun:
    if (playing.tenant_id, playing.demonstration, playing.without) == (tenant.pk, demonstration.name, without):
        return playing
    sentence = _("“%(title)s” is running on the same simulated nodes. It ends within three minutes. Try again then.")
    raise StageBusy(sentence % {"title": catalogue.get(playing.demonstration).title})


def _stage_for(stage: Stage, user: User, now: datetime, without: str) -> Cluster:
    """The stage's cluster, created or restored, and locked until the end of the transaction."""
    is_there = clusters.all_clusters().filter(name=stage.name).exists()
    if not is_there and not accounts.may(user, Permission.MANAGE_CLUSTERS):
        sentence = _(
            "The simulated cluster %s does not exist yet. It is created when an operator or platform admin "
            "starts this demonstration."
        )
        raise StageMissing(sentence % stage.name)
    actor = actor_of(user) if accounts.may(user, Permission.MANAGE_CLUSTERS) else PLATFORM
    cluster = set_up(stage, without, actor=actor, now=now)
    if cluster.is_paused:
        raise Refused(_("The simulated cluster %s is paused. Ask an operator or platform admin.") % stage.name)
    return cluster


def set_up(stage: Stage, without: str = "", *, actor: Actor = PLATFORM, now: datetime) -> Cluster:
    """Create the stage's cluster, policy and queues, or restore what was changed in them.

    `without`: a plugin or action that the policy lacks. Raises Forbidden, StageInUse.
    """
    account_services.require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        cluster = _set_up_cluster(stage, actor, now)
        policy = stage.policy(without)
        if clusters.policy_text(cluster) != policy:
            cluster_services.set_policy(cluster, policy, note="", by=None, actor=actor, now=now)
        for name in stage.queues:
            _set_up_queue(name, stage, cluster, actor, now)
    return cluster


def _set_up_cluster(stage: Stage, actor: Actor, now: datetime) -> Cluster:
    cluster = Cluster.objects.select_for_update().filter(name=stage.name).first()
    if cluster is None:
        kind = Cluster.Kind.SIMULATED
        return cluster_services.create(name=stage.name, kind=kind, config=stage.config, actor=actor, now=now)
    if not cluster.is_simulated:
        raise StageInUse(_("The cluster %s is not simulated. Demonstrations do not use it.") % stage.name)
    if cluster.config != stage.config:
        cluster_services.change(cluster, {"config": stage.config}, actor=actor, now=now)
        cluster_services.forget_nodes(cluster, actor=actor, now=now)  # or jobs that need the new ones were refused
    return cluster


def _set_up_queue(name: str, stage: Stage, cluster: Cluster, actor: Actor, now: datetime) -> None:
    queue = queues.all_queues().filter(name=name).first()
    if queue is None:
        values = stage.queue_values.get(name)
        queue_services.create(cluster=cluster, name=name, values=values, actor=actor, now=now)
    elif queue.cluster_id != cluster.pk:
        raise StageInUse(
            _("The queue %s belongs to another cluster. The demonstration needs a queue with this name.") % name
        )


def advance_all(*, now: datetime) -> None:
    """Submit the jobs that are due, and end the runs whose jobs have all ended."""
    for run in selectors.in_progress():
        _advance(run.pk, now)


def _advance(pk: int, now: datetime) -> None:
    with unit_of_work():
        run = DemoRun.objects.select_for_update().get(pk=pk)
        if run.ended_at is not None:
            return
        submitted = selectors.jobs_of(run)
        try:
            demonstration = catalogue.get(run.demonstration)
            _submit_what_is_due(run, demonstration, submitted, now)
            _end_hours_if_due(run, demonstration, submitted, now)
        except HeklaError as refusal:  # for example a closed queue; then the run ends with the jobs it has
            log.warning("run %s cannot go on now: %s", run, refusal)
        if all(job.is_final for job in submitted):
            run.ended_at = now
            run.save(update_fields=["ended_at"])
            _tell(run, events.DemonstrationEnded(name=run.demonstration), PLATFORM, now)


def _submit_what_is_due(run: DemoRun, demonstration: Demonstration, submitted: list[Job], now: datetime) -> None:
    """Submit jobs, and append them to those that were `submitted` before."""
    for act in demonstration.acts[len(submitted) :]:
        if act.later and not _runs_whole(submitted[-1], now):
            return
        # Time decides the order of jobs, so no two get the same time.
        submitted.append(_submit(run, demonstration, act, now + timedelta(microseconds=len(submitted))))


def _end_hours_if_due(run: DemoRun, demonstration: Demonstration, submitted: list[Job], now: datetime) -> None:
    """End the hours of lent nodes when all jobs have been running for a while."""
    stage = demonstration.stage
    if not stage.has_hours or len(submitted) < len(demonstration.acts):
        return
    before, ended = stage.policy(run.without), stage.policy(run.without, closed_at=now)
    if clusters.policy_text(run.cluster) == before != ended and all(_runs_whole(job, now) for job in submitted):
        cluster_services.set_policy(run.cluster, ended, note="", by=None, actor=PLATFORM, now=now)


def _submit(run: DemoRun, demonstration: Demonstration, act: DemoJob, now: datetime) -> Job:
    name = jobs.free_name(run.tenant, f"{demonstration.name}-{act.name}")
    job = job_services.submit(
        spec=act.spec(name, demonstration.stage, run.without), tenant=run.tenant, user=run.owner, now=now
    )
    run.jobs.add(job)
    return job


def _runs_whole(job: Job, now: datetime) -> bool:
    """Whether all pods of the job have been running for PAUSE_SECONDS."""
    pods = jobs.current_pods(job)
    since = now - timedelta(seconds=PAUSE_SECONDS)
    running = [pod for pod in pods if pod.phase == PodPhase.RUNNING and pod.started_at and pod.started_at <= since]
    return len(running) == job.replicas


def _tell(run: DemoRun, event: events.Event, actor: Actor, now: datetime) -> None:
    record(
        event,
        subject=f"demonstration:{run.pk}",
        tenant=run.tenant_id,
        topics=[f"cluster:{run.cluster_id}"],
        actor=actor,
        at=now,
    )
