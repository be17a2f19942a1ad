"""The scheduling policy: its page, and REST."""

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.clusters import selectors
from hekla.apps.clusters.models import PolicyVersion
from hekla.engine.policy import DEFAULT_POLICY_TEXT
from hekla.lib.diff import DiffLine, diff_lines

__all__ = ["db", "people", "shared_people"]

OTHER = 'actions: "enqueue, allocate, preempt, backfill"\ntiers:\n- plugins:\n  - name: gang\n'


@pytest.fixture
def ada(people: People) -> Client:
    client = Client()
    client.force_login(people.ada, backend="django.contrib.auth.backends.ModelBackend")
    return client


def send(client: Client, **fields: str) -> str:
    return client.post(reverse("clusters:policy"), fields, follow=True).content.decode()


def test_preview_saves_nothing_and_keeps_the_input(people: People, ada: Client) -> None:
    people.submit()
    page = send(ada, text=OTHER, note="for the deadline", **{"try": "yes"})
    assert "Preview" in page
    assert "for the deadline" in page
    assert "preempt, backfill" in page
    assert not PolicyVersion.objects.exists()


def test_version_shows_its_diff(people: People, ada: Client) -> None:
    send(ada, text=OTHER, note="first")
    page = send(ada, text=OTHER.replace("gang", "drf"), note="second")
    removed, added = "removed: </span>  - name: gang</del>", "added: </span>  - name: drf</ins>"
    assert removed in page
    assert added in page


def test_invalid_policy_is_neither_previewed_nor_saved(people: People, ada: Client) -> None:
    for more in ({}, {"try": "yes"}):
        page = send(ada, text="actions: dance", **more)
        assert "dance" in page
        assert ">Preview<" not in page
    assert not PolicyVersion.objects.exists()


def test_policy_over_rest(people: People) -> None:
    client = APIClient()
    client.force_authenticate(people.ada)
    address = reverse("api:v1:policy", args=["sim"])
    assert client.get(address).json()["text"] == DEFAULT_POLICY_TEXT
    trial = client.post(f"{address}/trial", {"text": OTHER}, format="json").json()
    assert (trial["jobs"], trial["differences"], trial["faults"]) == (0, [], [])
    made = client.put(address, {"text": OTHER, "note": "why"}, format="json").json()
    assert (made["number"], made["note"], made["created_by"]) == (1, "why", "Ada")
    assert selectors.policy_text(people.cluster) == OTHER
    assert client.put(address, {"text": "actions: dance"}, format="json").status_code == 400
    assert client.get(reverse("api:v1:policy", args=["nowhere"])).status_code == 404


def test_diff_lines() -> None:
    assert diff_lines("a\nb\n", "a\nb\n") == []
    assert diff_lines("a\nb\n", "a\nc\n") == [DiffLine("same", "a"), DiffLine("removed", "b"), DiffLine("added", "c")]
    far = "\n".join(map(str, range(30)))
    assert DiffLine("gap", "…") in diff_lines(far, far.replace("2\n", "x\n", 1).replace("27", "y"))
