"""Every verb of a service that needs a right: how to call it in the world of the access tests, and who may."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from tests.apps.access_arguments import TRACE_FACTS
from tests.apps.access_world import QUEUE_RULE, SPEC, SWEEP_JOB, World

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.accounts.services import actor_of
from hekla.apps.alerts import services as alerts
from hekla.apps.alerts.models import AlertAction, AlertRule
from hekla.apps.announcements import services as announcements
from hekla.apps.announcements.models import Announcement
from hekla.apps.batches import services as batches
from hekla.apps.batches.models import Batch
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Environment, Node
from hekla.apps.demonstrations import services as demonstrations
from hekla.apps.demonstrations import workload
from hekla.apps.demonstrations.stages import GANGS
from hekla.apps.flows import services as flows
from hekla.apps.flows.models import Flow, JobTemplate
from hekla.apps.gallery import services as gallery
from hekla.apps.gallery.models import Template
from hekla.apps.identities import services as identities
from hekla.apps.identities.models import Identity
from hekla.apps.idleness import job_services as idle_jobs
from hekla.apps.idleness import services as idleness
from hekla.apps.impersonation import services as impersonation
from hekla.apps.invitations import importing
from hekla.apps.invitations import services as invitations
from hekla.apps.invitations.importing import RowOutcome
from hekla.apps.invitations.models import Invitation
from hekla.apps.invitations.table import InvitationRow
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import FileUpload, Job, Pod, SavedView
from hekla.apps.login_sessions import services as login_sessions
from hekla.apps.notifications import services as notifications
from hekla.apps.openpai import services as openpai
from hekla.apps.policy_lab import services as policy_lab
from hekla.apps.policy_lab.models import LabRun, LabTrace
from hekla.apps.presets import services as presets
from hekla.apps.presets.models import Preset
from hekla.apps.prices import services as prices
from hekla.apps.prices.models import PriceList
from hekla.apps.priorities import services as priorities
from hekla.apps.priorities.models import PriorityClass
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import FederatedQueue, Queue
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.reports import services as reports
from hekla.apps.reports.models import Report
from hekla.apps.schedules import services as schedules
from hekla.apps.schedules.models import Schedule
from hekla.apps.sharing import services as sharing
from hekla.apps.sharing.models import Guest, OpenTerminal, Recording
from hekla.apps.signin import services as signin
from hekla.apps.signin.models import SecurityKey
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Department
from hekla.apps.workbench import services as workbench
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import Forbidden
from hekla.domain.flows import FlowSpec
from hekla.domain.formats import LoadedJob
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.domain.prices import PriceSpec
from hekla.domain.scaling import JobScale
from hekla.domain.schedules import ScheduleSpec
from hekla.domain.sharing import GuestRole
from hekla.domain.stalls import ReminderCause
from hekla.domain.sweeps import SweepSpec
from hekla.domain.tools import Tool
from hekla.lib import clock

Call = Callable[[World, User], object]
SENT = JobSpec.parse(SPEC)
FLOW = FlowSpec.parse({"name": "other", "steps": [{"name": "kept"}]})
NIGHTLY = ScheduleSpec.parse({"name": "nightly", "cron": "@weekly", "job": SPEC})
OTHER_RULE = QUEUE_RULE.model_copy(update={"name": "other"})
PRICES = PriceSpec.parse({"name": "other", "currency": "EUR"})
SWEEP = SweepSpec.parse({"name": "other", "parameters": {"n": ["1"]}, "job": SWEEP_JOB})
KEY = clusters.Key("apiVersion: v1", "https://example.org")


def _acts(by: User) -> dict[str, Any]:
    return {"actor": actor_of(by), "now": clock.now()}


def _by(by: User) -> dict[str, Any]:
    return {"user": by, "now": clock.now()}


def _in_lab(world: World, by: User) -> dict[str, Any]:
    return {"tenant": world.people.lab, **_by(by)}


def _ended_job(world: World) -> Job:
    Job.objects.filter(pk=world.job.pk).update(phase="completed")
    return world.job


def _upload(world: World) -> FileUpload:
    """An upload that has begun, of a file of three bytes."""
    return FileUpload.objects.get(pod=world.pod)


def _running_pod(world: World) -> int:
    """A pod of a cluster that runs programs."""
    Cluster.objects.filter(pk=world.job.cluster_id).update(kind="local")
    Pod.objects.filter(pk=world.pod.pk).update(phase="running")
    return world.pod.pk


def _ready_session(world: World) -> ToolSession:
    _running_pod(world)
    return ToolSession.objects.select_related("pod__job__tenant").get()


def _terminal(world: World) -> OpenTerminal:
    """An open terminal of Alice's to which nobody is invited."""
    _running_pod(world)
    OpenTerminal.objects.update(ended_at=clock.now())
    owner = {"owner": world.people.alice, "opened_at": clock.now()}
    made = OpenTerminal.objects.create(uid=uuid4(), pod=world.pod, **owner)
    return OpenTerminal.objects.select_related("pod__job__cluster", "owner").get(pk=made.pk)


