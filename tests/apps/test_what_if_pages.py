"""Previews beside the submission forms, and suggestions on the page of a pending job."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.api import throttles
from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.spec_changes import SpecChange
from hekla.simulation import holders, snapshot_cache, suggestions, what_if
from hekla.simulation.simulator import Simulator
from hekla.simulation.suggestions import SuggestionResult

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
FORM = {
    "name": "", "queue": "default", "kind": "training", "max_retry": "3", "priority": "0",
    "tasks-TOTAL_FORMS": "1", "tasks-INITIAL_FORMS": "0", "files-TOTAL_FORMS": "0", "files-INITIAL_FORMS": "0",
    "tasks-0-name": "worker", "tasks-0-replicas": "6", "tasks-0-command": "", "tasks-0-cpu": "1",
}  # fmt: skip
MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: sent}
spec:
  queue: default
  tasks:
  - name: worker
    replicas: 6
    template: {spec: {containers: [{name: m, command: ["true"], resources: {requests: {cpu: 1}}}]}}
"""


@pytest.fixture(autouse=True)
def forget_snapshots() -> Iterator[None]:
    snapshot_cache.forget_all()
    yield
    snapshot_cache.forget_all()


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"tasks-0-replicas": "2"}, ["Would start now", "2 pods on node n1"]),
        ({}, ["Cannot start now", "worker with 4 pods instead of 6", "worker.replicas=4"]),
        ({"tasks-0-replicas": ""}, ["Fix the marked fields"]),
    ],
)
def test_preview_of_the_form(people: People, as_: As, changes: dict[str, str], messages: list[str]) -> None:
    answer = as_(people.alice).post(reverse("jobs_what_if"), FORM | changes)
    assert answer.status_code == 200
    for sentence in messages:
        assert sentence in answer.content.decode()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MANIFEST, "worker with 4 pods instead of 6"),
        (MANIFEST.replace("replicas: 6", "replicas: 1"), "Would start now"),
        ("kind: [", "not"),
        (MANIFEST.replace("default", "theirs"), "cannot use a queue"),
    ],
)
def test_preview_of_the_manifest(people: People, as_: As, text: str, message: str) -> None:
    assert message in as_(people.alice).post(reverse("jobs_what_if"), {"text": text}).content.decode()


def test_suggestion_fills_the_form_or_the_manifest(people: People, as_: As) -> None:
    address = reverse("jobs_what_if_take")
    answer = as_(people.alice).post(address, FORM | {"change": "worker.replicas=4"})
    assert json.loads(answer.content) == {"tasks-0-replicas": 4}
    answer = as_(people.alice).post(address, {"text": MANIFEST, "change": "worker.replicas=4"})
    assert "replicas: 4" in json.loads(answer.content)["text"]
    assert as_(people.alice).post(address, FORM | {"change": "nonsense"}).status_code == 400


def pending_job(people: People) -> Job:
    """A pending gang of three pods; two would fit."""
    busy = people.submit(
        "busy", tasks=[{"name": "main", "replicas": 2, "command": ["true"], "resources": {"cpu": "1"}}]
    )
    Pod.objects.bulk_create(_pods(busy))
    task = {"name": "main", "replicas": 3, "command": ["true"], "resources": {"cpu": "1"}}
    job = people.submit("waits", tasks=[task])
    job.waiting = [{"cause": "capacity", "action": "enqueue", "plugin": "overcommit", "code": "cluster_is_full",
                    "need": {"cpu": "3"}, "have": {}, "tasks": 0, "nodes": {}, "ever": True}]  # fmt: skip
    job.save()
    return job


def _pods(job: Job) -> list[Pod]:
    job.phase = job.gang_phase = "running"
    job.started_at = job.submitted_at
    job.save()
    facts = {"task": "main", "attempt": 1, "version": 1, "phase": "running", "node": "n1", "address": "10.0.0.1"}
    times = {"created_at": job.submitted_at, "bound_at": job.submitted_at, "started_at": job.submitted_at}
    return [Pod(job=job, index=index, slot=index, **facts, **times) for index in range(2)]


