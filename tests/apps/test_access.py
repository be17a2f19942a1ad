"""Who may open or do what: every route of the URL configuration, for everybody. An undeclared route fails."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from tests.apps.conftest import People

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.batches import services as batches
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.demonstrations import services as demonstrations
from hekla.apps.demonstrations.stages import GANGS
from hekla.apps.flows import services as flows
from hekla.apps.flows.models import Flow
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.openpai.models import Submission
from hekla.apps.outbox.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.apps.schedules import services as schedules
from hekla.apps.tenancy import services as tenancy
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.domain.schedules import ScheduleSpec
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock
from hekla.project import help_pages

ROLES = ("anonymous", "stranger", "viewer", "member", "tenant_admin", "operator", "platform_admin")
Verdicts = dict[str, str]


def who(**verdicts: str) -> Verdicts:
    """`ok`, `refused`, `absent` or `sign in` for every role; `rest` for those that are not named."""
    rest = verdicts.pop("rest")
    return dict.fromkeys(ROLES, rest) | {"anonymous": "sign in"} | verdicts


ANYBODY = who(rest="ok", anonymous="ok")
SIGNED_IN = who(rest="ok")
TENANT = who(rest="ok", stranger="absent")
ACTS_ON_THE_JOB = who(rest="ok", stranger="absent", viewer="refused", member="refused")
STARTS_ITS_RUNS = ACTS_ON_THE_JOB | {"operator": "refused"}
MANAGES_MEMBERS = who(rest="refused", stranger="absent", tenant_admin="ok", platform_admin="ok")
OPERATORS = who(rest="refused", operator="ok", platform_admin="ok")
PLATFORM_ADMINS = who(rest="refused", platform_admin="ok")
SUBMITS = who(rest="ok", viewer="refused", operator="refused", platform_admin="refused")
SENDS = SUBMITS | {"operator": "wrong", "platform_admin": "wrong"}  # they are told to name a tenant
ALREADY_IN = who(rest="ok", anonymous="no such method")  # is sent home, whatever was asked
OWN_TOKEN = who(rest="absent", tenant_admin="ok")
NOTHING = who(rest="absent")
GUESSES = who(rest="wrong", anonymous="wrong")
ADDS_AS_ALICE = who(rest="refused", tenant_admin="409")  # who has a job of that name


@dataclass(frozen=True)
class Declared:
    """What a route answers to whom; `data` is posted."""

    get: Verdicts | None = None
    post: Verdicts | None = None
    data: dict[str, Any] | None = None
    put: Verdicts | None = None
    patch: Verdicts | None = None
    delete: Verdicts | None = None


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
SWEPT = {"tasks": [{"name": "main", "command": ["echo", "{{ n }}"]}]}
SPEC = {"name": "sent", "tasks": [{"name": "main", "command": ["true"]}]}
SIZE = {"tasks": {"main": {"replicas": 2}}}
SIZE_FORM = {"size-revision": "1", "size-replicas-0": "2", "size-least-0": "1"}

ROUTES: dict[str, Declared] = {
    "home": Declared(SIGNED_IN),
    "health": Declared(ANYBODY),
    "favicon": Declared(ANYBODY),
    "design": Declared(SIGNED_IN),
    "run_example": Declared(post=SUBMITS),
    "set_language": Declared(post=ANYBODY, data={"language": "en"}),
    "help:index": Declared(SIGNED_IN),
    "help:page": Declared(SIGNED_IN),
    "accounts:list": Declared(PLATFORM_ADMINS),
    "accounts:create": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:edit": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:give_link": Declared(post=PLATFORM_ADMINS),
    "accounts:profile": Declared(SIGNED_IN, SIGNED_IN),
    "accounts:create_token": Declared(post=SIGNED_IN, data={"name": "ci", "days": "3"}),
    "accounts:revoke_token": Declared(post=OWN_TOKEN),
    "accounts:sign_in": Declared(ANYBODY, ANYBODY, put=ANYBODY, patch=ALREADY_IN, delete=ALREADY_IN),
    "accounts:sign_out": Declared(post=SIGNED_IN),
    "accounts:use_link": Declared(ANYBODY, ANYBODY),
    "tenancy:list": Declared(SIGNED_IN),
    "tenancy:create": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "tenancy:switch": Declared(post=TENANT, data={"tenant": "lab"}),
    "tenancy:detail": Declared(TENANT),
    "tenancy:edit": Declared(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "tenancy:set_retention": Declared(post=MANAGES_MEMBERS, data={"log_days": 3, "history_days": 9}),
    "tenancy:add_member": Declared(post=MANAGES_MEMBERS, data={"user": "charlie", "role": "member"}),
    "tenancy:change_role": Declared(post=MANAGES_MEMBERS, data={"role": "member"}),
    "tenancy:remove_member": Declared(post=MANAGES_MEMBERS),
    "clusters:nodes": Declared(SIGNED_IN),
    "clusters:policy": Declared(OPERATORS, OPERATORS),
    "clusters:list": Declared(OPERATORS),
    "clusters:create": Declared(OPERATORS, OPERATORS),
    "clusters:cordon": Declared(post=OPERATORS, data={"cordon": "yes"}),
    "clusters:environments": Declared(SIGNED_IN),
    "clusters:create_environment": Declared(OPERATORS, OPERATORS),
    "clusters:edit_environment": Declared(OPERATORS, OPERATORS),
    "clusters:edit": Declared(OPERATORS, OPERATORS),
    "queues:list": Declared(SIGNED_IN),
    "queues:create": Declared(OPERATORS, OPERATORS),
    "queues:edit": Declared(OPERATORS, OPERATORS),
    "queues:set_open": Declared(post=OPERATORS, data={"open": "no"}),
    "queues:detail": Declared(TENANT),
    "jobs:list": Declared(SIGNED_IN),
    "jobs:submit": Declared(SIGNED_IN, SIGNED_IN),
    "jobs:submit_yaml": Declared(SIGNED_IN, SIGNED_IN, {"text": MANIFEST}),
    "jobs:detail": Declared(TENANT),
    "jobs:command": Declared(post=ACTS_ON_THE_JOB, data={"action": "AbortJob"}),
    "jobs:scale": Declared(post=ACTS_ON_THE_JOB, data=SIZE_FORM),
    "jobs:delete": Declared(post=ACTS_ON_THE_JOB),
    "jobs:export": Declared(TENANT),
    "jobs:manifest": Declared(TENANT),
    "flows:list": Declared(SIGNED_IN),
    "flows:start": Declared(SIGNED_IN, SIGNED_IN, {"text": FLOW}),
    "flows:detail": Declared(TENANT),
    "flows:stop": Declared(post=ACTS_ON_THE_JOB),
    "flows:delete": Declared(post=ACTS_ON_THE_JOB),
    "flows:manifest": Declared(TENANT),
    "flows:templates": Declared(SIGNED_IN),
    "flows:new_template": Declared(SIGNED_IN, SIGNED_IN, {"text": MANIFEST}),
    "flows:template": Declared(TENANT),
    "flows:edit_template": Declared(TENANT, TENANT, {"text": MANIFEST}),
    "flows:delete_template": Declared(post=ACTS_ON_THE_JOB),
    "flows:submit_template": Declared(post=TENANT, data={"name": "again"}),
    "flows:template_manifest": Declared(TENANT),
    "batches:list": Declared(SIGNED_IN),
    "batches:sweep": Declared(SIGNED_IN, SIGNED_IN),
    "batches:file": Declared(SIGNED_IN, SIGNED_IN, {"name": "sent", "text": MANIFEST}),
    "batches:detail": Declared(TENANT),
    "batches:stop": Declared(post=ACTS_ON_THE_JOB),
    "batches:retry": Declared(post=STARTS_ITS_RUNS),
    "schedules:list": Declared(SIGNED_IN),
    "schedules:create": Declared(SIGNED_IN, SIGNED_IN),
    "schedules:create_yaml": Declared(SIGNED_IN, SIGNED_IN, {"text": CRON_JOB}),
    "schedules:detail": Declared(TENANT),
    "schedules:edit": Declared(STARTS_ITS_RUNS, STARTS_ITS_RUNS),
    "schedules:suspend": Declared(post=ACTS_ON_THE_JOB, data={"suspend": "yes"}),
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
    "api:v1:tokens": Declared(SIGNED_IN, SIGNED_IN, {"name": "ci", "days": 3}),
    "api:v1:token": Declared(delete=OWN_TOKEN),
    "api:v1:tenants": Declared(SIGNED_IN),
    "api:v1:retention": Declared(TENANT, patch=MANAGES_MEMBERS),
    "api:v1:jobs": Declared(SIGNED_IN, SENDS, SPEC),
    "api:v1:job": Declared(TENANT, delete=ACTS_ON_THE_JOB),
    "api:v1:job_actions": Declared(post=ACTS_ON_THE_JOB, data={"action": "AbortJob"}),
    "api:v1:job_scale": Declared(patch=ACTS_ON_THE_JOB, data=SIZE),
    "api:v1:job_events": Declared(TENANT),
    "api:v1:pod_log": Declared(TENANT),
    "api:v1:flows": Declared(SIGNED_IN, SENDS, {"name": "sent", "steps": [{"name": "a", "job": SPEC}]}),
    "api:v1:flow": Declared(TENANT, delete=ACTS_ON_THE_JOB),
    "api:v1:flow_stop": Declared(post=ACTS_ON_THE_JOB),
    "api:v1:templates": Declared(SIGNED_IN, SENDS, SPEC),
    "api:v1:template": Declared(TENANT, delete=ACTS_ON_THE_JOB),
    "api:v1:batches": Declared(SIGNED_IN, SENDS, {"name": "other", "parameters": {"n": ["1"]}, "job": SWEPT}),
    "api:v1:batch": Declared(TENANT),
    "api:v1:batch_actions": Declared(post=ACTS_ON_THE_JOB, data={"action": "stop"}),
    "api:v1:schedules": Declared(SIGNED_IN, SENDS, {"name": "other", "cron": "@daily", "job": SPEC}),
    "api:v1:schedule": Declared(TENANT, patch=STARTS_ITS_RUNS, delete=ACTS_ON_THE_JOB, data={"cron": "@weekly"}),
    "api:v1:schedule_actions": Declared(post=ACTS_ON_THE_JOB, data={"action": "suspend"}),
    "api:v1:queues": Declared(SIGNED_IN, OPERATORS, {"name": "third", "cluster": "sim"}),
    "api:v1:queue": Declared(TENANT, patch=who(rest="refused", stranger="absent", operator="ok", platform_admin="ok")),
    "api:v1:clusters": Declared(SIGNED_IN),
    "api:v1:nodes": Declared(SIGNED_IN),
    "api:v1:environments": Declared(SIGNED_IN),
    "api:nothing": Declared(NOTHING),
}
OVER = {"flows:delete", "api:v1:flow"}  # whose flow must be over
JOBCONFIG = {
    "jobName": "sent",
    "image": "i",
    "taskRoles": [{"name": "main", "command": "true", "cpuNumber": 1, "memoryMB": 64}],
}
OPENPAI: dict[str, Declared] = {
    "root": Declared(ANYBODY),
    "info": Declared(ANYBODY),
    "authn_info": Declared(ANYBODY),
    "login": Declared(post=GUESSES),
    "logout": Declared(delete=who(rest="wrong")),
    "token": Declared(post=GUESSES),
    "jobs": Declared(SIGNED_IN, SUBMITS, JOBCONFIG),
    "job": Declared(TENANT),
    "config": Declared(TENANT),
    "ssh": Declared(NOTHING),
    "execution_type": Declared(put=ACTS_ON_THE_JOB, data={"value": "STOP"}),
    "virtual_clusters": Declared(SIGNED_IN),
    "virtual_cluster": Declared(TENANT),
}
ROUTES |= {f"openpai:{version}:{name}": route for version in ("v1", "v2") for name, route in OPENPAI.items()}
ROUTES |= {
    "openpai:root_1": Declared(ANYBODY),
    "openpai:root_2": Declared(ANYBODY),
    "openpai:nothing": Declared(NOTHING),
    "openpai:v1:job": Declared(TENANT, data=JOBCONFIG, put=ADDS_AS_ALICE, delete=ACTS_ON_THE_JOB),
    "openpai:v1:job_of": Declared(TENANT, data=JOBCONFIG, put=ADDS_AS_ALICE, delete=ACTS_ON_THE_JOB),
    "openpai:v1:jobs_of": Declared(SIGNED_IN, who(rest="refused", tenant_admin="ok"), JOBCONFIG),
    "openpai:v1:config_of": Declared(TENANT),
    "openpai:v1:ssh_of": Declared(NOTHING),
    "openpai:v1:execution_type_of": Declared(put=ACTS_ON_THE_JOB, data={"value": "STOP"}),
    "openpai:v2:attempt": Declared(TENANT),
    "openpai:v2:task": Declared(TENANT),
    "openpai:v2:logs": Declared(TENANT),
    "openpai:v2:log": Declared(TENANT),
    "openpai:v2:job_attempts": Declared(TENANT),
    "openpai:v2:job_attempt": Declared(TENANT),
    "openpai:v2:attempts_health": Declared(TENANT),
    "openpai:v2:events": Declared(TENANT),
    "openpai:v2:tag": Declared(put=ACTS_ON_THE_JOB, delete=ACTS_ON_THE_JOB, data={"value": "odd"}),
    "openpai:v2:tokens": Declared(post=GUESSES),
    "openpai:v2:token_check": Declared(SIGNED_IN),
    "openpai:v2:users": Declared(SIGNED_IN),
    "openpai:v2:users_": Declared(SIGNED_IN),
    "openpai:v2:user": Declared(who(rest="absent", tenant_admin="ok", platform_admin="ok")),
    "openpai:v2:user_": Declared(who(rest="absent", tenant_admin="ok", platform_admin="ok")),
    "openpai:v2:storages": Declared(SIGNED_IN),
}
FINISHED = {"jobs:delete", "api:v1:job", "openpai:v1:job", "openpai:v1:job_of"}  # whose job must be over


def _names(patterns: list[URLPattern | URLResolver], namespace: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _names(pattern.url_patterns, inner)
        else:
            yield f"{namespace}{pattern.name}"


def test_every_route_is_declared() -> None:
    assert set(_names(get_resolver().url_patterns)) == set(ROUTES)


@dataclass
class World:
    """Somebody of every role, and one of everything that a route may be about."""

    people: People
    roles: dict[str, User | None]
    job: Job
    pod: Pod
    arguments: dict[str, list[Any]]


@pytest.fixture
def world(people: People, monkeypatch: pytest.MonkeyPatch, settings, tmp_path) -> World:
    settings.API_SIGN_INS_A_MINUTE = 10_000
    now = clock.now()
    (tmp_path / "jobs.md").write_text("# Jobs\n")
    monkeypatch.setattr(help_pages, "FOLDER", tmp_path)
    member = accounts.create_user(username="mia", password=None, actor=PLATFORM, now=now)
    tenancy.add_member(people.lab, member, "member", actor=PLATFORM, now=now)
    operator = accounts.create_user(username="otto", password=None, platform_role="operator", actor=PLATFORM, now=now)
    clusters.create_environment(name="digits", description="", requirements="", actor=PLATFORM, now=now)
    queues.create(cluster=people.cluster, name="labs-own", tenants=[people.lab], actor=PLATFORM, now=now)
    demonstrations.set_up(GANGS, now=now)
    job = people.submit("of-the-lab")
    asked = {"tenant": people.lab, "user": people.alice, "now": now}
    template = flows.create_template(spec=JobSpec.parse({**SPEC, "name": "kept"}), **asked)
    flow = flows.start(spec=FlowSpec.parse({"name": "flow", "steps": [{"name": "kept"}]}), **asked)
    pod = Pod.objects.create(
        job=job, task="main", index=0, attempt=1, version=1, slot=1, address="127.0.0.1", created_at=now
    )
    Submission.objects.create(job=job, owner=people.alice, name=job.name, config="{protocolVersion: 2}", tags=["odd"])
    accounts.create_token(people.alice, name="hers", lifetime=accounts.MAX_TOKEN_LIFETIME, now=now)
    token, bob = ApiToken.objects.get(), people.bob.pk
    link = accounts.issue_link(people.bob, now=now)
    arguments: dict[str, list[Any]] = {
        "demonstrations:detail": ["gangs"], "demonstrations:start": ["gangs"],
        "run_example": ["digits"], "help:page": ["jobs"], "accounts:edit": [bob], "accounts:give_link": [bob],
        "accounts:revoke_token": [token.pk], "accounts:use_link": [link], "tenancy:detail": ["lab"],
        "tenancy:edit": ["lab"], "tenancy:add_member": ["lab"], "tenancy:change_role": ["lab", bob],
        "tenancy:remove_member": ["lab", bob], "clusters:cordon": [Node.objects.get().pk],
        "clusters:edit_environment": ["digits"], "clusters:edit": ["sim"], "queues:edit": ["labs-own"],
        "queues:set_open": ["labs-own"], "queues:detail": ["labs-own"], "live:download_log": [pod.pk],
        "usage:job": [job.uid], "usage:pod": [pod.pk], "jobs:pod": [job.uid, pod.pk], "live:search_log": [pod.pk],
        "live:evidence": [pod.pk], "api:v1:pod_attempts": [job.uid, "main", 0], "api:v1:pod_use": [job.uid, "main", 0],
        "api:v1:pod_search": [job.uid, "main", 0],
        "tenancy:set_retention": ["lab"], "api:v1:retention": ["lab"], "api:v1:token": [token.pk],
        "api:v1:queue": ["labs-own"], "api:v1:pod_log": [job.uid, "main", 0],
    }  # fmt: skip
    about_flows = {name for name in ROUTES if name.startswith(("flows:", "api:v1:flow", "api:v1:template"))}
    for name in about_flows - _WITHOUT_FLOW:
        arguments[name] = [template.uid if "template" in name else flow.uid]
    arguments |= _of_openpai(people.alice.username, job.name)
    about_the_job = {name for name in ROUTES if name.startswith(("jobs:", "live:", "api:v1:job"))}
    arguments |= {name: [job.uid] for name in about_the_job - _WITHOUT_JOB - set(arguments)}
    roles = {
        "anonymous": None, "stranger": people.charlie, "viewer": people.bob, "member": member,
        "tenant_admin": people.alice, "operator": operator, "platform_admin": people.ada,
    }  # fmt: skip
    spec = ScheduleSpec.parse({"name": "nightly", "cron": "@daily", "job": SPEC})
    schedule = schedules.create(spec=spec, tenant=people.lab, user=people.alice, now=now)
    arguments |= {name: [schedule.uid] for name in ROUTES if name.startswith(("schedules:", "api:v1:schedule"))}
    arguments |= {name: [] for name in _WITHOUT_SCHEDULE}
    sweep = SweepSpec.parse({"name": "many", "parameters": {"n": ["1"]}, "job": SWEPT})
    batch = batches.submit_sweep(spec=sweep, tenant=people.lab, user=people.alice, now=now)
    arguments |= {name: [batch.uid] for name in ROUTES if name.startswith(("batches:", "api:v1:batch"))}
    arguments |= {name: [] for name in _WITHOUT_BATCH}
    return World(people, roles, job, pod, arguments)


_WITHOUT_FLOW = {
    "flows:list",
    "flows:start",
    "flows:templates",
    "flows:new_template",
    "api:v1:flows",
    "api:v1:templates",
}


def _of_openpai(owner: str, name: str) -> dict[str, list[Any]]:
    """The arguments of OpenPAI's addresses."""
    job = f"{owner}~{name}"
    about = ("job", "config", "ssh", "execution_type", "job_attempts", "attempts_health", "events", "tag")
    return {
        **{f"openpai:{version}:{route}": [job] for version in ("v1", "v2") for route in about},
        **{f"openpai:v1:{route}_of": [owner, name] for route in about},
        **{f"openpai:{version}:virtual_cluster": ["labs-own"] for version in ("v1", "v2")},
        **{f"openpai:v2:{route}": [job, 0] for route in ("attempt", "job_attempt")},
        **{f"openpai:v2:{route}": [owner] for route in ("user", "user_")},
        **{f"openpai:v2:{route}": [job, 0, "main", 0, 0] for route in ("logs", "log")},
        "openpai:v2:task": [job, 0, "main", 0],
        "openpai:v1:jobs_of": [owner],
    }


