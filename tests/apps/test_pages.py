"""Every page opens for its readers, shows the current state, and keeps the input after an error."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.apps.queues import services as queues
from hekla.domain import events
from hekla.domain.frameworks import load_frameworks
from hekla.domain.resources import Resources
from hekla.engine.decisions import Cause, Exclusion, PendingReason, VictimCounts
from hekla.lib import clock
from hekla.scheduling.reasons import as_data

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
MOST_QUERIES = {"jobs:list": 12, "home": 12, "queues:list": 12, "clusters:nodes": 12}

PLAIN = [
    "home", "design", "jobs:list", "jobs:submit", "jobs:submit_yaml", "queues:list", "clusters:nodes", "tenancy:list",
    "clusters:environments", "accounts:profile", "help:index", "demonstrations:list", "flows:list", "flows:start",
    "flows:templates", "flows:new_template", "jobs:presets",
]  # fmt: skip
FOR_ADMINS = [
    "accounts:list", "accounts:create", "clusters:list", "clusters:create", "clusters:create_environment",
    "clusters:policy", "queues:create", "tenancy:create",
]  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_a_member_opens_the_page(people: People, as_: As, name: str) -> None:
    people.submit()
    assert as_(people.alice).get(reverse(name)).status_code == 200


@pytest.mark.parametrize("name", [*PLAIN, *FOR_ADMINS])
def test_an_admin_opens_the_page(people: People, as_: As, name: str) -> None:
    people.submit()
    assert as_(people.ada).get(reverse(name)).status_code == 200


@pytest.mark.parametrize("name", FOR_ADMINS)
def test_member_is_refused_with_a_reason(people: People, as_: As, name: str) -> None:
    answer = as_(people.alice).get(reverse(name))
    assert answer.status_code == 403
    assert b"platform admin" in answer.content or b"platform" in answer.content


def rail(client: Client, name: str, language: str = "en") -> str:
    html = client.get(reverse(name), headers={"accept-language": language}).content.decode()
    return html[html.index('<nav class="rail-nav"') : html.index("</nav>")]


def test_rail_is_not_shared_between_users(people: People, as_: As) -> None:
    for _ in range(2):
        assert f'href="{reverse("accounts:list")}"' in rail(as_(people.ada), "home")
        assert f'href="{reverse("accounts:list")}"' not in rail(as_(people.alice), "home")
        assert "作业" in rail(as_(people.alice), "home", "zh-hans")
        assert "作业" not in rail(as_(people.bob), "home")
        assert "Alice" in rail(as_(people.alice), "jobs:list")
        assert "Alice" not in rail(as_(people.bob), "jobs:list")


def test_rail_marks_the_current_page(people: People, as_: As) -> None:
    for name in ("home", "jobs:list", "queues:list", "jobs:list"):
        (here,) = re.findall(r'href="([^"]+)"[^>]*aria-current="page"', rail(as_(people.alice), name))
        assert here == reverse(name)


@pytest.mark.parametrize("name", [*PLAIN, *FOR_ADMINS])
def test_anonymous_users_are_redirected_to_sign_in(db: None, name: str) -> None:
    answer = Client().get(reverse(name))
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("accounts:sign_in"))


def test_job_is_visible_to_its_tenant_only(people: People, as_: As) -> None:
    job = people.submit("of-the-lab")
    for name in ("jobs:detail", "jobs:manifest", "live:results"):
        address = reverse(name, args=[job.uid])
        assert as_(people.bob).get(address).status_code == 200
        assert as_(people.charlie).get(address).status_code == 404
    assert b"of-the-lab" in as_(people.bob).get(reverse("jobs:list")).content
    assert b"of-the-lab" not in as_(people.charlie).get(reverse("jobs:list")).content


def test_only_owner_and_admins_act_on_a_job(people: People, as_: As) -> None:
    job = people.submit()
    address = reverse("jobs:command", args=[job.uid])
    assert as_(people.charlie).post(address, {"action": "AbortJob"}).status_code == 404
    assert as_(people.bob).post(address, {"action": "AbortJob"}).status_code == 403
    assert as_(people.alice).post(address, {"action": "AbortJob"}).status_code == 302
    job.refresh_from_db()
    assert job.phase == "aborted"


def form(**changes: str) -> dict[str, str]:
    return {
        "name": "mine", "queue": "default", "framework": "", "priority": "0", "max_retry": "3",
        "tasks-TOTAL_FORMS": "1", "tasks-INITIAL_FORMS": "0", "tasks-0-name": "main", "tasks-0-replicas": "1",
        "files-TOTAL_FORMS": "0", "files-INITIAL_FORMS": "0",
        "tasks-0-command": "python -c 'print(1)'", "tasks-0-cpu": "1", "tasks-0-memory": "64Mi",
    } | changes  # fmt: skip


def test_the_form_submits_a_job(people: People, as_: As) -> None:
    answer = as_(people.alice).post(reverse("jobs:submit"), form())
    job = Job.objects.get()
    assert answer["Location"] == reverse("jobs:detail", args=[job.uid])
    assert job.spec["tasks"][0]["command"] == ["python", "-c", "print(1)"]


SECOND_TASK = {"tasks-TOTAL_FORMS": "2", "tasks-1-name": "train", "tasks-1-replicas": "1", "tasks-1-command": "true"}


def test_form_sets_task_dependencies_and_a_clone_keeps_them(people: People, as_: As) -> None:
    alice = as_(people.alice)
    alice.post(
        reverse("jobs:submit"), form(**SECOND_TASK, **{"tasks-1-depends_on": "main", "tasks-1-depends_on_any": "on"})
    )
    job = Job.objects.get()
    assert job.spec["tasks"][1]["depends_on"] == {"tasks": ["main"], "iteration": "any"}
    page = alice.get(reverse("jobs:submit") + f"?clone={job.uid}").content.decode()
    assert 'name="tasks-1-depends_on" value="main"' in page
    assert re.search(r'name="tasks-1-depends_on_any"[^>]* checked', page)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"tasks-1-depends_on": "mian"}, "id_tasks-1-depends_on", "Did you mean “main”"),
        ({"tasks-1-depends_on": "main, other"}, "id_tasks-1-depends_on", "Unknown task “other”"),
        ({"tasks-0-depends_on": "train", "tasks-1-depends_on": "main"}, "id_tasks-0-depends_on", "Dependency cycle"),
        ({"tasks-1-depends_on": "Main!"}, "id_tasks-1-depends_on", "not a valid name"),
    ],
)
def test_invalid_dependencies_are_at_their_field(
    people: People, as_: As, changes: dict[str, str], field: str, message: str
) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), form(**SECOND_TASK, **changes)).content.decode()
    assert not Job.objects.exists()
    assert message in page
    assert f'href="#{field}"' in page
    assert all(f'value="{value}"' in page for value in changes.values())


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"name": "Not A Name"}, "id_name", "not a valid name"),
        ({"tasks-0-command": "python 'oops"}, "id_tasks-0-command", "quotation"),
        ({"tasks-0-cpu": "many"}, "id_tasks-0-cpu", "not an amount"),
        ({"tasks-0-cpu": "64"}, "id_tasks-0-cpu", "largest node has 4"),
        ({"tasks-0-replicas": "9"}, "", "can never start"),
        ({"tasks-0-env": "nonsense"}, "id_tasks-0-env", "NAME=value"),
        ({"active_deadline_seconds": "0"}, "id_active_deadline_seconds", "at least 1s"),
        ({"name": "taken"}, "id_name", "already"),
    ],
)
def test_errors_are_at_their_field_and_keep_the_input(
    people: People, as_: As, changes: dict[str, str], field: str, message: str
) -> None:
    people.submit("taken")
    data = form(**{"tasks-0-memory": "77Mi"}, **changes)
    page = as_(people.alice).post(reverse("jobs:submit"), data).content.decode()
    assert Job.objects.count() == 1
    assert message in page
    assert f'href="#{field}"' in page or not field
    assert "77Mi" in page


def test_closed_queue_error_names_time_and_open_queues(people: People, as_: As) -> None:
    queues.create(cluster=people.cluster, name="spare", actor=PLATFORM, now=clock.now())
    queues.set_state(people.queue, "closed", by=people.ada, actor=accounts.actor_of(people.ada), now=clock.now())
    page = as_(people.alice).post(reverse("jobs:submit"), form()).content.decode()
    assert "is closed since" in page
    assert "(by Ada). Open queues: spare." in page
    assert "spare" in page


MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: typed}
spec:
  tasks:
  - name: main
    replicas: %s
    template: {spec: {containers: [{name: main, command: ["true"], resources: {requests: {cpu: 1}}}]}}
"""


