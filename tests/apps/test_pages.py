"""Every page opens for who may see it, says what is so, and keeps what was typed."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.apps.queues import services as queues
from hekla.domain import events
from hekla.domain.frameworks import load_frameworks
from hekla.engine.decisions import Cause, Exclusion, PendingReason, VictimCounts
from hekla.lib import clock
from hekla.scheduling.reasons import as_data

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
def test_a_member_is_refused_in_words(people: People, as_: As, name: str) -> None:
    answer = as_(people.alice).get(reverse(name))
    assert answer.status_code == 403
    assert b"platform admin" in answer.content or b"platform" in answer.content


def rail(client: Client, name: str, language: str = "en") -> str:
    html = client.get(reverse(name), headers={"accept-language": language}).content.decode()
    return html[html.index('<nav class="rail-nav"') : html.index("</nav>")]


def test_the_rail_is_each_ones_own_however_many_were_shown_it(people: People, as_: As) -> None:
    for _ in range(2):
        assert f'href="{reverse("accounts:list")}"' in rail(as_(people.ada), "home")
        assert f'href="{reverse("accounts:list")}"' not in rail(as_(people.alice), "home")
        assert "作业" in rail(as_(people.alice), "home", "zh-hans")
        assert "作业" not in rail(as_(people.bob), "home")
        assert "Alice" in rail(as_(people.alice), "jobs:list")
        assert "Alice" not in rail(as_(people.bob), "jobs:list")


def test_the_rail_says_where_one_is(people: People, as_: As) -> None:
    for name in ("home", "jobs:list", "queues:list", "jobs:list"):
        (here,) = re.findall(r'href="([^"]+)"[^>]*aria-current="page"', rail(as_(people.alice), name))
        assert here == reverse(name)


@pytest.mark.parametrize("name", [*PLAIN, *FOR_ADMINS])
def test_strangers_are_asked_to_sign_in(db: None, name: str) -> None:
    answer = Client().get(reverse(name))
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("accounts:sign_in"))


def test_a_job_exists_for_its_tenant_only(people: People, as_: As) -> None:
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


TWO = {"tasks-TOTAL_FORMS": "2", "tasks-1-name": "train", "tasks-1-replicas": "1", "tasks-1-command": "true"}


def test_the_form_lets_a_task_begin_after_others_and_shows_it_in_a_copy(people: People, as_: As) -> None:
    alice = as_(people.alice)
    alice.post(reverse("jobs:submit"), form(**TWO, **{"tasks-1-depends_on": "main", "tasks-1-depends_on_any": "on"}))
    job = Job.objects.get()
    assert job.spec["tasks"][1]["depends_on"] == {"tasks": ["main"], "iteration": "any"}
    page = alice.get(reverse("jobs:submit") + f"?clone={job.uid}").content.decode()
    assert 'name="tasks-1-depends_on" value="main"' in page
    assert re.search(r'name="tasks-1-depends_on_any"[^>]* checked', page)


@pytest.mark.parametrize(
    ("changes", "field", "word"),
    [
        ({"tasks-1-depends_on": "mian"}, "id_tasks-1-depends_on", "Did you mean “main”"),
        ({"tasks-1-depends_on": "main, other"}, "id_tasks-1-depends_on", "Unknown task “other”"),
        ({"tasks-0-depends_on": "train", "tasks-1-depends_on": "main"}, "id_tasks-0-depends_on", "Dependency cycle"),
        ({"tasks-1-depends_on": "Main!"}, "id_tasks-1-depends_on", "not a valid name"),
    ],
)
def test_a_dependency_that_cannot_be_is_told_at_its_field(
    people: People, as_: As, changes: dict[str, str], field: str, word: str
) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), form(**TWO, **changes)).content.decode()
    assert not Job.objects.exists()
    assert word in page
    assert f'href="#{field}"' in page
    assert all(f'value="{typed}"' in page for typed in changes.values())


@pytest.mark.parametrize(
    ("changes", "field", "word"),
    [
        ({"name": "Not A Name"}, "id_name", "not a valid name"),
        ({"tasks-0-command": "python 'oops"}, "id_tasks-0-command", "quotation"),
        ({"tasks-0-cpu": "many"}, "id_tasks-0-cpu", "not an amount"),
        ({"tasks-0-cpu": "64"}, "id_tasks-0-cpu", "largest node has 4"),
        ({"tasks-0-replicas": "9"}, "", "can never start"),
        ({"tasks-0-env": "nonsense"}, "id_tasks-0-env", "NAME=value"),
        ({"active_deadline_seconds": "0"}, "id_active_deadline_seconds", "greater than or equal to 1"),
        ({"name": "taken"}, "id_name", "already"),
    ],
)
def test_a_problem_stands_at_its_field_and_nothing_typed_is_lost(
    people: People, as_: As, changes: dict[str, str], field: str, word: str
) -> None:
    people.submit("taken")
    typed = form(**{"tasks-0-memory": "77Mi"}, **changes)
    page = as_(people.alice).post(reverse("jobs:submit"), typed).content.decode()
    assert Job.objects.count() == 1
    assert word in page
    assert f'href="#{field}"' in page or not field
    assert "77Mi" in page


def test_a_closed_queue_says_since_when_and_what_else(people: People, as_: As) -> None:
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
    ("text", "word"),
    [
        (MANIFEST % "many", "replicas"),
        ("kind: [", "Line 2, column 1"),
        ("", "Enter a manifest"),
        (MANIFEST % 500, "can never start"),
    ],
)
def test_a_bad_manifest_is_explained_and_kept(people: People, as_: As, text: str, word: str) -> None:
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text}).content.decode()
    assert not Job.objects.exists()
    assert word in page
    assert (text.split("\n", maxsplit=1)[0] in page) or not text


def test_ten_megabytes_are_refused_in_words(people: People, as_: As) -> None:
    answer = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": "a: b\n" * 2_000_000})
    assert answer.status_code == 413
    assert "MiB" in answer.content.decode()


def test_a_copy_begins_as_the_job_was(people: People, as_: As) -> None:
    job = people.submit("source")
    page = as_(people.alice).get(reverse("jobs:submit"), {"clone": str(job.uid)}).content.decode()
    assert 'value="source-1"' in page
    assert ">true<" in page.replace("\n", "")


CLUSTER_OF_RAY = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: cluster}
spec:
  plugins: {ray: ["--headContainer=ray"]}
  tasks:
  - {name: head, template: {spec: {containers: [{name: ray, command: [sleep, "1"]}]}}}
  - {name: worker, template: {spec: {containers: [{name: ray}]}}}
"""


