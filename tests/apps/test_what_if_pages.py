"""What would be if: beside the forms, and on the page of a job that waits."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.api import throttles
from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.spec_changes import SpecChange
from hekla.simulation import snapshot_cache, suggestions, what_if
from hekla.simulation.suggestions import SuggestionResult

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
def _nothing_is_kept() -> Iterator[None]:
    snapshot_cache.forget_all()
    yield
    snapshot_cache.forget_all()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tasks-0-replicas": "2"}, ["Would start now", "2 pods on node n1"]),
        ({}, ["Cannot start now", "worker with 4 pods instead of 6", "worker.replicas=4"]),
        ({"tasks-0-replicas": ""}, ["Fix the marked fields"]),
    ],
)
def test_the_form_is_told_what_would_be(people: People, as_: As, changes: dict[str, str], says: list[str]) -> None:
    answer = as_(people.alice).post(reverse("jobs_what_if"), FORM | changes)
    assert answer.status_code == 200
    for sentence in says:
        assert sentence in answer.content.decode()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (MANIFEST, "worker with 4 pods instead of 6"),
        (MANIFEST.replace("replicas: 6", "replicas: 1"), "Would start now"),
        ("kind: [", "not"),
        (MANIFEST.replace("default", "theirs"), "cannot use a queue"),
    ],
)
def test_the_manifest_is_told_what_would_be(people: People, as_: As, text: str, says: str) -> None:
    assert says in as_(people.alice).post(reverse("jobs_what_if"), {"text": text}).content.decode()


def test_an_offer_fills_in_the_fields_that_it_changes(people: People, as_: As) -> None:
    address = reverse("jobs_what_if_take")
    answer = as_(people.alice).post(address, FORM | {"change": "worker.replicas=4"})
    assert json.loads(answer.content) == {"tasks-0-replicas": 4}
    answer = as_(people.alice).post(address, {"text": MANIFEST, "change": "worker.replicas=4"})
    assert "replicas: 4" in json.loads(answer.content)["text"]
    assert as_(people.alice).post(address, FORM | {"change": "nonsense"}).status_code == 400


def waiting(people: People) -> Job:
    """A gang of three of which two would have room."""
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


def test_a_waiting_job_is_told_what_would_help_and_takes_it(people: People, as_: As) -> None:
    job = waiting(people)
    client = as_(people.alice)
    assert reverse("job_unblock", args=[job.uid]) in client.get(reverse("jobs:detail", args=[job.uid])).content.decode()
    told = client.get(reverse("job_unblock", args=[job.uid])).content.decode()
    assert "Position in its queue: 1 of 1." in told
    assert "too little data" in told
    assert 'value="main.replicas=2"' in told
    assert "Apply change" not in as_(people.bob).get(reverse("job_unblock", args=[job.uid])).content.decode()
    answer = client.post(reverse("job_ease", args=[job.uid]), {"change": "main.replicas=2", "revision": "1"})
    assert answer.status_code == 302
    assert Job.objects.get(pk=job.pk).replicas == 2


def test_until_when_a_draft_would_wait_is_told_apart(people: People, as_: As) -> None:
    waiting(people)
    draft = FORM | {"tasks-0-replicas": "3"}
    box = as_(people.alice).post(reverse("jobs_what_if"), draft).content.decode()
    assert "Position in its queue: 2 of 2." in box
    assert reverse("jobs_what_if_when") in box
    assert "too little data" in as_(people.alice).post(reverse("jobs_what_if_when"), draft).content.decode()


def test_what_would_help_is_told_later_where_there_was_no_time_for_it(
    people: People, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(people)
    monkeypatch.setattr(what_if, "_TYPING_SECONDS", 0.0)
    draft, client = FORM | {"tasks-0-replicas": "3"}, as_(people.alice)
    box = client.post(reverse("jobs_what_if"), draft).content.decode()
    (later,) = re.findall(r'hx-post="([^"]+)"', box)
    assert "No smaller variant" not in box
    assert "data-take" not in box
    told = client.post(later, draft).content.decode()
    assert "too little data" in told
    assert 'data-take="' in told


def test_what_else_would_help_is_told_later_where_there_was_time_for_some(
    people: People, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, client = suggestions.offers, as_(people.alice)

    def begun(*given: Any, **more: Any) -> SuggestionResult:
        return SuggestionResult(whole(*given, **more).offers[:1], is_cut_short=True)

    with monkeypatch.context() as busy:
        busy.setattr(suggestions, "offers", begun)
        box = client.post(reverse("jobs_what_if"), FORM).content.decode()
    assert box.count('data-take="') == 1
    (later,) = re.findall(r'hx-post="([^"]+)"', box)
    told = client.post(later, FORM).content.decode()
    assert told.count('data-take="') > 1
    assert "worker with 4 pods instead of 6" in told


def test_what_cannot_be_changed_is_copied_into_a_form(people: People, as_: As) -> None:
    job = waiting(people)
    client = as_(people.alice)
    answer = client.post(reverse("job_ease", args=[job.uid]), {"change": "main.resources.cpu=500m"}, follow=True)
    assert 'name="tasks-0-cpu" value="500m"' in answer.content.decode()


def test_nobody_asks_without_end(people: People, as_: As, monkeypatch) -> None:
    monkeypatch.setattr(throttles, "WHAT_IFS", 1)
    answers = [as_(people.alice).post(reverse("jobs_what_if"), FORM).content.decode() for _ in range(3)]
    assert "Retrying in a few seconds" in answers[-1]


@pytest.mark.parametrize(
    "text",
    ["", "worker", "worker.replicas=x", "queue.replicas=2", "worker.queue=b", "worker.command=rm", "w.replicas=2"],
)
def test_what_is_no_change_is_refused(text: str) -> None:
    spec = JobSpec.parse({"name": "j", "tasks": [{"name": "worker", "command": ["true"]}]})
    with pytest.raises(Invalid):
        SpecChange.parse(text).applied(spec)
