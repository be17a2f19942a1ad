"""One user of every role, one row of every kind that a route may name, and requests to all routes."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from tests.apps.access_arguments import (
    ROW_DATA,
    TRACE,
    experiment_arguments,
    openpai_arguments,
    row_arguments,
)
from tests.apps.conftest import People, make_people
from tests.support.stored_cycles import store_cycle

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.access import ROLES, Verdicts
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.batches import services as batches
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.demonstrations import services as demonstrations
from hekla.apps.demonstrations.stages import GANGS
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.flows import services as flows
from hekla.apps.flows.models import Flow
from hekla.apps.gallery import services as gallery
from hekla.apps.impersonation import services as impersonation
from hekla.apps.invitations import services as invitations
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import FileUpload, FrozenPod, Job, Pod
from hekla.apps.openpai.models import Submission
from hekla.apps.presets import services as presets
from hekla.apps.priorities import services as priorities
from hekla.apps.queues import services as queues
from hekla.apps.schedules import services as schedules
from hekla.apps.sharing.models import Guest, OpenTerminal, Recording
from hekla.apps.signin import services as factors
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import services as tenancy
from hekla.apps.workbench.models import ToolSession
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.domain.schedules import ScheduleSpec
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock
from hekla.pages.access_matrix import declared

MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: sent}
spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""
FLOW = (
    MANIFEST.replace("batch", "flow").replace("Job", "JobTemplate")
    + """\
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: nightly}
spec: {flows: [{name: sent}]}
"""
)
CRON_JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: sent}
spec:
  schedule: "@daily"
  jobTemplate:
    spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: ["true"]}]}}}]}
"""
SWEEP_JOB = {"tasks": [{"name": "main", "command": ["echo", "{{ n }}"]}]}
TERMINAL = UUID(int=7)
SPEC = {"name": "sent", "tasks": [{"name": "main", "command": ["true"]}]}
SIZE = {"tasks": {"main": {"replicas": 2}}}
SIZE_FORM = {"size-revision": "1", "size-replicas-0": "2", "size-least-0": "1"}

HOOK = "https://93.184.216.34/hook"
RULE = {"name": "down", "measure": "node_not_ready", "threshold": 0}
RULE_FORM = {
    **{"name": "down", "measure": "node_not_ready", "threshold": "0", "comparison": "above", "severity": "info"},
    **{"window_minutes": "10", "actions_per_hour": "3"},
}
QUEUE_RULE = AlertRuleSpec.parse(
    {"name": "busy", "measure": "jobs_waiting", "threshold": 9, "actions": [{"kind": "webhook", "url": HOOK}]}
)

