"""The pages of the scheduler's decisions, REST and the command line: one cycle, and how it judged a job."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.stored_cycles import PLACED, URGENT, WIDE, recorded_scene, store_cycle

from hekla.apps.cycle_records.models import CycleRecord
from hekla.cli.main import hekla
from hekla.scheduling import cycle_records
from hekla.scheduling.cycle_document import document
from hekla.simulation import cycle_report

__all__ = ["db", "people", "shared_people"]


@pytest.fixture
def row(people: People) -> CycleRecord:
    return store_cycle(people.cluster)


@pytest.fixture
def ada(people: People) -> Client:
    client = Client()
    client.force_login(people.ada, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def rest(people: People) -> APIClient:
    client = APIClient()
    client.force_authenticate(people.ada)
    return client


def text(client: Client, view: str, *keys: object) -> str:
    answer = client.get(reverse(view, args=keys))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_list_says_what_was_not_recorded(people: People, ada: Client) -> None:
    assert "No decisions yet" in text(ada, "decisions:list")
    found = store_cycle(people.cluster)
    store_cycle(people.cluster, data=None, size=0, omission="cpu", limit="budget")
    page = text(ada, "decisions:list")
    assert reverse("decisions:detail", args=[found.pk]) in page
    assert "2 cycles are stored" in page
    assert "1 of them has no record: recording would have slowed down the controller." in page
    assert "a disruption budget protects a victim" in page


def test_cycle_shows_actions_in_order_and_verdicts(row: CycleRecord, ada: Client) -> None:
    page = text(ada, "decisions:detail", row.pk)
    assert "The engine decided the same again" in page
    actions = [page.index(f"{at}. {name}") for at, name in enumerate(("enqueue", "allocate", "preempt", "backfill"), 1)]
    assert actions == sorted(actions)
    for words in ("1 pod placed", "1 pod pipelined", "3 pods evicted", "Waiting after the cycle"):
        assert words in page
    assert reverse("decisions:job", args=[row.pk, WIDE]) in page


def test_job_shows_scores_vetoes_and_victims(row: CycleRecord, ada: Client) -> None:
    page = text(ada, "decisions:job", row.pk, PLACED)
    assert "1 of 3 nodes were candidates." in page
    for words in ("binpack", "nodeorder", "predicates: taint", "too little cpu", "chosen"):
        assert words in page
    page = text(ada, "decisions:job", row.pk, URGENT)
    assert "may be evicted" in page
    assert "was evicted for 2 by preempt." in page


def test_job_that_was_not_part_and_cycle_without_record(people: People, row: CycleRecord, ada: Client) -> None:
    assert ada.get(reverse("decisions:job", args=[row.pk, 77])).status_code == 404
    assert ada.get(reverse("decisions:detail", args=[2**70])).status_code == 404
    bare = store_cycle(people.cluster, data=None, size=0, omission="size")
    assert "This cycle was not recorded: too large." in text(ada, "decisions:detail", bare.pk)
    assert ada.get(reverse("decisions:file", args=[bare.pk])).status_code == 404
    damaged = store_cycle(people.cluster, data=b"x")
    assert "its record is damaged" in text(ada, "decisions:detail", damaged.pk)


def test_large_cycle_is_left_to_the_command_line(
    row: CycleRecord, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle_report, "MAX_PODS", 2)
    monkeypatch.setattr(cycle_records, "load", lambda _row: pytest.fail("it is not read"))
    for page in (text(ada, "decisions:detail", row.pk), text(ada, "decisions:job", row.pk, PLACED)):
        assert "hekla decisions replay FILE" in page


def test_cycles_are_replayed_one_at_a_time(
    row: CycleRecord, ada: Client, rest: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle_records, "_PATIENCE_SECONDS", 0.0)
    with cycle_records.one_at_a_time():
        assert "Other cycles are being replayed now." in text(ada, "decisions:detail", row.pk)
        for view in ("api:v1:cycle", "api:v1:cycle_file"):
            assert rest.get(reverse(view, args=[row.pk])).status_code == 409
    assert "The engine decided the same again" in text(ada, "decisions:detail", row.pk)


def test_rest_says_the_same(row: CycleRecord, rest: APIClient) -> None:
    (listed,) = rest.get(reverse("api:v1:cycles", args=[row.cluster.name])).json()
    assert (listed["id"], listed["binds"], listed["evictions"]) == (row.pk, 1, 3)
    cycle = rest.get(reverse("api:v1:cycle", args=[row.pk])).json()
    assert cycle["is_equal"]
    assert [one["name"] for one in cycle["actions"]] == ["enqueue", "allocate", "preempt", "backfill"]
    (wide,) = [one for one in cycle["waiting"] if one["job"]["uid"] == WIDE]
    assert "cpu" in wide["reasons"][0].lower()
    job = rest.get(reverse("api:v1:cycle_job", args=[row.pk, PLACED])).json()
    assert job["binds"] == {"1-w-0": "free"}
    (chosen,) = [one for one in job["examinations"][0]["nodes"] if one["is_chosen"]]
    assert sum(chosen["scores"].values()) == pytest.approx(chosen["total"])


def test_file_is_replayed_on_the_command_line(row: CycleRecord, rest: APIClient, ada: Client, tmp_path: Path) -> None:
    files = [b"".join(client.get(reverse(view, args=[row.pk])).streaming_content)
             for client, view in ((rest, "api:v1:cycle_file"), (ada, "decisions:file"))]  # fmt: skip
    assert files[0] == files[1]
    file = tmp_path / "cycle.json"
    file.write_bytes(files[0])
    answer = CliRunner().invoke(hekla, ["decisions", "replay", str(file)])
    assert (answer.exit_code, answer.output) == (0, "Equal: 1 binds, 3 evictions, 1 pipelined.\n")


def test_a_changed_file_is_reported_as_different(tmp_path: Path) -> None:
    found = document(recorded_scene())
    found["outcome"]["binds"] = []
    file = tmp_path / "cycle.json"
    file.write_text(json.dumps(found, default=list))
    answer = CliRunner().invoke(hekla, ["decisions", "replay", str(file), "--json"])
    assert answer.exit_code == 1
    assert json.loads(answer.output)["differences"] == [["binds", "1 1/0 free", False]]
    file.write_text("{}")
    assert "cannot be read" in CliRunner().invoke(hekla, ["decisions", "replay", str(file)]).output
