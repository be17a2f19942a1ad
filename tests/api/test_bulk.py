"""Bulk actions on jobs over REST, and job counts by group."""

from typing import Any
from uuid import UUID

import pytest
from tests.apps.conftest import People, as_
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.jobs.models import Job

__all__ = ["as_", "db", "people", "shared_people"]
UNKNOWN_UID = "00000000-0000-4000-8000-000000000000"


def post_bulk(client: Any, query: str = "", **document: Any) -> Any:
    return client.post(f"/api/v1/jobs/bulk{query}", document, content_type="application/json")


def outcomes(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.content
    return {one["name"]: one["done"] for one in answer.json()["outcomes"]}


@pytest.fixture
def jobs(people: People) -> list[Job]:
    made = [people.submit(name, priority=number) for number, name in enumerate(("one", "two", "three"))]
    Job.objects.filter(name="two").update(phase="completed")
    return made


def test_each_job_has_its_own_outcome(people: People, as_: Any, jobs: list[Job]) -> None:
    uids = [str(job.uid) for job in jobs]
    answer = post_bulk(as_(people.alice), action="SetPriority", priority=50, uids=[*uids, UNKNOWN_UID])
    assert outcomes(answer) == {"one": True, "two": False, "three": True, "": False}
    refused = {UUID(one["uid"]): one["why"] for one in answer.json()["outcomes"] if not one["done"]}
    assert "The job has finished" in refused[jobs[1].uid]
    assert list(Job.objects.order_by("pk").values_list("priority", flat=True)) == [50, 1, 50]


def test_list_filters_select_the_jobs(people: People, as_: Any, jobs: list[Job]) -> None:
    assert outcomes(post_bulk(as_(people.alice), "?phase=pending&mine=1", action="AbortJob", dry_run=True)) == {
        "one": None,
        "three": None,
    }
    assert set(Job.objects.values_list("phase", flat=True)) == {"pending", "completed"}
    both = post_bulk(as_(people.alice), "?phase=pending", action="AbortJob", uids=[str(jobs[0].uid), str(jobs[1].uid)])
    assert outcomes(both) == {"one": True, "": False}


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("", {}),
        ("?queue=", {}),
        ("?sort=name", {}),
        ("?quue=default", {"uids": [UNKNOWN_UID]}),
        ("?deleted=1", {}),
        ("?phase=odd", {}),
        ("?mine=1", {"action": "SetPriority"}),
        ("?mine=1", {"action": "SyncJob"}),
        ("?mine=1", {"uids": [UNKNOWN_UID] * 1001}),
        ("?mine=1", {"all": True}),
        ("?mine=false", {}),
        ("?mine=0&sort=name", {}),
        ("?mine=yes", {}),
        ("?mine=1&mine=false", {}),
        ("?mine=false", {"uids": [UNKNOWN_UID]}),
        ("?q=%20", {}),
        ("?owner=%20", {}),
        ("?owner=%C2%A0", {}),
        ("?tenant=%20%09", {}),
        ("?owner=alice&queue=", {}),
        ("?owner=bob&owner=alice", {}),
        ("?phase=pending&phase=", {}),
        ("?whose=mine", {}),
        ("?priority_min=0.5", {}),
        ("?priority_min=-0.5", {}),
        ("?priority_max=1e9", {}),
        ("?phase=pending&sort=odd", {}),
        ("?phase=pending&cursor=x", {}),
        ("?phase=pending", {"uids": []}),
    ],
)
def test_unclear_selection_never_acts_on_all_jobs(
    people: People, as_: Any, jobs: list[Job], query: str, document: dict[str, Any]
) -> None:
    answer = post_bulk(as_(people.alice), query, **{"action": "AbortJob", **document})
    assert answer.status_code in (400, 422), answer.content
    assert set(Job.objects.values_list("phase", flat=True)) == {"pending", "completed"}


def test_viewers_change_nothing_and_outsiders_find_nothing(people: People, as_: Any, jobs: list[Job]) -> None:
    assert outcomes(post_bulk(as_(people.bob), "?phase=pending", action="AbortJob")) == {"one": False, "three": False}
    assert outcomes(post_bulk(as_(people.charlie), "?phase=pending", action="AbortJob")) == {}
    assert outcomes(post_bulk(as_(people.charlie), action="AbortJob", uids=[str(jobs[0].uid)])) == {"": False}


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("by=phase", {"pending": (2, 2), "completed": (1, 0)}),
        ("by=queue&phase=pending", {"default": (2, 2)}),
        ("by=owner&q=t", {"alice": (2, 1)}),
        ("by=tenant&owner=bob", {}),
    ],
)
def test_jobs_are_counted_by_group(
    people: People, as_: Any, jobs: list[Job], query: str, counts: dict[str, Any]
) -> None:
    groups = as_(people.bob).get(f"/api/v1/jobs/groups?{query}").json()["groups"]
    assert {group["name"]: (group["jobs"], group["alive"]) for group in groups} == counts
    assert as_(people.charlie).get(f"/api/v1/jobs/groups?{query}").json()["groups"] == []


@pytest.mark.parametrize("query", ["", "?by=colour", "?by=queue&phase=odd", "?by=queue&q=%20", "?by=queue&mine=false"])
def test_unknown_grouping_is_refused(people: People, as_: Any, query: str) -> None:
    assert as_(people.alice).get(f"/api/v1/jobs/groups{query}").status_code in (400, 422)


@pytest.mark.parametrize(
    "query",
    ["quue=default", "queue=", "q=%20", "mine=false", "deleted=0", "priority_min=0.5", "sort=odd", "whose=mine"],
)
def test_lists_refuse_filters_without_effect(people: People, as_: Any, jobs: list[Job], query: str) -> None:
    client = as_(people.alice)
    assert client.get(f"/api/v1/jobs?{query}").status_code == 400
    assert client.get(f"/api/v1/jobs/groups?by=queue&{query}").status_code == 400
    clear = client.get("/api/v1/jobs?mine=true&priority_min=1&phase=pending&phase=completed&sort=name&limit=5")
    assert [job["name"] for job in clear.json()["results"]] == ["three", "two"]


@pytest.mark.parametrize("kind", ["flows", "batches", "schedules", "templates", "audit", "notifications"])
def test_other_lists_refuse_filters_without_effect(people: People, as_: Any, kind: str) -> None:
    client = as_(people.alice)
    for query in ("name=", "name=%20", "tenant=&limit=1", "nmae=x", "tenant=lab&tenant=other", "unread=maybe"):
        assert client.get(f"/api/v1/{kind}?{query}").status_code == 400, query
    assert client.get(f"/api/v1/{kind}?limit=5").status_code == 200