JOBCONFIG = {
    "jobName": "sent",
    "image": "i",
    "taskRoles": [{"name": "main", "command": "true", "cpuNumber": 1, "memoryMB": 64}],
}
DATA: dict[str, dict[str, Any]] = {
    "set_language": {"language": "en"},
    "accounts:create_token": {"name": "ci", "days": "3", "scopes": ["read"]},
    "tenancy:switch": {"tenant": "lab"},
    "tenancy:set_retention": {"log_days": 3, "history_days": 9},
    "tenancy:add_member": {"user": "charlie", "role": "member"},
    "tenancy:change_role": {"role": "member"},
    "clusters:cordon": {"cordon": "yes"},
    "clusters:labels": {"label": "fast-disk", "value": "yes"},
    "clusters:drain": {"reason": "a new fan"},
    "api:v1:cluster_metrics_token": {"token": "s3cret"},
    "api:v1:node_drain": {"reason": "a new fan"},
    "api:v1:node_labels": {"set_labels": {"fast-disk": "yes"}},
    "jobs:submit_yaml": {"text": MANIFEST},
    "jobs:command": {"action": "AbortJob"},
    "workbench:tools": {"port": "8080"},
    "workbench:keep": {"hours": "2", "reason": "It waits."},
    "api:v1:job_session_keep": {"hours": 2, "reason": "It waits."},
    "idleness:platform": {"idle_minutes": "60", "grace_minutes": "30"},
    "idleness:tenant": {"idle_minutes": "60", "grace_minutes": "30"},
    "idleness:keep_job": {"hours": "2", "reason": "It waits."},
    "api:v1:job_keep": {"hours": 2, "reason": "It waits."},
    **ROW_DATA,
    "alerts:create": RULE_FORM,
    "alerts:create_for": {**RULE_FORM, "name": "other", "measure": "jobs_waiting"},
    "alerts:edit": {**RULE_FORM, "measure": "jobs_waiting", "webhook_url": HOOK},
    "alerts:enable": {"enable": "no"},
    "alerts:silence": {"hours": "2", "reason": "Maintenance."},
    "api:v1:alert_rules": RULE,
    "api:v1:alert_rule_preview": RULE,
    "api:v1:alert_rule": {"threshold": 3},
    "api:v1:alert_rule_silence": {"hours": 2, "reason": "Maintenance."},
    "api:v1:idle_rule": {"idle_minutes": 60},
    "api:v1:tenant_idle_rule": {"idle_minutes": 60},
    "api:v1:job_forks": {"task": "main"},
    "api:v1:job_guests": {"terminal": str(TERMINAL), "person": "mia", "guest_role": "peer"},
    "api:v1:recording_cuts": {"begin": 0, "end": 5},
    "sharing:cut": {"begin": "0", "end": "5"},
    "sharing:terminal": {"person": "mia", "role": "peer", "hours": "1"},
    "sharing:session": {"person": "mia", "role": "peer", "hours": "1"},
    "api:v1:job_sessions": {"task": "main", "tool": "port", "port": 8081},
    "jobs:frozen": {"do": "open"},
    "api:v1:job_frozen_pods": {"task": "main"},
    "api:v1:job_frozen_pod": {"seconds": 3600},
    "jobs:scale": SIZE_FORM,
    "flows:start": {"text": FLOW},
    "flows:new_template": {"text": MANIFEST},
    "flows:edit_template": {"text": MANIFEST},
    "flows:submit_template": {"name": "again"},
    "batches:file": {"name": "sent", "text": MANIFEST},
    "schedules:create_yaml": {"text": CRON_JOB},
    "schedules:suspend": {"suspend": "yes"},
    "api:v1:departments": {"slug": "arts", "name": "Arts"},
    "api:v1:priority_classes": {"name": "low", "value": 1},
    "api:v1:department": {"name": "Sciences"},
    "api:v1:tokens": {"name": "ci", "days": 3},
    "api:v1:jobs": SPEC,
    "api:v1:job_actions": {"action": "AbortJob"},
    "api:v1:jobs_bulk": {"action": "AbortJob", "uids": ["00000000-0000-4000-8000-000000000000"]},
    "api:v1:job_scale": SIZE,
    "api:v1:flows": {"name": "sent", "steps": [{"name": "a", "job": SPEC}]},
    "api:v1:templates": SPEC,
    "api:v1:batches": {"name": "other", "parameters": {"n": ["1"]}, "job": SWEEP_JOB},
    "api:v1:batch_actions": {"action": "stop"},
    "api:v1:schedules": {"name": "other", "cron": "@daily", "job": SPEC},
    "api:v1:schedule": {"cron": "@weekly"},
    "api:v1:schedule_actions": {"action": "suspend"},
    "api:v1:clusters": {"name": "third", "kind": "simulated", "config": {"nodes": []}},
    "api:v1:federated_queues": {"name": "third", "members": ["labs-own", "far"]},
    "api:v1:queues": {"name": "third", "cluster": "sim"},
    "invitations:list": {"role": "viewer"},
    "invitations:import": {"text": "username\nnew", "do": "import"},
    "api:v1:import_people": {"text": "username\nnew"},
    "queues:set_state": {"state": "closed"},
    "queues:preview": {"weight": "2"},
    "jobs:act_on_all": {"action": "AbortJob"},
    "jobs:arrange": {"columns": ["phase"]},
    "jobs:save_view": {"name": "ours", "tenant": "lab"},
    "api:v1:experiments": {
        "cluster": "sim",
        "starts_at": "2026-01-01T00:00:00Z",
        "ends_at": "2026-01-02T00:00:00Z",
    },
    "api:v1:lab_traces": {"name": "two.txt", "format": "sacct", "content": TRACE},
    "jobs_what_if": {"text": MANIFEST},
    "jobs_what_if_take": {"text": MANIFEST, "change": "main.replicas=1"},
    "job_ease": {"change": "main.min_available=1"},
    "jobs:rename_preset": {"name": "other"},
    "jobs:choose_preset": {"default": "yes"},
    "jobs:priority": {"priority-revision": "1", "priority-priority": "5"},
    "notifications:read": {"newest": "1"},
    "notifications:settings": {"long_wait_minutes": "5"},
    "notifications:job": {"long_wait_minutes": "5"},
    "api:v1:invitations": {"email": "dora@example.org"},
    "api:v1:what_if": SPEC,
    "api:v1:job_priority": {"priority": 5},
    "api:v1:job_notifications": {"moments": [], "channels": ["page"]},
    "api:v1:notifications": {"up_to": 1},
    "api:v1:notification_settings": {"moments": [], "channels": ["page"]},
    "api:v1:saved_templates": {"name": "mine", "spec": SPEC},
    "api:v1:saved_template": {"is_default": True},
    "api:v1:queue_preview": {"weight": 2},
    "api:v1:policy": {"text": "actions: allocate"},
    "api:v1:policy_trial": {"text": "actions: allocate"},
    "jobs_what_if_when": {"text": MANIFEST},
    "gallery:publish": {"title": "T"},
    "gallery:template": {"name": "filled", "version": "1"},
    "api:v1:gallery": {"title": "T", "tenant": "lab", "spec": SPEC},
    "api:v1:gallery_begin": {"name": "filled"},
    "tenancy:quotas": {"whose": "each", "jobs": "9"},
    "api:v1:quotas": {"of": "tenant", "jobs": 9, "gpu_hours": None},
    "tenancy:files": {"files_gib": "9"},
    "api:v1:tenant_files": {"limit_gib": 9},
    "openpai:v1:job": JOBCONFIG,
    "openpai:v1:job_of": JOBCONFIG,
    "openpai:v1:jobs_of": JOBCONFIG,
    "openpai:v1:execution_type_of": {"value": "STOP"},
    "openpai:v2:tag": {"value": "odd"},
}
QUERIES = {
    "api:v1:job_groups": "?by=phase",
    "api:v1:jobs_compare": "?job={job}",
    "runs:compare": "?job={job}",
    "runs:table": "?job={job}",
    "api:v1:search": "?q=lab",
    "api:v1:pod_search": "?q=any",
    "api:v1:pod_file": "?path=out",
    "api:v1:pod_file_preview": "?path=out",
    "api:v1:pod_file_search": "?q=out",
}
DATA |= {f"openpai:{version}:jobs": JOBCONFIG for version in ("v1", "v2")}
DATA |= {f"openpai:{version}:execution_type": {"value": "STOP"} for version in ("v1", "v2")}
_OF_SESSIONS = ("session", "session_url", "session_activity", "session_keep", "session_people")
NEEDS_ENDED_FLOW = {"flows:delete", "api:v1:flow"}  # the flow must have ended
NEEDS_REAL_PODS = {
    "pod_files", "pod_file", "pod_file_preview", "pod_file_search", "pod_archive", "pod_uploads", "upload",
    "job_sessions", "job_session_url", "job_session_keep", "job_guests", "guest_accept", "guest_url",
}  # fmt: skip
"""The cluster is simulated: who may, learns that there are none."""
NEEDS_ENDED_JOB = {"jobs:delete", "api:v1:job", "openpai:v1:job", "openpai:v1:job_of"}  # the job must have ended