def _guest(world: World) -> Guest:
    """The invitation of Bob."""
    _running_pod(world)
    return Guest.objects.select_related("pod__job__cluster", "terminal__owner", "person").get()


def _co_ownership(world: World) -> Guest:
    """The invitation of Bob as a co-owner of a session."""
    _running_pod(world)
    session = {"terminal": None, "session": ToolSession.objects.get(), "role": "owner"}
    Guest.objects.update(**session)
    return Guest.objects.select_related("pod__job__cluster", "session__owner", "person").get()


def _ended_flow() -> Flow:
    Flow.objects.update(ended_at=clock.now())
    return Flow.objects.get()


def _token(world: World) -> str:
    return accounts.create_token(world.people.alice, name="ci", lifetime=timedelta(days=1), now=clock.now())


def _browser(world: World) -> int:
    key = world.signed_in["tenant_admin"][settings.SESSION_COOKIE_NAME].value
    facts = {"session_key": key, "browser": "Firefox", "address": "::1", "now": clock.now()}
    return login_sessions.note(None, world.people.alice, **facts)


def _security_key(world: World) -> int:
    facts = {"name": "key", "credential_id": b"1", "public_key": b"1", "created_at": clock.now()}
    return SecurityKey.objects.create(user=world.people.alice, **facts).pk


def _identity(world: World) -> int:
    """One of two identities, so that it is not the only way to sign in."""
    times = {"created_at": clock.now(), "last_used_at": clock.now()}
    facts = {"user": world.people.alice, "provider": "one", "issuer": "one", **times}
    Identity.objects.create(subject="a", **facts)
    return Identity.objects.create(subject="b", **facts).pk


def _end_impersonation(world: World, by: User) -> None:
    started = impersonation.begin(world.people.bob, reason="To see it.", by=world.people.ada, now=clock.now())
    if impersonation.end(started.pk, by=by, now=clock.now()) is None:
        raise Forbidden("It was not ended.")


def _import(world: World, by: User, act: Callable[..., Any]) -> None:
    rows = [InvitationRow(1, {"username": "new", "tenant": "lab"})]
    for outcome in act(rows, into=world.people.lab, by=by, now=clock.now()):
        if outcome.what is RowOutcome.WRONG:
            raise Forbidden(str(outcome.problems))


def _abort_all(world: World, by: User) -> None:
    for outcome in jobs.act_on_all([world.job], "AbortJob", **_by(by)):
        if not outcome.is_done:
            raise Forbidden(outcome.why)


def _openpai(world: World, by: User) -> Job:
    return openpai.submit(loaded=LoadedJob(SENT, ()), name="sent", config={}, **_in_lab(world, by))


def _publish(world: World, by: User) -> Template:
    fields: dict[str, Any] = {"title": "T", "description": "", "spec": SENT, "fields": []}
    return gallery.publish(**fields, **_in_lab(world, by))


def _quota(world: World, by: User, of: Quota.Of) -> None:
    quotas.bound(tenant=world.people.lab, of=of, user=None, bounds={"jobs": 9}, **_acts(by))