def test_what_a_job_asks_of_its_plugins_in_vain_is_said_after_it_was_submitted(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": CLUSTER_OF_RAY}, follow=True).content.decode()
    assert Job.objects.get().name == "cluster"
    assert "spec.plugins.ray[0]: Ignored: only the first container of a pod runs." in page
    assert "“head” has its own command, which runs instead of ray start." in page


def test_the_form_has_every_framework_and_says_what_a_job_overrules(people: People, as_: As) -> None:
    client = as_(people.alice)
    page = client.get(reverse("jobs:submit")).content.decode()
    assert [
        name for name in load_frameworks() if name not in ("env", "svc", "ssh") and f'value="{name}"' not in page
    ] == []
    typed = form() | {"framework": "pytorch", "tasks-0-name": "master", "tasks-0-env": "RANK=7"}
    page = client.post(reverse("jobs:submit"), typed, follow=True).content.decode()
    assert Job.objects.count() == 1
    assert "tasks.0.env.RANK: The plugin pytorch sets this too. The value here takes precedence." in page


def test_a_link_signs_in_once(people: People) -> None:
    address = reverse("accounts:use_link", args=[accounts.issue_link(people.alice, now=clock.now())])
    client = Client()
    assert client.get(address).status_code == 200
    assert client.post(address)["Location"] == reverse("home")
    assert client.get(reverse("home")).status_code == 200
    assert Client().post(address).status_code == 404


def test_a_form_from_before_the_sign_in_is_answered_in_words(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post(reverse("jobs:submit"), form())
    assert answer.status_code == 403
    assert "This page is out of date" in answer.content.decode()


@pytest.mark.parametrize("name", ["jobs:list", "home", "queues:list", "clusters:nodes"])
def test_a_list_asks_the_database_no_more_than_this(
    people: People, as_: As, django_assert_max_num_queries: Callable[[int], Any], name: str
) -> None:
    for number in range(30):
        people.submit(f"job-{number}")
    client = as_(people.alice)
    client.get(reverse("home"))  # what a process keeps is read once, and once a minute it is noted that one is here
    with django_assert_max_num_queries(MOST_QUERIES[name]):
        client.get(reverse(name))


def test_a_job_asks_the_database_no_more_than_this(
    people: People, as_: As, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    job, client = people.submit(), as_(people.alice)
    client.get(reverse("accounts:login_sessions"))  # once a minute it is noted that somebody is here
    with django_assert_max_num_queries(14):
        client.get(reverse("jobs:detail", args=[job.uid]))


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
def test_a_job_that_waits_says_who_was_considered_and_what_spared_them(
    people: People, as_: As, language: str, sentence: str
) -> None:
    job = people.submit()
    spared = VictimCounts({"priority": 12}, excluded={Exclusion.NOT_PREEMPTABLE: 1}, nodes=1, candidate_nodes=1)
    job.waiting = [as_data(PendingReason(Cause.PRIORITY, "preempt", "", "nobody_preempted", pods=1, victims=spared))]
    job.save(update_fields=["waiting"])
    client = as_(people.alice)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = language
    assert sentence in client.get(reverse("jobs:detail", args=[job.uid])).content.decode()


def test_the_story_of_a_job_says_who_goes_by_whose_leave_and_who_was_spared(people: People, as_: As) -> None:
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
    full = as_data(PendingReason(Cause.CAPACITY, "allocate", "resources", "cluster_is_full"))
    spared = as_data(
        PendingReason(Cause.PRIORITY, "preempt", "", "nobody_preempted", victims=VictimCounts({"gang": 1}))
    )
    with unit_of_work():
        tell(job, evicted, actor=PLATFORM, now=clock.now())
        tell(job, events.JobUnschedulable(reasons=(full, spared)), actor=PLATFORM, now=clock.now())
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert "main-0 on n1 is evicted for another job (preempt: gang)." in page
    assert "Its job used 100% of the cluster and uses 50% now." in page
    assert "The cluster has none free. No other job of its queue can be preempted: 1 pod belongs to a job at" in page


def test_the_page_says_which_tasks_a_task_waits_for(people, as_):
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


def deleted(people: People, *, ran: bool) -> Job:
    job = people.submit("vanished")
    Job.objects.filter(pk=job.pk).update(phase="completed", started_at=clock.now() if ran else None)
    jobs.delete(Job.objects.get(pk=job.pk), user=people.alice, now=clock.now())
    return job


def test_a_deleted_job_is_found_under_deleted_with_its_story(people: People, as_: As) -> None:
    job, alice = deleted(people, ran=True), as_(people.alice)
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
def test_before_a_deletion_the_page_says_what_goes_and_what_stays(
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


def test_a_wrong_retention_is_told_beside_what_was_typed(people: People, as_: As) -> None:
    where = reverse("tenancy:set_retention", args=["lab"])
    page = as_(people.alice).post(where, {"log_days": "40", "history_days": "20"}).content.decode()
    assert "must not be shorter than log retention" in page
    assert 'value="40"' in page
    assert as_(people.alice).post(where, {"log_days": "4", "history_days": "20"}).status_code == 302
    people.lab.refresh_from_db()
    assert (people.lab.log_days, people.lab.history_days) == (4, 20)
    assert "kept for 4 days" in as_(people.bob).get(reverse("tenancy:detail", args=["lab"])).content.decode()