@dataclass
class World:
    """One user of every role, and one row of every kind that a route may name."""

    people: People
    roles: dict[str, User | None]
    job: Job
    pod: Pod
    arguments: dict[str, list[Any]]
    signed_in: dict[str, SimpleCookie]
    """The cookies of each role: every role signs in once for all requests."""
    _client: Client = field(default_factory=Client)

    def browser(self, cookies: SimpleCookie) -> Client:
        """The client with these cookies, whatever the last response changed."""
        self._client.cookies = copy(cookies)
        return self._client


def _signed_in(user: User | None) -> SimpleCookie:
    client = Client()
    if user is not None:
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies


def _add_federated_queue(people: People, now: datetime) -> None:
    """A queue of the tenant, a federated queue of it and a queue of another cluster, and a cluster without queues."""
    own = queues.create(cluster=people.cluster, name="labs-own", tenants=[people.lab], actor=PLATFORM, now=now)
    made = [
        clusters.create(name=name, kind="simulated", config={"nodes": []}, actor=PLATFORM, now=now)
        for name in ("spare", "beyond")
    ]
    far = queues.create(cluster=made[1], name="far", actor=PLATFORM, now=now)
    queues.create_federated(name="over", members=[own, far], tenants=[people.lab], actor=PLATFORM, now=now)


