"""One action on many jobs by REST, and how many there are of what kind."""

from typing import Any
from uuid import UUID

import pytest
from tests.apps.conftest import People, as_, people

from hekla.apps.jobs.models import Job

__all__ = ["as_", "people"]
NOBODYS = "00000000-0000-4000-8000-000000000000"


def asked(client: Any, query: str = "", **document: Any) -> Any:
    return client.post(f"/api/v1/jobs/bulk{query}", document, content_type="application/json")


def outcomes(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.content
    return {one["name"]: one["done"] for one in answer.json()["outcomes"]}


@pytest.fixture
def three(people: People) -> list[Job]:
    made = [people.submit(name, priority=number) for number, name in enumerate(("one", "two", "three"))]
    Job.objects.filter(name="two").update(phase="completed")
    return made


def test_each_job_has_an_outcome_and_none_keeps_another_from_it(people: People, as_: Any, three: list[Job]) -> None:
    uids = [str(job.uid) for job in three]
    answer = asked(as_(people.alice), action="SetPriority", priority=50, uids=[*uids, NOBODYS])
    assert outcomes(answer) == {"one": True, "two": False, "three": True, "": False}
    refused = {UUID(one["uid"]): one["why"] for one in answer.json()["outcomes"] if not one["done"]}
    assert "The job has finished" in refused[three[1].uid]
    assert list(Job.objects.order_by("pk").values_list("priority", flat=True)) == [50, 1, 50]


def test_jobs_are_meant_by_the_filters_of_the_list(people: People, as_: Any, three: list[Job]) -> None:
    assert outcomes(asked(as_(people.alice), "?phase=pending&mine=1", action="AbortJob", dry_run=True)) == {
        "one": None,
        "three": None,
    }
    assert set(Job.objects.values_list("phase", flat=True)) == {"pending", "completed"}
    both = asked(as_(people.alice), "?phase=pending", action="AbortJob", uids=[str(three[0].uid), str(three[1].uid)])
    assert outcomes(both) == {"one": True, "": False}


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("", {}),
        ("?queue=", {}),
        ("?sort=name", {}),
        ("?quue=default", {"uids": [NOBODYS]}),
        ("?deleted=1", {}),
        ("?phase=odd", {}),
        ("?mine=1", {"action": "SetPriority"}),
        ("?mine=1", {"action": "SyncJob"}),
        ("?mine=1", {"uids": [NOBODYS] * 1001}),
        ("?mine=1", {"all": True}),
    ],
)
def test_what_is_said_unclearly_never_means_all_jobs(
    people: People, as_: Any, three: list[Job], query: str, document: dict[str, Any]
) -> None:
    answer = asked(as_(people.alice), query, **{"action": "AbortJob", **document})
    assert answer.status_code in (400, 422), answer.content
    assert set(Job.objects.values_list("phase", flat=True)) == {"pending", "completed"}


def test_who_may_only_look_changes_nothing_and_strangers_see_nothing(
    people: People, as_: Any, three: list[Job]
) -> None:
    assert outcomes(asked(as_(people.bob), "?phase=pending", action="AbortJob")) == {"one": False, "three": False}
    assert outcomes(asked(as_(people.charlie), "?phase=pending", action="AbortJob")) == {}
    assert outcomes(asked(as_(people.charlie), action="AbortJob", uids=[str(three[0].uid)])) == {"": False}


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("by=phase", {"pending": (2, 2), "completed": (1, 0)}),
        ("by=queue&phase=pending", {"default": (2, 2)}),
        ("by=owner&q=t", {"alice": (2, 1)}),
        ("by=tenant&owner=bob", {}),
    ],
)
def test_jobs_are_counted_by_what_they_have_in_common(
    people: People, as_: Any, three: list[Job], query: str, counts: dict[str, Any]
) -> None:
    groups = as_(people.bob).get(f"/api/v1/jobs/groups?{query}").json()["groups"]
    assert {group["name"]: (group["jobs"], group["alive"]) for group in groups} == counts
    assert as_(people.charlie).get(f"/api/v1/jobs/groups?{query}").json()["groups"] == []


@pytest.mark.parametrize("query", ["", "?by=colour", "?by=queue&phase=odd"])
def test_jobs_are_counted_by_nothing_else(people: People, as_: Any, query: str) -> None:
    assert as_(people.alice).get(f"/api/v1/jobs/groups{query}").status_code in (400, 422)