def test_a_manifest_submits_a_job(people: People, as_: As) -> None:
    as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": MANIFEST % 2})
    assert Job.objects.get().replicas == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MANIFEST % "many", "replicas"),
        ("kind: [", "Line 2, column 1"),
        ("", "Enter a manifest"),
        (MANIFEST % 500, "can never start"),
    ],
)
def test_invalid_manifest_has_errors_and_is_kept(people: People, as_: As, text: str, message: str) -> None:
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text}).content.decode()
    assert not Job.objects.exists()
    assert message in page
    assert (text.split("\n", maxsplit=1)[0] in page) or not text


def test_oversized_form_is_refused(people: People, as_: As) -> None:
    answer = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": "a: b\n" * 2_000_000})
    assert answer.status_code == 413
    assert "MiB" in answer.content.decode()


def test_clone_is_prefilled(people: People, as_: As) -> None:
    job = people.submit("source")
    page = as_(people.alice).get(reverse("jobs:submit"), {"clone": str(job.uid)}).content.decode()
    assert 'value="source-1"' in page
    assert ">true<" in page.replace("\n", "")


RAY_CLUSTER = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: cluster}
spec:
  plugins: {ray: ["--headContainer=ray"]}
  tasks:
  - {name: head, template: {spec: {containers: [{name: ray, command: [sleep, "1"]}]}}}
  - {name: worker, template: {spec: {containers: [{name: ray}]}}}