def _add_shared(people: People, pod: Pod, now: datetime) -> tuple[ToolSession, Guest, Recording]:
    """A session of Alice's, and a terminal of hers to which Bob is invited, and its recording."""
    tool_session = ToolSession.objects.create(
        slug="a" * 26, pod=pod, owner=people.alice, tool="port", port=8080, created_at=now, ready_at=now
    )
    open_terminal = OpenTerminal.objects.create(uid=TERMINAL, pod=pod, owner=people.alice, opened_at=now)
    guest = Guest.objects.create(
        pod=pod, terminal=open_terminal, inviter=people.alice, person=people.bob, role="peer", created_at=now,
        expires_at=now + timedelta(hours=1), accepted_at=now,
    )  # fmt: skip
    recording = Recording.objects.create(
        pod=pod, terminal=open_terminal, owner=people.alice, people=["alice", "bob"], columns=80, rows=24,
        started_at=now, ended_at=now,
    )  # fmt: skip
    return tool_session, guest, recording


_OF_CYCLES = (("decisions:", "detail"), ("decisions:", "file"), ("api:v1:", "cycle"), ("api:v1:", "cycle_file"))


@unit_of_work()
def make_world() -> World:
    """Create everything, in the transaction of the caller."""
    people, now = make_people(), clock.now()
    member = accounts.create_user(username="mia", password=None, actor=PLATFORM, now=now)
    tenancy.add_member(people.lab, member, "member", actor=PLATFORM, now=now)
    head = accounts.create_user(username="dora", password=None, actor=PLATFORM, now=now)
    department = {"slug": "science", "name": "Science", "heads": [head], "tenants": [people.lab]}
    departments.create(**department, actor=PLATFORM, now=now)
    platform = {
        role: accounts.create_user(username=name, password=None, platform_role=role, actor=PLATFORM, now=now)
        for role, name in (("operator", "otto"), ("manager", "mara"))
    }
    priorities.create(name="high", values={"value": 100}, actor=PLATFORM, now=now)
    clusters.create_environment(name="digits", description="", requirements="", actor=PLATFORM, now=now)
    _add_federated_queue(people, now)
    demonstrations.set_up(GANGS, now=now)
    job = people.submit("of-the-lab")
    common = {"tenant": people.lab, "user": people.alice, "now": now}
    template = flows.create_template(spec=JobSpec.parse({**SPEC, "name": "kept"}), **common)
    flow = flows.start(spec=FlowSpec.parse({"name": "flow", "steps": [{"name": "kept"}]}), **common)
    pod = Pod.objects.create(
        job=job, task="main", index=0, attempt=1, version=1, slot=1, address="127.0.0.1", created_at=now
    )
    upload, _frozen = (
        FileUpload.objects.create(pod=pod, person=people.alice, path="a", size=3, expires_at=now),
        FrozenPod.objects.create(pod=pod, until=now + timedelta(minutes=30), size=1),
    )
    tool_session, guest, recording = _add_shared(people, pod, now)
    Submission.objects.create(job=job, owner=people.alice, name=job.name, config="{protocolVersion: 2}", tags=["odd"])
    accounts.create_token(people.alice, name="hers", lifetime=accounts.MAX_TOKEN_LIFETIME, now=now)
    factors.begin(people.bob, now=now)
    token, bob = ApiToken.objects.get(), people.bob.pk
    link = accounts.issue_link(people.bob, actor=PLATFORM, now=now)
    invitation, secret = invitations.invite(people.lab, role="viewer", by=people.ada, now=now)
    view, cycle = jobs.save_view(name="shared", query="phase=failed", **common), store_cycle(people.cluster).pk
    arguments: dict[str, list[Any]] = {
        **{f"api:v1:{name}": ["spare"] for name in ("cluster", "cluster_try", "cluster_key", "cluster_metrics_token")},
        **{f"federated_queues:{name}": ["over"] for name in ("detail", "edit", "delete")},
        "api:v1:federated_queue": ["over"],
        "api:v1:policy": ["sim"], "api:v1:policy_trial": ["sim"], "api:v1:cycles": ["sim"],
        **{f"{part}{name}": [cycle] for part, name in _OF_CYCLES}, "decisions:job": [cycle, 1],
        "api:v1:cycle_job": [cycle, 1],
        "accounts:end_login_session": [0], "accounts:remove_key": [1], "accounts:end_login_sessions_of": [bob],
        "accounts:start_oidc": ["none"], "accounts:oidc_back": ["none"], "accounts:connect_identity": ["none"],
        "accounts:disconnect_identity": [1], "accounts:reset_factor": [bob], "api:v1:second_factor": ["bob"],
        "invitations:list": ["lab"], "invitations:resend": ["lab", invitation.pk],
        "invitations:revoke": ["lab", invitation.pk], "invitations:sign_up": [secret], "invitations:accept": [secret],
        "api:v1:invitations": ["lab"], "api:v1:invitation": ["lab", invitation.pk],
        "jobs:delete_view": [view.pk], "notifications:job": [job.uid], "reclaim_risk": [job.uid],
        "job_cost": [job.uid],
        "api:v1:queue_shares": ["labs-own"],
        "api:v1:queue_share": ["labs-own"], "queues:share": ["labs-own"],
        "api:v1:queue_preview": ["labs-own"], "queues:preview": ["labs-own"],
        "demonstrations:detail": ["gangs"], "demonstrations:start": ["gangs"],
        "run_example": ["digits"], "help:page": ["jobs"], "accounts:edit": [bob], "accounts:give_link": [bob],
        "accounts:impersonate": [bob],
        "accounts:revoke_token": [token.pk], "accounts:use_link": [link], "tenancy:detail": ["lab"],
        "tenancy:edit": ["lab"], "tenancy:add_member": ["lab"], "tenancy:change_role": ["lab", bob],
        "tenancy:remove_member": ["lab", bob], "clusters:cordon": [Node.objects.get().pk],
        "clusters:labels": [Node.objects.get().pk],
        "clusters:node": [Node.objects.get().pk], "clusters:drain": [Node.objects.get().pk],
        "api:v1:node_labels": [Node.objects.get().cluster.name, Node.objects.get().name],
        "api:v1:node_drain": [Node.objects.get().cluster.name, Node.objects.get().name],
        "priorities:edit": ["high"], "priorities:delete": ["high"], "api:v1:priority_class": ["high"],
        "clusters:edit_environment": ["digits"], "clusters:edit": ["sim"], "clusters:detail": ["sim"],
        "clusters:metrics_token": ["spare"],
        "clusters:remove": ["spare"], "clusters:remove_key": ["sim"], "queues:edit": ["labs-own"],
        "queues:set_state": ["labs-own"], "queues:detail": ["labs-own"], "live:download_log": [pod.pk],
        "usage:job": [job.uid], "usage:pod": [pod.pk], "jobs:pod": [job.uid, pod.pk],
        "live:search_log": [pod.pk], "api:v1:upload": [upload.uid], "live:download_file": [pod.pk],
        "files:preview": [pod.pk], "files:image": [pod.pk], "files:archive": [pod.pk], "files:edit": [pod.pk],
        "jobs:terminal": [job.uid, pod.pk], "workbench:tools": [job.uid, pod.pk],
        "jobs:frozen": [job.uid, pod.pk], "api:v1:job_frozen_pod": [job.uid, "main", 0],
        **{f"api:v1:job_{name}": [job.uid, tool_session.uid] for name in _OF_SESSIONS},
        **{f"workbench:{name}": [tool_session.uid] for name in ("session", "activity", "people")},
        **{f"workbench:{name}": [tool_session.uid] for name in ("keep", "enter", "end")},
        "sharing:mine": [], "sharing:terminal": [TERMINAL], "sharing:session": [tool_session.uid],
        "sharing:of_job": [job.uid], "sharing:fork": [job.uid, pod.pk], "api:v1:guests": [],
        **{f"sharing:{name}": [guest.uid] for name in ("accept", "decline", "enter", "end", "revoke")},
        **{f"sharing:{name}": [recording.uid] for name in ("recording", "cast", "cut", "delete")},
        **{f"api:v1:guest{name}": [guest.uid] for name in ("", "_accept", "_url")},
        **{f"api:v1:recording{name}": [recording.uid] for name in ("", "_cast", "_cuts")},
        "live:evidence": [pod.pk], "api:v1:pod_attempts": [job.uid, "main", 0],
        "api:v1:pod_usage": [job.uid, "main", 0],
        **{f"api:v1:pod_{name}": [job.uid, "main", 0] for name in ("search", "files", "file")},
        **{f"api:v1:pod_{name}": [job.uid, "main", 0] for name in ("file_preview", "uploads")},
        **{f"api:v1:pod_{name}": [job.uid, "main", 0] for name in ("file_search", "archive")},
        "departments:detail": ["science"], "departments:edit": ["science"], "api:v1:department": ["science"],
        "tenancy:quotas": ["lab"], "api:v1:quotas": ["lab"], "tenancy:files": ["lab"], "api:v1:tenant_files": ["lab"],
        "operations:stalled_of": [job.uid], "operations:remind": [job.uid], "api:v1:job_reminders": [job.uid],
        "idleness:job": [job.uid], "idleness:keep_job": [job.uid],
        "idleness:tenant": ["lab"], "api:v1:tenant_idle_rule": ["lab"],
        "tenancy:set_retention": ["lab"], "api:v1:retention": ["lab"], "api:v1:token": [token.pk],
        "api:v1:queue": ["labs-own"], "api:v1:pod_log": [job.uid, "main", 0],
    }  # fmt: skip
    flow_routes = {name for name in declared() if name.startswith(("flows:", "api:v1:flow", "api:v1:template"))}
    for name in flow_routes - _WITHOUT_FLOW:
        arguments[name] = [template.uid if "template" in name else flow.uid]
    arguments |= {
        **openpai_arguments(people.alice.username, job.name),
        **experiment_arguments(people.cluster, platform["operator"], now),
        **row_arguments(people, QUEUE_RULE, now),
    }
    job_routes = {name for name in declared() if name.startswith(("jobs:", "job_", "live:", "api:v1:job"))}
    arguments |= {name: [job.uid] for name in job_routes - _WITHOUT_JOB - set(arguments)}
    roles = {
        "anonymous": None, "stranger": people.charlie, "viewer": people.bob, "member": member,
        "tenant_admin": people.alice, "department_admin": head, **platform, "platform_admin": people.ada,
    }  # fmt: skip
    spec = ScheduleSpec.parse({"name": "nightly", "cron": "@daily", "job": SPEC})
    schedule = schedules.create(spec=spec, tenant=people.lab, user=people.alice, now=now)
    arguments |= {name: [schedule.uid] for name in declared() if name.startswith(("schedules:", "api:v1:schedule"))}
    arguments |= {name: [] for name in _WITHOUT_SCHEDULE}
    sweep = SweepSpec.parse({"name": "many", "parameters": {"n": ["1"]}, "job": SWEEP_JOB})
    batch = batches.submit_sweep(spec=sweep, tenant=people.lab, user=people.alice, now=now)
    arguments |= {name: [batch.uid] for name in declared() if name.startswith(("batches:", "api:v1:batch"))}
    arguments |= {name: [] for name in _WITHOUT_BATCH}
    preset_spec = JobSpec.parse({**SPEC, "name": "kept"})
    preset = presets.save(name="usual", spec=preset_spec, user=people.alice, tenant=people.lab, now=now)
    arguments |= {name: [preset.uid] for name in declared() if "preset" in name or "saved_template" in name}
    arguments |= {name: [] for name in ("jobs:presets", "jobs:former_presets", "api:v1:saved_templates")}
    card_fields = {"title": "Usual", "description": "", "spec": preset_spec, "fields": [], "tenant": people.lab}
    card = gallery.publish(**card_fields, user=people.alice, now=now)
    arguments |= {name: [card.uid] for name in declared() if "gallery" in name}
    arguments |= {name: [] for name in ("gallery:list", "gallery:publish", "api:v1:gallery")}
    signed_in = {role: _signed_in(user) for role, user in roles.items()}
    return World(people, roles, job, pod, arguments, signed_in)