_WITHOUT_BATCH = {"batches:list", "batches:sweep", "batches:file", "api:v1:batches"}
_WITHOUT_SCHEDULE = {"schedules:list", "schedules:create", "schedules:create_yaml", "api:v1:schedules"}
_WITHOUT_JOB = {"jobs:list", "jobs:submit", "jobs:submit_yaml", "api:v1:jobs"}


@pytest.mark.parametrize("name", ROUTES)
def test_it_opens_for_whom_it_should(world: World, name: str) -> None:
    for method in ("get", "post", "put", "patch", "delete"):
        declared: Verdicts | None = getattr(ROUTES[name], method)
        if declared is None:
            assert _ask(world, name, method, "platform_admin") != "ok", method
        else:
            assert {role: _ask(world, name, method, role) for role in ROLES} == declared, method


def _ask(world: World, name: str, method: str, role: str) -> str:
    """What this person is answered; whatever they changed is undone."""
    address, client, user = reverse(name, args=world.arguments.get(name, [])), Client(), world.roles[role]
    with transaction.atomic():
        if user is not None:
            client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        if name in OVER:
            Flow.objects.update(ended_at=clock.now())
        if name in FINISHED:
            Job.objects.filter(pk=world.job.pk).update(phase="completed")
        send: Callable[..., HttpResponse] = getattr(client, method)
        data = {} if method == "get" else {"data": ROUTES[name].data or {}}
        answer = send(address, **data, **_kind_of(name, method))
        transaction.set_rollback(True)
    return _verdict(answer)


def _kind_of(name: str, method: str) -> dict[str, str]:
    return {"content_type": "application/json"} if name.startswith(("api:", "openpai:")) and method != "get" else {}


def _verdict(answer: HttpResponse) -> str:
    if answer.status_code == 401 or answer.headers.get("Location", "").startswith(reverse("accounts:sign_in") + "?"):
        return "sign in"
    by_status = {403: "refused", 404: "absent", 405: "no such method", 400: "wrong", 422: "wrong"}
    return by_status.get(answer.status_code, "ok" if answer.status_code < 400 else str(answer.status_code))


def test_a_viewer_submits_nothing(world: World) -> None:
    client = Client()
    client.force_login(world.people.bob, backend="django.contrib.auth.backends.ModelBackend")
    page = client.post(reverse("jobs:submit_yaml"), {"text": MANIFEST})
    assert "but not submit to it" in page.content.decode()
    assert not Job.objects.filter(name="sent").exists()
    assert Job.objects.filter(name="sent").count() == 0


def test_members_act_on_their_own_jobs(world: World) -> None:
    Job.objects.filter(pk=world.job.pk).update(owner=world.roles["member"])
    assert _ask(world, "jobs:command", "post", "member") == "ok"