"""


def test_plugin_warnings_are_shown_after_submission(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": RAY_CLUSTER}, follow=True).content.decode()
    assert Job.objects.get().name == "cluster"
    assert "spec.plugins.ray[0]: Ignored: only the first container of a pod runs." in page
    assert "“head” has its own command, which runs instead of ray start." in page


def test_form_has_every_framework_and_warns_about_overrides(people: People, as_: As) -> None:
    client = as_(people.alice)
    page = client.get(reverse("jobs:submit")).content.decode()
    assert [
        name for name in load_frameworks() if name not in ("env", "svc", "ssh") and f'value="{name}"' not in page
    ] == []
    data = form() | {"framework": "pytorch", "tasks-0-name": "master", "tasks-0-env": "RANK=7"}
    page = client.post(reverse("jobs:submit"), data, follow=True).content.decode()
    assert Job.objects.count() == 1
    assert "tasks.0.env.RANK: The plugin pytorch sets this too. The value here takes precedence." in page


def test_sign_in_link_works_once(people: People) -> None:
    address = reverse("accounts:use_link", args=[accounts.issue_link(people.alice, actor=PLATFORM, now=clock.now())])
    client = Client()
    assert client.get(address).status_code == 200
    assert client.post(address)["Location"] == reverse("home")
    assert client.get(reverse("home")).status_code == 200
    assert Client().post(address).status_code == 404


def test_stale_csrf_token_is_explained(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post(reverse("jobs:submit"), form())
    assert answer.status_code == 403
    assert "This page is out of date" in answer.content.decode()


@pytest.mark.parametrize("name", ["jobs:list", "home", "queues:list", "clusters:nodes"])
def test_list_query_count(
    people: People, as_: As, django_assert_max_num_queries: Callable[[int], Any], name: str
) -> None:
    for number in range(30):
        people.submit(f"job-{number}")
    client = as_(people.alice)
    client.get(reverse("home"))  # process caches are filled once, and the session records its last use once a minute
    with django_assert_max_num_queries(MOST_QUERIES[name]):
        client.get(reverse(name))


@pytest.mark.parametrize("tab", ["overview", "log", "pods", "results", "files", "events", "settings"])
def test_job_page_query_count(
    people: People, as_: As, django_assert_max_num_queries: Callable[[int], Any], tab: str
) -> None:
    job, client = people.submit(), as_(people.alice)
    client.get(reverse("accounts:login_sessions"))  # the session records its last use once a minute
    with django_assert_max_num_queries(12):
        client.get(reverse("jobs:detail", args=[job.uid]), {"tab": tab})


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        (
            "en",
            "No other job of its queue can be preempted: 12 pods do not have lower priority; 1 pod is not preemptible.",
        ),
        ("zh-hans", "本队列中没有可抢占的其他作业：12 个 Pod 的优先级并不更低；1 个 Pod 不可抢占。"),
    ],
)
def test_pending_job_explains_why_nothing_is_preempted(people: People, as_: As, language: str, sentence: str) -> None:
    job = people.submit()
    spared = VictimCounts({"priority": 12}, excluded={Exclusion.NOT_PREEMPTABLE: 1}, nodes=1, candidate_nodes=1)
    job.waiting = [as_data(PendingReason(Cause.PRIORITY, "preempt", "", "nobody_preempted", pods=1, victims=spared))]
    job.save(update_fields=["waiting"])
    client = as_(people.alice)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = language
    assert sentence in client.get(reverse("jobs:detail", args=[job.uid])).content.decode()


def test_history_explains_evictions(people: People, as_: As) -> None:
    job = people.submit()
    shares = events.EvictionShares(plugin="drf", of="job", giver=events.ShareChange(before=1, after=0.5))
    evicted = events.PodEvicted(
        task="main",
        index=0,
        attempt=1,
        action="preempt",
        node="n1",
        for_job="6f1c",
        plugins=("gang",),
        shares=(shares,),
    )
    full = as_data(PendingReason(Cause.CAPACITY, "allocate", "resources", "cluster_is_full", Resources({"cpu": 4000})))
    spared = as_data(
        PendingReason(Cause.PRIORITY, "preempt", "", "nobody_preempted", victims=VictimCounts({"gang": 1}))
    )
    with unit_of_work():
        tell(job, evicted, actor=PLATFORM, now=clock.now())
        tell(job, events.JobUnschedulable(reasons=(full, spared)), actor=PLATFORM, now=clock.now())
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid]), {"tab": "events"}).content.decode()
    assert "main-0 on n1 is evicted for another job (preempt: gang)." in page
    assert "Its job used 100% of the cluster and uses 50% now." in page
    assert "leave 0 CPU. No other job of its queue can be preempted: 1 pod belongs to a job at" in page


def test_page_shows_task_dependencies(people, as_):
    task = {"command": ["true"], "resources": {"cpu": "1"}}
    tasks = [
        {"name": "reader", **task},
        {"name": "train", "depends_on": {"tasks": ["reader"]}, **task},
        {"name": "report", "depends_on": {"tasks": ["reader", "train"], "iteration": "any"}, **task},
    ]
    job = people.submit("staged", tasks=tasks)
    address = reverse("jobs:detail", args=[job.uid])
    page = as_(people.alice).get(address).content.decode()
    assert "starts when reader is running" in page
    assert "starts when one of reader, train is running" in page
    client = as_(people.alice)
    client.cookies["django_language"] = "zh-hans"
    assert "reader 运行后启动" in client.get(address).content.decode()
    job.phase = "completed"
    job.save()
    assert "starts when" not in as_(people.alice).get(address).content.decode()


def delete_job(people: People, *, ran: bool) -> Job:
    job = people.submit("vanished")
    Job.objects.filter(pk=job.pk).update(phase="completed", started_at=clock.now() if ran else None)
    jobs.delete(Job.objects.get(pk=job.pk), user=people.alice, now=clock.now())
    return job


def test_deleted_job_is_listed_with_its_history(people: People, as_: As) -> None:
    job, alice = delete_job(people, ran=True), as_(people.alice)
    assert "vanished" not in alice.get(reverse("jobs:list")).content.decode()
    assert "vanished" in alice.get(reverse("jobs:list"), {"deleted": "yes"}).content.decode()
    page = alice.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert "Logs are kept until" in page
    assert "Delete this job?" not in page
    assert as_(people.charlie).get(reverse("jobs:detail", args=[job.uid])).status_code == 404
    assert "No deleted jobs" in as_(people.charlie).get(reverse("jobs:list"), {"deleted": "yes"}).content.decode()


@pytest.mark.parametrize(
    ("kind", "log_days", "asks_for_name"), [("simulated", 30, False), ("simulated", 0, True), ("local", 30, True)]
)
def test_delete_dialog_lists_what_is_deleted(
    people: People, as_: As, kind: str, log_days: int, asks_for_name: bool
) -> None:
    job = people.submit("ended")
    Job.objects.filter(pk=job.pk).update(phase="completed", started_at=clock.now())
    people.lab.log_days = log_days
    people.lab.save()
    people.cluster.kind = kind
    people.cluster.save()
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert ("deleted permanently" in page) == (kind == "local")
    assert ("Its logs are deleted too" in page) == (log_days == 0)
    assert "history" in page.split('data-confirm-title="Delete this job?"')[0].rsplit("data-confirm=", 1)[1]
    assert ('data-confirm-name="ended"' in page) == asks_for_name


def test_invalid_retention_keeps_the_input(people: People, as_: As) -> None:
    url = reverse("tenancy:set_retention", args=["lab"])
    page = as_(people.alice).post(url, {"log_days": "40", "history_days": "20"}).content.decode()
    assert "must not be shorter than log retention" in page
    assert 'value="40"' in page
    assert as_(people.alice).post(url, {"log_days": "4", "history_days": "20"}).status_code == 302
    people.lab.refresh_from_db()
    assert (people.lab.log_days, people.lab.history_days) == (4, 20)
    assert "kept for 4 days" in as_(people.bob).get(reverse("tenancy:detail", args=["lab"])).content.decode()