def _set_quota(world: World, by: User, of: Quota.Of) -> None:
    quotas.set_quota(tenant=world.people.lab, of=of, user=None, bounds={"jobs": 9}, by=by, **_acts(by))


def _federate(world: World, by: User) -> FederatedQueue:
    members = Queue.objects.filter(name__in=("labs-own", "far"))
    return queues.create_federated(name="third", members=members, **_acts(by))


def _dora() -> User:
    return User.objects.get(username="dora")


def _queue() -> Queue:
    return Queue.objects.get(name="labs-own")


def _spare() -> Cluster:
    return Cluster.objects.get(name="spare")


def _experiment() -> dict[str, Any]:
    period = {"starts_at": clock.now() - timedelta(days=1), "ends_at": clock.now()}
    return {"title": "", "policy": "", "change": {}, **period}


PEOPLE: dict[str, Call] = {
    "accounts.create_user": lambda w, by: accounts.create_user(username="new", password=None, **_acts(by)),
    "accounts.change_user": lambda w, by: accounts.change_user(
        _dora(), {"display_name": "D"}, password=None, **_acts(by)
    ),
    "accounts.change_user/password": lambda w, by: accounts.change_user(
        _dora(), {}, password="a-long-walk-home", **_acts(by)
    ),
    "accounts.change_user/role": lambda w, by: accounts.change_user(
        _dora(), {"platform_role": "admin"}, password=None, **_acts(by)
    ),
    "accounts.issue_link": lambda w, by: accounts.issue_link(w.people.bob, **_acts(by)),
    "impersonation.begin": lambda w, by: impersonation.begin(w.people.bob, reason="R", by=by, now=clock.now()),
    "impersonation.end": _end_impersonation,
    "login_sessions.end_all": lambda w, by: login_sessions.end_all(w.people.bob, by=by, now=clock.now()),
    "priorities.create": lambda w, by: priorities.create(name="low", values={"value": 1}, **_acts(by)),
    "priorities.change": lambda w, by: priorities.change(PriorityClass.objects.get(), {"value": 2}, **_acts(by)),
    "priorities.delete": lambda w, by: priorities.delete(PriorityClass.objects.get(), **_acts(by)),
    "quotas.create_tenant": lambda w, by: quotas.create_tenant(slug="new", name="New", **_acts(by)),
    "signin.reset": lambda w, by: (_security_key(w), signin.reset(w.people.alice, by=by, now=clock.now())),
    "tenancy.create": lambda w, by: tenancy.create(slug="new", name="New", **_acts(by)),
    "tenancy.change": lambda w, by: tenancy.change(w.people.lab, {"name": "New"}, **_acts(by)),
    "tenancy.departments.create": lambda w, by: departments.create(slug="new", name="New", **_acts(by)),
    "tenancy.departments.change": lambda w, by: departments.change(
        Department.objects.get(), {"name": "New"}, **_acts(by)
    ),
}
"""For platform admins only."""