_WITHOUT_FLOW = {
    "flows:list",
    "flows:start",
    "flows:templates",
    "flows:new_template",
    "api:v1:flows",
    "api:v1:templates",
}


_WITHOUT_BATCH = {"batches:list", "batches:sweep", "batches:file", "api:v1:batches"}
_WITHOUT_SCHEDULE = {"schedules:list", "schedules:create", "schedules:create_yaml", "api:v1:schedules"}
_WITHOUT_JOB = {"jobs:list", "jobs:submit", "jobs:submit_yaml", "api:v1:jobs", "jobs:list_file", "jobs:act_on_all"}
_WITHOUT_JOB |= {"api:v1:jobs_bulk", "api:v1:job_groups", "api:v1:jobs_compare"}
_WITHOUT_JOB |= {"jobs:compare", "jobs:arrange", "jobs:save_view"}


def at_the_limits(verdicts: Verdicts, *, every: bool) -> list[str]:
    """All roles that are not admitted, and of those that are admitted the first and the last.

    Without `every`: of each refusal the first and the last role, and the first that is admitted: it has the least.
    """
    between = set[str]()
    for verdict_of_some in {"ok"} if every else {*verdicts.values()}:
        alike = [role for role in ROLES if verdicts[role] == verdict_of_some]
        between.update(alike[1:] if verdict_of_some == "ok" and not every else alike[1:-1])
    return [role for role in ROLES if role not in between]


