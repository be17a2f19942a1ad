"""Search by name: everything that the reader can see, and nothing else."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.flows import services as flows
from hekla.apps.search import selectors
from hekla.apps.search.registry import LIMIT_OF_EACH
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

SPEC = JobSpec.parse({"name": "digits-template", "tasks": [{"name": "main", "command": ["true"]}]})


def found(user: User, text: str) -> list[tuple[str, str]]:
    return [(hit.kind, hit.name) for hit in selectors.find(user, text, "en")]


def test_search_covers_every_kind(people: People) -> None:
    people.submit("digits-one")
    flows.create_template(spec=SPEC, tenant=people.lab, user=people.alice, now=clock.now())
    assert found(people.alice, "DIGITS")[:2] == [("job", "digits-one"), ("template", "digits-template")]
    assert ("queue", people.queue.name) in found(people.alice, people.queue.name)
    assert ("tenant", "Lab") in found(people.alice, "lab")
    assert ("person", "Bob") in found(people.alice, "bob")
    assert ("node", "n") not in found(people.alice, "n"), "one letter is too short"
    assert any(kind == "help" for kind, _ in found(people.alice, "preempt"))


def test_hidden_rows_are_not_found(people: People) -> None:
    job = people.submit("digits-one")
    for text in ("digits-one", str(job.uid), "Lab", "alice"):
        assert {kind for kind, _ in found(people.charlie, text)} <= {"help"}
    assert ("person", "Alice") in found(people.ada, "alice")


def test_uid_finds_its_job(people: People) -> None:
    job = people.submit("digits-one")
    [hit] = selectors.find(people.alice, str(job.uid), "en")
    assert hit.path == reverse("jobs:detail", args=[job.uid])


@pytest.mark.parametrize("text", ["", " ", "x", "\0\0\0", "%d%", "d__its", "x" * 10_000])
def test_unsuitable_text_finds_nothing(people: People, text: str) -> None:
    people.submit("digits-one")
    assert found(people.alice, text) == []


def test_query_count_is_constant(people: People) -> None:
    def query_count() -> int:
        with CaptureQueriesContext(connection) as queries:
            selectors.find(people.alice, "digits", "en")
        return len(queries)

    few = query_count()
    assert few <= 6, "one for all that tenants own, one for each other kind, and one for the rights of the person"
    for number in range(8):
        people.submit(f"digits-{number}")
    assert [kind for kind, _ in found(people.alice, "digits")].count("job") == LIMIT_OF_EACH
    assert query_count() <= few


def test_page_and_rest_have_the_same_results(people: People) -> None:
    people.submit("digits-one")
    client, program = Client(), APIClient()
    client.force_login(people.alice, backend="django.contrib.auth.backends.ModelBackend")
    program.force_authenticate(people.alice)
    page = client.get(reverse("search:results"), {"q": "digits-"}).content.decode()
    [hit] = [one for one in program.get("/api/v1/search?q=digits-").json() if one["kind"] == "job"]
    assert (hit["name"], hit["kind_name"], hit["icon"]) == ("digits-one", "Jobs", "jobs")
    assert f'<a href="{hit["path"]}">digits-one</a>' in page
    assert "at least two letters" in client.get(reverse("search:results")).content.decode()
    assert "No results" in client.get(reverse("search:results"), {"q": "nowhere-at-all"}).content.decode()