MACHINES: dict[str, Call] = {
    "prices.create": lambda w, by: prices.create(spec=PRICES, begin_at=clock.now() + timedelta(days=9), **_by(by)),
    "prices.delete": lambda w, by: prices.delete(PriceList.objects.get(), **_by(by)),
    "clusters.create": lambda w, by: clusters.create(name="new", kind="simulated", config={}, **_acts(by)),
    "clusters.change": lambda w, by: clusters.change(_spare(), {"is_paused": True}, **_acts(by)),
    "clusters.remove": lambda w, by: clusters.remove(_spare(), **_acts(by)),
    "clusters.give_key": lambda w, by: clusters.give_key(_spare(), KEY, by=by, **_acts(by)),
    "announcements.announce": lambda w, by: announcements.announce(values={"text": "Maintenance"}, **_by(by)),
    "announcements.withdraw": lambda w, by: announcements.withdraw(Announcement.objects.get(), **_by(by)),
    "clusters.set_metrics_token": lambda w, by: clusters.set_metrics_token(_spare(), "", **_acts(by)),
    "clusters.remove_key": lambda w, by: clusters.remove_key(_spare(), **_acts(by)),
    "clusters.set_policy": lambda w, by: clusters.set_policy(_spare(), "a: b", note="", by=by, **_acts(by)),
    "clusters.label_node": lambda w, by: clusters.label_node(Node.objects.get(), {"fast-disk": "yes"}, **_acts(by)),
    "clusters.cordon": lambda w, by: clusters.cordon(Node.objects.get(), cordoned=True, **_acts(by)),
    "jobs.drain": lambda w, by: jobs.drain(Node.objects.get(), reason="a new fan", **_by(by)),
    "clusters.begin_draining": lambda w, by: clusters.begin_draining(Node.objects.get(), reason="fan", **_acts(by)),
    "clusters.note_drain": lambda w, by: clusters.note_drain(Node.objects.get(), pods=1, jobs=1, **_acts(by)),
    "clusters.create_environment": lambda w, by: clusters.create_environment(
        name="new", description="", requirements="", **_acts(by)
    ),
    "clusters.forget_nodes": lambda w, by: clusters.forget_nodes(_spare(), **_acts(by)),
    "clusters.change_environment": lambda w, by: clusters.change_environment(
        Environment.objects.get(), {"description": "new"}, **_acts(by)
    ),
    "demonstrations.workload.remove": lambda w, by: workload.remove(**_acts(by)),
    "policy_lab.start": lambda w, by: policy_lab.start(_spare(), **_experiment(), **_by(by)),
    "policy_lab.cancel": lambda w, by: policy_lab.cancel(LabRun.objects.get(state="waiting"), **_by(by)),
    "policy_lab.delete": lambda w, by: policy_lab.delete(LabRun.objects.get(state="failed"), **_by(by)),
    "policy_lab.store_trace": lambda w, by: policy_lab.store_trace(
        name="new", content=b"", facts=TRACE_FACTS, **_by(by)
    ),
    "policy_lab.delete_trace": lambda w, by: policy_lab.delete_trace(LabTrace.objects.get(), **_by(by)),
    "demonstrations.set_up": lambda w, by: demonstrations.set_up(GANGS, **_acts(by)),
    "queues.create": lambda w, by: queues.create(cluster=w.people.cluster, name="new", **_acts(by)),
    "queues.change": lambda w, by: queues.change(_queue(), {"weight": 2}, by=by, **_acts(by)),
    "queues.set_state": lambda w, by: queues.set_state(_queue(), "closed", by=by, **_acts(by)),
    "queues.create_federated": _federate,
    "queues.change_federated": lambda w, by: queues.change_federated(
        FederatedQueue.objects.get(), description="new", by=by, **_acts(by)
    ),
    "queues.delete_federated": lambda w, by: queues.delete_federated(FederatedQueue.objects.get(), **_acts(by)),
    "quotas.bound/tenant": lambda w, by: _quota(w, by, Quota.Of.TENANT),
    "quotas.set_quota/tenant": lambda w, by: _set_quota(w, by, Quota.Of.TENANT),
    "tenancy.set_file_limit": lambda w, by: tenancy.set_file_limit(w.people.lab, 5, **_acts(by)),
}
"""For operators and platform admins."""