def verdict_for(world: World, name: str, method: str, role: str) -> str:
    """The verdict for this role. Changes are rolled back."""
    with transaction.atomic():
        answer = respond(world, name, method, world.browser(world.signed_in[role]))
        transaction.set_rollback(True)
    return verdict(answer)


def impersonate(user: User, *, by: User) -> Client:
    """A browser in which an admin impersonates a user."""
    client = Client()
    client.force_login(by, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session["impersonation"] = impersonation.begin(user, reason="To see it.", by=by, now=clock.now()).pk
    session.save()
    return client


def respond(world: World, name: str, method: str, client: Client, **headers: str) -> HttpResponse:
    """The response of a route to this client. A flow or job that must have ended for it ends before."""
    if name in NEEDS_ENDED_FLOW:
        Flow.objects.update(ended_at=clock.now())
    if name in NEEDS_ENDED_JOB:
        Job.objects.filter(pk=world.job.pk).update(phase="completed")
    send: Callable[..., HttpResponse] = getattr(client, method)
    data = {} if method == "get" else {"data": DATA.get(name, {})}
    address = reverse(name, args=world.arguments.get(name, [])) + QUERIES.get(name, "").replace(
        "{job}", str(world.job.uid)
    )
    return send(address, **data, **_kind_of(name, method), headers=headers)


def _kind_of(name: str, method: str) -> dict[str, str]:
    if name == "api:v1:upload":
        return {"content_type": "application/offset+octet-stream"}
    return {"content_type": "application/json"} if name.startswith(("api:", "openpai:")) and method != "get" else {}


def verdict(answer: HttpResponse) -> str:
    """A response in one word."""
    if answer.status_code == 401 or answer.headers.get("Location", "").startswith(reverse("accounts:sign_in") + "?"):
        return "sign in"
    if answer.status_code == 409 and answer.resolver_match.url_name in NEEDS_REAL_PODS:
        return "ok"
    by_status = {403: "refused", 404: "absent", 405: "no such method", 400: "wrong", 422: "wrong"}
    return by_status.get(answer.status_code, "ok" if answer.status_code < 400 else str(answer.status_code))
