"""The list of jobs: filters, pages, groups, CSV file, saved views and bulk actions."""

import base64
import csv
import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.http import HttpResponse, QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import facts, filters, selectors, services
from hekla.apps.jobs.filters import order
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.domain.errors import Forbidden, Invalid, Refused
from hekla.lib import clock
from hekla.pages.jobs import context as job_context
from hekla.pages.jobs import list_context, table_file

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
LIST = "jobs:list"


def filtered_names(query: str, user: User) -> list[str]:
    return sorted(list_context.filtered_jobs(QueryDict(query), user).values_list("name", flat=True))


def pod(job: Job, **more: Any) -> Pod:
    facts = {"task": "main", "index": 0, "attempt": 1, "version": 1, "slot": 1, "address": "127.0.0.1"}
    return Pod.objects.create(job=job, created_at=clock.now(), **(facts | more))


@pytest.fixture
def three_jobs(people: People) -> dict[str, Job]:
    """A job that failed long ago, a completed job, and a pending job of Bob's."""
    now = clock.now()
    queues.create(cluster=people.cluster, name="other-queue", actor=PLATFORM, now=now)
    failed = people.submit("resnet-7", priority=10, kind="training")
    done = people.submit("llama-8", queue="other-queue", kind="inference")
    waits = people.submit("bert")
    ago = now - timedelta(days=30)
    Job.objects.filter(pk=failed.pk).update(phase="failed", submitted_at=ago, finished_at=ago, reason="PodFailed")
    Job.objects.filter(pk=done.pk).update(phase="completed", finished_at=now)
    Job.objects.filter(pk=waits.pk).update(owner=people.bob)
    pod(failed, phase="failed", reason="OOMKilled")
    pod(done, phase="succeeded")
    return {job.name: Job.objects.get(pk=job.pk) for job in (failed, done, waits)}


FAILED, COMPLETED, PENDING = "resnet-7", "llama-8", "bert"
ALL = sorted([FAILED, COMPLETED, PENDING])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ALL),
        ("q=esne", [FAILED]),
        ("q=ESNET-7", [FAILED]),
        ("q=-8", [COMPLETED]),
        ("q=bob", [PENDING]),
        ("q=nothing", []),
        ("q=%25", []),
        ("name=bert", [PENDING]),
        ("name=ber", []),
        ("phase=failed&phase=completed", [COMPLETED, FAILED]),
        ("queue=other-queue", [COMPLETED]),
        ("tenant=lab", ALL),
        ("tenant=other", []),
        ("cluster=sim", ALL),
        ("owner=bob", [PENDING]),
        ("kind=inference", [COMPLETED]),
        ("priority_min=5", [FAILED]),
        ("priority_max=5", sorted([COMPLETED, PENDING])),
        ("submitted_after=7d", sorted([COMPLETED, PENDING])),
        ("submitted_before=24h", [FAILED]),
        ("submitted_after=2020-01-01", ALL),
        ("submitted_before=2020-01-01T00:00Z", []),
        ("finished_after=1w", [COMPLETED]),
        ("finished_before=1w", [FAILED]),
        ("failed_pods=yes", [FAILED]),
        ("reason=OOMKilled", [FAILED]),
        ("reason=PodFailed", [FAILED]),
        ("whose=mine", sorted([FAILED, COMPLETED])),
        ("deleted=yes", []),
        ("phase=failed&q=bert", []),
        ("group=queue&sort=name&unknown=1", ALL),
    ],
)
def test_filters(people: People, three_jobs: dict[str, Job], query: str, names: list[str]) -> None:
    assert filtered_names(query, people.alice) == names