TENANT: dict[str, Call] = {
    "gallery.publish": _publish,
    "gallery.withdraw": lambda w, by: gallery.withdraw(Template.objects.get(), **_by(by)),
    "invitations.invite": lambda w, by: invitations.invite(w.people.lab, role="viewer", by=by, now=clock.now()),
    "invitations.resend": lambda w, by: invitations.resend(
        w.people.lab, Invitation.objects.get().pk, by=by, now=clock.now()
    ),
    "invitations.revoke": lambda w, by: invitations.revoke(
        w.people.lab, Invitation.objects.get().pk, by=by, now=clock.now()
    ),
    "invitations.importing.preview": lambda w, by: _import(w, by, importing.preview),
    "invitations.importing.import_rows": lambda w, by: _import(w, by, importing.import_rows),
    "jobs.save_view": lambda w, by: jobs.save_view(name="V", query="", **_in_lab(w, by)),
    "jobs.delete_view": lambda w, by: jobs.delete_view(SavedView.objects.get(), **_by(by)),
    "presets.save": lambda w, by: presets.save(name="P", spec=SENT, **_in_lab(w, by)),
    "presets.rename": lambda w, by: presets.rename(Preset.objects.get(), "P", **_by(by)),
    "presets.set_default": lambda w, by: presets.set_default(Preset.objects.get(), is_default=True, **_by(by)),
    "presets.delete": lambda w, by: presets.delete(Preset.objects.get(), **_by(by)),
    "quotas.bound": lambda w, by: _quota(w, by, Quota.Of.EACH),
    "quotas.set_quota": lambda w, by: _set_quota(w, by, Quota.Of.EACH),
    "alerts.create": lambda w, by: alerts.create(spec=OTHER_RULE, tenant=w.people.lab, **_by(by)),
    "alerts.change": lambda w, by: alerts.change(AlertRule.objects.get(), {"threshold": 3}, **_by(by)),
    "alerts.silence": lambda w, by: alerts.silence(AlertRule.objects.get(), until=None, reason="", **_by(by)),
    "alerts.renew_secret": lambda w, by: alerts.renew_secret(AlertRule.objects.get(), **_by(by)),
    "alerts.veto": lambda w, by: alerts.veto(AlertAction.objects.get(), **_by(by)),
    "alerts.delete": lambda w, by: alerts.delete(AlertRule.objects.get(), **_by(by)),
    "idleness.set_rule": lambda w, by: idleness.set_rule(w.people.lab, {"idle_minutes": 60}, **_by(by)),
    "tenancy.set_retention": lambda w, by: tenancy.set_retention(w.people.lab, log_days=1, history_days=2, **_acts(by)),
    "tenancy.add_member": lambda w, by: tenancy.add_member(w.people.lab, w.people.ada, "viewer", **_acts(by)),
    "tenancy.change_role": lambda w, by: tenancy.change_role(w.people.lab, w.people.bob.pk, "member", **_acts(by)),
    "tenancy.remove_member": lambda w, by: tenancy.remove_member(w.people.lab, w.people.bob.pk, **_acts(by)),
}
"""For admins of the tenant."""