def test_pending_job_shows_suggestions_and_applies_one(people: People, as_: As) -> None:
    job = pending_job(people)
    client = as_(people.alice)
    assert reverse("job_unblock", args=[job.uid]) in client.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    html = client.get(reverse("job_unblock", args=[job.uid])).content.decode()
    assert "Position in its queue: 1 of 1." in html
    assert "too little data" in html
    assert 'value="main.replicas=2"' in html
    assert "Apply change" not in as_(people.bob).get(reverse("job_unblock", args=[job.uid])).content.decode()
    answer = client.post(reverse("job_ease", args=[job.uid]), {"change": "main.replicas=2", "revision": "1"})
    assert answer.status_code == 302
    assert Job.objects.get(pk=job.pk).replicas == 2


def test_forecast_of_a_draft_is_loaded_separately(people: People, as_: As) -> None:
    pending_job(people)
    draft = FORM | {"tasks-0-replicas": "3"}
    panel = as_(people.alice).post(reverse("jobs_what_if"), draft).content.decode()
    assert "Position in its queue: 2 of 2." in panel
    assert reverse("jobs_what_if_when") in panel
    assert "too little data" in as_(people.alice).post(reverse("jobs_what_if_when"), draft).content.decode()


def test_what_holds_a_draft_is_found_once_while_a_person_types(
    people: People, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending_job(people)
    searches, held_for = list[Job](), holders.held_for

    def counted(simulator: Simulator, row: Job, reasons: Any) -> Any:
        searches.append(row)
        return held_for(simulator, row, reasons)

    monkeypatch.setattr(holders, "held_for", counted)
    draft, client = FORM | {"tasks-0-replicas": "3"}, as_(people.alice)
    panels = [
        client.post(reverse("jobs_what_if"), draft | {"name": name}).content.decode() for name in ("one", "other")
    ]
    assert panels[0] == panels[1]
    assert len(searches) == 1


def test_suggestions_are_loaded_later_if_time_runs_out(
    people: People, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending_job(people)
    monkeypatch.setattr(what_if, "_TYPING_SECONDS", 0.0)
    draft, client = FORM | {"tasks-0-replicas": "3"}, as_(people.alice)
    panel = client.post(reverse("jobs_what_if"), draft).content.decode()
    (later,) = re.findall(r'hx-post="([^"]+)"', panel)
    assert "No smaller variant" not in panel
    assert "data-take" not in panel
    html = client.post(later, draft).content.decode()
    assert "too little data" in html
    assert 'data-take="' in html


def test_further_suggestions_are_loaded_later(people: People, as_: As, monkeypatch: pytest.MonkeyPatch) -> None:
    all_offers, client = suggestions.offers, as_(people.alice)

    def first_offer(*args: Any, **kwargs: Any) -> SuggestionResult:
        return SuggestionResult(all_offers(*args, **kwargs).offers[:1], is_cut_short=True)

    with monkeypatch.context() as busy:
        busy.setattr(suggestions, "offers", first_offer)
        panel = client.post(reverse("jobs_what_if"), FORM).content.decode()
    assert panel.count('data-take="') == 1
    (later,) = re.findall(r'hx-post="([^"]+)"', panel)
    html = client.post(later, FORM).content.decode()
    assert html.count('data-take="') > 1
    assert "worker with 4 pods instead of 6" in html


def test_suggestion_for_a_fixed_field_opens_a_clone(people: People, as_: As) -> None:
    job = pending_job(people)
    client = as_(people.alice)
    answer = client.post(reverse("job_ease", args=[job.uid]), {"change": "main.resources.cpu=500m"}, follow=True)
    assert 'name="tasks-0-cpu" value="500m"' in answer.content.decode()


def test_previews_are_throttled(people: People, as_: As, monkeypatch) -> None:
    monkeypatch.setattr(throttles, "WHAT_IFS", 1)
    answers = [as_(people.alice).post(reverse("jobs_what_if"), FORM).content.decode() for _ in range(3)]
    assert "Retrying in a few seconds" in answers[-1]


@pytest.mark.parametrize(
    "text",
    ["", "worker", "worker.replicas=x", "queue.replicas=2", "worker.queue=b", "worker.command=rm", "w.replicas=2"],
)
def test_invalid_changes_are_refused(text: str) -> None:
    spec = JobSpec.parse({"name": "j", "tasks": [{"name": "worker", "command": ["true"]}]})
    with pytest.raises(Invalid):
        SpecChange.parse(text).applied(spec)