@pytest.mark.parametrize("query", ["failed_pods=yes", "reason=OOMKilled", "reason=PodFailed", "reason=OOMKilled&q=res"])
def test_filters_by_pods_if_many_jobs_have_one(
    people: People, three_jobs: dict[str, Job], monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(filters, "_FEW", 0)
    assert filtered_names(query, people.alice) == [FAILED]


@pytest.mark.parametrize(
    "query", ["phase=odd", "priority_min=many", "priority_min=99999999999", "submitted_after=soon", "whose=yours"]
)
def test_invalid_filters_are_reported_and_select_nothing(people: People, as_: As, query: str) -> None:
    people.submit("kept")
    with pytest.raises(Invalid):
        list_context.filtered_jobs(QueryDict(query), people.alice)
    page = as_(people.alice).get(f"{reverse(LIST)}?{query}")
    assert page.status_code == 200
    assert "Unknown filter" in page.content.decode()
    assert "kept" not in page.content.decode()
    as_(people.alice).post(reverse("jobs:act_on_all"), {"action": "AbortJob", "all": "yes", "query": query})
    assert Job.objects.get().phase == "pending"


@pytest.mark.parametrize("sort", ["submitted", "-submitted", "name", "-name", "phase", "-priority", "pods", "odd", ""])
def test_paging_shows_every_job_once(people: People, as_: As, sort: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        people.submit(f"job-{number}", priority=number % 2)
    monkeypatch.setattr(list_context.job_context, "PAGE", 3)
    query, pages = QueryDict(f"sort={sort}"), []
    while True:
        context = list_context.context(query, people.alice)
        pages.append([row["job"].name for row in context["rows"]])
        if not context["next"]:
            break
        query = QueryDict(context["next"].removeprefix("?"))
    by = order(QueryDict(f"sort={sort}"))
    assert [name for page in pages for name in page] == list(by.of(Job.objects.all()).values_list("name", flat=True))
    back = QueryDict(context["previous"].removeprefix("?"))
    assert [row["job"].name for row in list_context.context(back, people.alice)["rows"]] == pages[-2]
    assert not list_context.context(QueryDict(f"sort={sort}"), people.alice)["previous"]


def cursor(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize(
    ("sort", "text"),
    [
        ("", "x"),
        ("", "é"),
        ("", "A" * 4000),
        ("", cursor(0, "2026-01-01T00:00", 1)),
        ("", cursor(0, None, 1)),
        ("", cursor(0, "2026-01-01T00:00Z", 1e309)),
        ("", cursor(0, "2026-01-01T00:00Z", 2**70)),
        ("", cursor({}, [], {})),
        ("name", cursor(0, "nul\0", 1)),
        ("priority", cursor(0, 2**70, 1)),
        ("priority", cursor(0, 1)),
    ],
)
def test_invalid_cursor_shows_the_first_page(people: People, as_: As, sort: str, text: str) -> None:
    people.submit("one")
    page = as_(people.alice).get(reverse(LIST), {"cursor": text, "sort": sort})
    assert page.status_code == 200
    assert "one" in page.content.decode()


@pytest.mark.parametrize("username", ["alice", "ada"])
@pytest.mark.parametrize("query", ["", "q=job&phase=pending&sort=name", "group=owner", "failed_pods=yes"])
def test_query_count_is_constant(
    people: People, as_: As, django_assert_max_num_queries: Callable[[int], Any], username: str, query: str
) -> None:
    for number in range(10):
        pod(people.submit(f"job-{number}"))
    client = as_(getattr(people, username))
    client.get(reverse("accounts:login_sessions"))  # the session records its last use once a minute
    with django_assert_max_num_queries(13 if "q=" in query else 12):
        client.get(f"{reverse(LIST)}?{query}")


def test_rows_show_cards_and_why_a_job_waits_or_failed(people: People, as_: As) -> None:
    task = {"name": "main", "command": ["true"], "replicas": 3, "resources": {"nvidia.com/gpu": "2", "cpu": "1"}}
    Node.objects.update(allocatable={"cpu": "8", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "8"})
    waits, failed = people.submit("waits", tasks=[task]), people.submit("failed")
    need, rest = {"nvidia.com/gpu": "6"}, {"have": {}, "nodes": {}, "tasks": [], "plugin": "", "ever": True}
    Job.objects.filter(pk=waits.pk).update(waiting=[{"cause": "capacity", "code": "x", "need": need, **rest}])
    Job.objects.filter(pk=failed.pk).update(phase="failed", reason="OOMKilled", finished_at=clock.now())
    page = as_(people.alice).get(reverse(LIST)).content.decode()
    assert '<td data-label="GPUs" class="number">6</td>' in page
    assert re.findall(r'data-label="Reason">(?:<span[^>]*>)?([^<]+)<', page) == [
        "OOMKilled", "Waiting for 6 GPU. The cluster has none free.",
    ]  # fmt: skip
    names, *lines = _file("", people.alice)
    assert {line[1]: line[names.index("gpus")] for line in lines} == {"waits": "6.0", "failed": ""}


def test_marks_of_a_job_are_no_part_of_the_note_that_may_be_cut_off(people: People, as_: As) -> None:
    job = people.submit("pretends")
    Cluster.objects.filter(pk=job.cluster_id).update(kind="simulated")
    Job.objects.filter(pk=job.pk).update(deleted_at=clock.now())
    page = as_(people.alice).get(f"{reverse(LIST)}?deleted=yes").content.decode()
    [marks] = re.findall(r">pretends</a>(.*?)<span class=\"row-note\"", page)
    assert re.sub(r"<[^>]*>", " ", marks).split()[:2] == ["simulated", "deleted"]


def test_actions_that_volcano_refuses_are_not_offered(
    people: People, django_assert_num_queries: Callable[[int], Any]
) -> None:
    for number in range(1, 6):
        people.submit(f"job-{number}", max_retry=2)
    Job.objects.update(phase="running")
    Job.objects.filter(name="job-5").update(retry_count=1)
    found = Job.objects.order_by("name")
    with CaptureQueriesContext(connection) as before:
        job_context.rows(selectors.listed(found), lambda _job: True)
    Cluster.objects.update(kind="kubernetes", config={"scheduler": "volcano"})
    facts._cached_spec.cache_clear()
    with django_assert_num_queries(len(before) + 1):
        rows = job_context.rows(selectors.listed(found), lambda _job: True)
    offered = [[action for action, *_ in row["actions"]] for row in rows]
    assert offered == [["AbortJob", "RestartJob"]] * 4 + [["AbortJob"]]


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("queue", {("default", 2, 1, 1), ("other-queue", 1, 0, 0)}),
        ("phase", {("failed", 1, 0, 1), ("completed", 1, 0, 0), ("pending", 1, 1, 0)}),
        ("owner", {("alice", 2, 0, 1), ("bob", 1, 1, 0)}),
        ("tenant", {("lab", 3, 1, 1)}),
        ("kind", {("training", 2, 1, 1), ("inference", 1, 0, 0)}),
        ("cluster", {("sim", 3, 1, 1)}),
    ],
)
def test_groups_count_jobs_and_link_to_them(
    people: People, three_jobs: dict[str, Job], by: str, groups: set[tuple[Any, ...]]
) -> None:
    found = list_context.context(QueryDict(f"group={by}&tenant=lab"), people.alice)["groups"]
    assert {(one.name, one.jobs, one.alive, one.failed) for one in found} == groups
    for one in found:
        assert len(filtered_names(one.query, people.alice)) == one.jobs


def _file(query: str, user: User) -> list[list[str]]:
    found = list_context.filtered_jobs(QueryDict(query), user)

    async def read() -> str:
        return "".join([text async for text in table_file.lines(found, order(QueryDict(query)))])

    return list(csv.reader(io.StringIO(async_to_sync(read)())))


def test_csv_file_holds_all_pages_of_the_list(
    people: People, three_jobs: dict[str, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "_AT_ONCE", 1)
    head, *rows = _file("sort=name&deleted=no", people.alice)
    assert head[:4] == ["uid", "name", "phase", "gpus"]
    assert [row[1] for row in rows] == [PENDING, COMPLETED, FAILED]
    assert rows[2][0] == str(three_jobs[FAILED].uid)
    assert len(_file("phase=failed", people.alice)) == 2
    assert len(_file("", people.charlie)) == 1


@pytest.mark.parametrize("reason", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_csv_cells_are_never_formulas(people: People, reason: str) -> None:
    Job.objects.filter(pk=people.submit().pk).update(reason=reason)
    head, row = _file("", people.alice)
    assert row[head.index("reason")] == f"'{reason}"


def act(client: Client, action: str, **more: Any) -> HttpResponse:
    """Run the action; the list that reports it."""
    return client.post(reverse("jobs:act_on_all"), {"action": action, **more}, follow=True)


def test_bulk_action_has_an_outcome_for_each_job(people: People, as_: As, three_jobs: dict[str, Job]) -> None:
    chosen = [str(job.uid) for job in three_jobs.values()]
    answer = act(as_(people.alice), "Delete", uid=chosen)
    page, (refused,) = answer.content.decode(), answer.context["report"]["refused"]
    assert (answer.context["report"]["done"], refused["n"], refused["names"]) == (2, 1, [PENDING])
    assert "2 jobs are deleted." in page
    assert "not finished" in page
    assert "Undo" not in page
    assert filtered_names("", people.alice) == [PENDING]
    assert "2 jobs are deleted." not in as_(people.alice).get(reverse(LIST)).content.decode()


def test_bulk_action_is_undone(people: People, as_: As) -> None:
    jobs, client = [people.submit(name, priority=3) for name in ("one", "two")], as_(people.alice)
    uids = [str(job.uid) for job in reversed(jobs)]
    for action, opposite in (("AbortJob", "ResumeJob"), ("ResumeJob", "AbortJob")):
        answer = act(client, action, uid=uids, query="q=o&sort=name")
        assert answer.redirect_chain == [(f"{reverse(LIST)}?q=o&sort=name", 302)]
        assert answer.context["report"]["undo"] == {"action": opposite, "uids": uids}
        assert f'name="action" value="{opposite}"' in answer.content.decode()
    answer = act(client, "SetPriority", uid=uids, priority=7)
    assert answer.context["report"]["undo"] == {"action": "SetPriority", "priority": 3, "uids": uids}
    act(client, "SetPriority", uid=uids, priority=3)
    assert {*Job.objects.values_list("priority", flat=True)} == {3}


def test_bulk_action_covers_the_filtered_jobs_only(people: People, as_: As) -> None:
    for name in ("one", "two", "kept"):
        people.submit(name)
    answer = act(as_(people.alice), "AbortJob", all="yes", query="q=o&name=one")
    assert answer.context["report"]["done"] == 1
    assert sorted(Job.objects.filter(phase="aborted").values_list("name", flat=True)) == ["one"]
    assert LoggedEvent.objects.filter(kind="JobCommanded").count() == 1


@pytest.mark.parametrize(
    ("query", "everything"),
    [
        ("q=%20", "yes"),
        ("owner=%20", "yes"),
        ("q=", "yes"),
        ("priority_min=0.5", "yes"),
        ("ownr=bob", "yes"),
        ("owner=bob&owner=alice", "yes"),
        ("deleted=no", "yes"),
        ("sort=odd", "yes"),
        ("", "no"),
    ],
)
def test_bulk_action_refuses_filters_without_effect(people: People, as_: As, query: str, everything: str) -> None:
    people.submit("kept")
    answer = act(as_(people.alice), "AbortJob", all=everything, query=query)
    assert answer.status_code == 400
    assert Job.objects.get().phase == "pending"


def test_bulk_action_accepts_the_query_that_the_list_gives(people: People, as_: As) -> None:
    people.submit("one")
    Job.objects.filter(pk=people.submit("kept").pk).update(owner=people.bob)
    page = as_(people.alice).get(f"{reverse(LIST)}?all=yes&q=&owner=alice&queue=&group=&sort=name&phase=pending")
    assert (page.context["query"], page.context["count"]["n"]) == ("all=yes&owner=alice&sort=name&phase=pending", 1)
    act(as_(people.alice), "AbortJob", all="yes", query=page.context["query"])
    assert [*Job.objects.filter(phase="aborted").values_list("name", flat=True)] == ["one"]


def test_bulk_action_limit_is_reported(people: People, as_: As, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        people.submit(f"job-{number}")
    monkeypatch.setattr(services, "MOST_AT_ONCE", 2)
    answer = act(as_(people.alice), "AbortJob", all="yes", query="")
    assert (answer.context["report"]["done"], answer.context["report"]["is_cut"]) == (2, True)


def test_bulk_action_needs_rights(people: People, as_: As, three_jobs: dict[str, Job]) -> None:
    chosen = [str(job.uid) for job in three_jobs.values()]
    viewer_answer = act(as_(people.bob), "AbortJob", uid=[str(three_jobs[FAILED].uid)])
    assert [viewer_answer.context["report"][name] for name in ("done", "n_refused", "undo")] == [0, 1, None]
    outsider_answer = act(as_(people.charlie), "AbortJob", uid=chosen)
    assert [outsider_answer.context["report"][name] for name in ("done", "n_refused")] == [0, 0]
    assert "No job was selected" in outsider_answer.content.decode()


@pytest.mark.parametrize("sent", [{"action": "Explode"}, {"action": "AbortJob", "uid": ["no-uid"]}])
def test_invalid_bulk_actions_are_refused(people: People, as_: As, sent: dict[str, Any]) -> None:
    answer = as_(people.alice).post(reverse("jobs:act_on_all"), sent)
    assert answer.status_code == 400


def test_columns_are_saved_for_each_user(people: People, as_: As) -> None:
    people.submit(kind="inference")
    client = as_(people.alice)
    client.post(reverse("jobs:arrange"), {"columns": ["kind", "priority"], "query": "q=one"})
    assert [column.name for column in client.get(reverse(LIST)).context["columns"]] == ["kind", "priority"]
    other_columns = as_(people.ada).get(reverse(LIST)).context["columns"]
    assert [column.name for column in other_columns] == ["phase", "gpus", "pods", "queue", "submitted", "ran", "reason"]


def test_view_is_saved_and_can_be_the_default(people: People, as_: As) -> None:
    client = as_(people.alice)
    client.post(reverse("jobs:save_view"), {"name": "Mine", "query": "q=x&cursor=abc&odd=1&sort=name"})
    (view,) = client.get(reverse(LIST)).context["views"]
    assert view.query == "q=x&sort=name"
    client.post(reverse("jobs:arrange"), {"opens_with": view.pk})
    assert client.get(reverse(LIST)).headers["location"] == f"{reverse(LIST)}?q=x&sort=name"
    assert client.get(reverse(LIST), {"all": "yes"}).status_code == 200
    client.post(reverse("jobs:delete_view", args=[view.pk]))
    assert client.get(reverse(LIST)).status_code == 200


def test_only_admins_share_views_with_the_tenant(people: People, as_: As) -> None:
    now = clock.now()
    facts = {"name": "Ours", "query": "phase=failed", "now": now}
    with pytest.raises(Forbidden):
        services.save_view(**facts, tenant=people.lab, user=people.bob)
    view = services.save_view(**facts, tenant=people.lab, user=people.alice)
    with pytest.raises(Refused):
        services.save_view(**facts, tenant=people.lab, user=people.alice)
    assert services.save_view(**facts, tenant=None, user=people.alice).tenant is None
    assert [one.name for one in as_(people.bob).get(reverse(LIST)).context["views"]] == ["Ours"]
    assert not as_(people.charlie).get(reverse(LIST)).context["views"]
    with pytest.raises(Forbidden):
        services.delete_view(view, user=people.bob, now=now)
    assert LoggedEvent.objects.filter(kind="JobViewSaved").count() == 2


def test_bulk_change_of_priority(people: People, as_: As, three_jobs: dict[str, Job]) -> None:
    alice, form = as_(people.alice), {"action": "SetPriority", "all": "yes", "query": "q=l"}
    assert "Enter a priority" in alice.post(reverse("jobs:act_on_all"), form).content.decode()
    page = act(alice, "SetPriority", all="yes", query="", priority="9")
    assert [page.context["report"][name] for name in ("done", "n_refused")] == [1, 2]
    assert Job.objects.get(name=PENDING).priority == 9