ITS_OWNER: dict[str, Call] = {
    "batches.stop": lambda w, by: batches.stop(Batch.objects.get(), **_by(by)),
    "batches.retry_failed": lambda w, by: batches.retry_failed(Batch.objects.get(), **_by(by)),
    "flows.change_template": lambda w, by: flows.change_template(JobTemplate.objects.get(), spec=SENT, **_by(by)),
    "flows.delete_template": lambda w, by: flows.delete_template(JobTemplate.objects.get(), **_by(by)),
    "flows.stop": lambda w, by: flows.stop(Flow.objects.get(), **_by(by)),
    "flows.delete": lambda w, by: flows.delete(_ended_flow(), **_by(by)),
    "jobs.command": lambda w, by: jobs.command(w.job, LifecycleAction.ABORT_JOB, **_by(by)),
    "jobs.act_on_all": _abort_all,
    "jobs.delete": lambda w, by: jobs.delete(_ended_job(w), **_by(by)),
    "jobs.record_ssh": lambda w, by: jobs.record_ssh(_running_pod(w), uuid4(), **_by(by)),
    "jobs.record_terminal": lambda w, by: jobs.record_terminal(_running_pod(w), uuid4(), **_by(by)),
    "idleness.keep": lambda w, by: idleness.keep(_ready_session(w), hours=1, reason="It waits.", **_by(by)),
    "idleness.job_services.keep": lambda w, by: idle_jobs.keep(w.job, hours=1, reason="It waits.", **_by(by)),
    "jobs.begin_upload": lambda w, by: jobs.begin_upload(
        w.pod, lambda _made: "mark", path="b", size=3, replaces="", **_by(by)
    ),
    "jobs.fence_upload": lambda w, by: jobs.fence_upload(_upload(w), user=by),
    "jobs.append_to_upload": lambda w, by: jobs.append_to_upload(_upload(w), 0, b"abc", lambda: None, **_by(by)),
    "jobs.finish_upload": lambda w, by: jobs.finish_upload(_upload(w), lambda: "ab12", **_by(by)),
    "jobs.drop_upload": lambda w, by: jobs.drop_upload(_upload(w), user=by),
    "jobs.open_frozen": lambda w, by: jobs.open_frozen(w.pod.pk, **_by(by)),
    "jobs.keep_frozen": lambda w, by: jobs.keep_frozen(w.pod.pk, 3600, **_by(by)),
    "jobs.release_frozen": lambda w, by: jobs.release_frozen(w.pod.pk, **_by(by)),
    "jobs.scale": lambda w, by: jobs.scale(w.job, JobScale.parse({"tasks": {"main": {"replicas": 2}}}), **_by(by)),
    "jobs.set_priority": lambda w, by: jobs.set_priority(w.job, -1, **_by(by)),
    "openpai.add_tag": lambda w, by: openpai.add_tag(w.job, "new", **_by(by)),
    "openpai.delete_tag": lambda w, by: openpai.delete_tag(w.job, "odd", **_by(by)),
    "reports.change": lambda w, by: reports.change(Report.objects.get(), {"recipients": []}, **_by(by)),
    "reports.pause": lambda w, by: reports.pause(Report.objects.get(), paused=True, **_by(by)),
    "reports.send_now": lambda w, by: reports.send_now(Report.objects.get(), **_by(by)),
    "reports.delete": lambda w, by: reports.delete(Report.objects.get(), **_by(by)),
    "schedules.change": lambda w, by: schedules.change(Schedule.objects.get(), {"cron": "@weekly"}, **_by(by)),
    "schedules.set_suspended": lambda w, by: schedules.set_suspended(Schedule.objects.get(), suspended=True, **_by(by)),
    "schedules.delete": lambda w, by: schedules.delete(Schedule.objects.get(), **_by(by)),
    "schedules.run_now": lambda w, by: schedules.run_now(Schedule.objects.get(), **_by(by)),
    "sharing.open_terminal": lambda w, by: sharing.open_terminal(_running_pod(w), uuid4(), **_by(by)),
    "sharing.invite": lambda w, by: sharing.invite(_terminal(w), "mia", GuestRole.PEER, hours=1, **_by(by)),
    "sharing.revoke": lambda w, by: sharing.revoke(Guest.objects.get(), **_by(by)),
    "sharing.record_guest": lambda w, by: sharing.record_guest(_terminal(w), **_by(by)),
    "sharing.begin_recording": lambda w, by: sharing.begin_recording(_terminal(w), (80, 24), **_by(by)),
    "sharing.cut_recording": lambda w, by: sharing.cut_recording(Recording.objects.get(), 0, 5, **_by(by)),
    "sharing.delete_recording": lambda w, by: sharing.delete_recording(Recording.objects.get(), **_by(by)),
    "workbench.open_session": lambda w, by: workbench.open_session(_running_pod(w), Tool.PORT, 80, **_by(by)),
    "workbench.end_session": lambda w, by: workbench.end_session(ToolSession.objects.get(), **_by(by)),
}
"""For the owner of the job, flow, report, schedule or batch; other members of the tenant may not."""

SUBMITTING: dict[str, Call] = {
    "batches.check_sweep": lambda w, by: batches.check_sweep(spec=SWEEP, **_in_lab(w, by)),
    "batches.submit_sweep": lambda w, by: batches.submit_sweep(spec=SWEEP, **_in_lab(w, by)),
    "batches.check_file": lambda w, by: batches.check_file(name="f", specs=[SENT], **_in_lab(w, by)),
    "batches.submit_file": lambda w, by: batches.submit_file(name="f", specs=[SENT], **_in_lab(w, by)),
    "demonstrations.start": lambda w, by: demonstrations.start("gangs", **_in_lab(w, by)),
    "flows.apply": lambda w, by: flows.apply(templates=[SENT], flow=None, **_in_lab(w, by)),
    "flows.check": lambda w, by: flows.check(spec=FLOW, tenant=w.people.lab, user=by),
    "flows.create_template": lambda w, by: flows.create_template(spec=SENT, **_in_lab(w, by)),
    "flows.save_template": lambda w, by: flows.save_template(spec=SENT, **_in_lab(w, by)),
    "flows.start": lambda w, by: flows.start(spec=FLOW, **_in_lab(w, by)),
    "gallery.begin": lambda w, by: gallery.begin(Template.objects.get(), name="filled", values={}, **_in_lab(w, by)),
    "jobs.check": lambda w, by: jobs.check(spec=SENT, tenant=w.people.lab, user=by),
    "jobs.route_for": lambda w, by: jobs.route_for(spec=SENT, tenant=w.people.lab, user=by),
    "jobs.submit": lambda w, by: jobs.submit(spec=SENT, **_in_lab(w, by)),
    "jobs.submit_many": lambda w, by: jobs.submit_many(specs=[SENT], **_in_lab(w, by)),
    "jobs.try_out": lambda w, by: jobs.try_out(spec=SENT, **_in_lab(w, by)),
    "jobs.try_out_many": lambda w, by: jobs.try_out_many(specs=[SENT], **_in_lab(w, by)),
    "notifications.submit": lambda w, by: notifications.submit(spec=SENT, choice=None, **_in_lab(w, by)),
    "openpai.submit": _openpai,
    "sharing.fork": lambda w, by: sharing.fork(w.pod, **_by(by)),
    "schedules.create": lambda w, by: schedules.create(
        spec=NIGHTLY.model_copy(update={"name": "other"}), **_in_lab(w, by)
    ),
}
"""For members of the tenant, not for its viewers."""

THEIRS: dict[str, Call] = {
    "accounts.revoke_token": lambda w, by: accounts.revoke_token(by, ApiToken.objects.get().pk, now=clock.now()),
    "accounts.revoke_secret": lambda w, by: accounts.revoke_secret(by, _token(w), now=clock.now()),
    "identities.disconnect": lambda w, by: identities.disconnect(by, _identity(w), now=clock.now()),
    "login_sessions.end": lambda w, by: login_sessions.end(by, _browser(w), now=clock.now()),
    "signin.remove_key": lambda w, by: signin.remove_key(by, _security_key(w), now=clock.now()),
}
"""For the person that the row belongs to, Alice; the same call by others does not find it."""

INVITED: dict[str, Call] = {
    "sharing.accept": lambda w, by: sharing.accept(_guest(w), **_by(by)),
    "sharing.decline": lambda w, by: sharing.decline(_guest(w), **_by(by)),
    "sharing.end_shared_session": lambda w, by: sharing.end_shared_session(_co_ownership(w), **_by(by)),
}
"""For the person that is invited, a viewer."""

SEEING: dict[str, Call] = {
    "announcements.dismiss": lambda w, by: announcements.dismiss(Announcement.objects.get(), **_by(by)),
    "notifications.choose_for_job": lambda w, by: notifications.choose_for_job(
        by, w.job, {"moments": [], "channels": [], "long_wait_minutes": 5}
    ),
}
"""For people who may see the job."""

REMINDING: dict[str, Call] = {
    "jobs.remind_owner": lambda w, by: jobs.remind_owner(w.job, ReminderCause.STALLED, **_by(by)),
}
"""For people who may submit jobs for the tenant, and those who see everything; not for the owner."""

GROUPS: list[tuple[dict[str, Call], str, tuple[str, ...]]] = [
    (INVITED, "viewer", ("stranger", "member", "tenant_admin", "manager", "operator", "platform_admin")),
    (PEOPLE, "platform_admin", ("stranger", "viewer", "member", "tenant_admin", "manager", "operator")),
    (MACHINES, "operator", ("stranger", "viewer", "member", "tenant_admin", "manager")),
    (TENANT, "tenant_admin", ("stranger", "viewer", "member", "manager")),
    (ITS_OWNER, "tenant_admin", ("stranger", "viewer", "member", "manager")),
    (SUBMITTING, "member", ("stranger", "viewer", "manager")),
    (REMINDING, "member", ("stranger", "viewer", "tenant_admin")),
    (THEIRS, "tenant_admin", ("stranger", "viewer", "operator", "platform_admin")),
    (SEEING, "viewer", ("stranger",)),
]
"""Verbs, a role for which they work, and roles for which they do not."""
