"""Mistakes in the submission form: all are reported in one round, each at its field and with a way out."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_submission import minimal_form

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Job

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]

# Field: what was typed, and the words that name the way out.
MISTAKES = {
    "name": ("My Job", "Use lowercase letters"),
    "queue": ("fast", "Available queues: default"),
    "min_available": ("0", "greater than or equal to 1"),
    "priority": ("high", "whole number"),
    "max_retry": ("0", "greater than or equal to 1"),
    "kind": ("my kind", "Use lowercase letters"),
    "secrets": ("token", "name: value"),
    "tasks-0-name": ("Worker 1", "Use lowercase letters"),
    "tasks-0-replicas": ("two", "whole number"),
    "tasks-0-command": ("python 'train.py", "quotation mark"),
    "tasks-0-cpu": ("4 kernels", "Examples: 2"),
    "tasks-0-memory": ("8", "enter 8Gi"),
    "tasks-0-gpus": ("one", "Examples: 2"),
    "tasks-0-env": ("DEBUG", "NAME=value"),
    "tasks-0-node_selector": ("zone", "label=value"),
    "tasks-0-tolerations": ("gpu:Never", "NoSchedule"),
    "tasks-0-ports": ("8080", "web=8080"),
    "tasks-0-gpu_utilization": ("700", "less than or equal to 100"),
    "tasks-1-replicas": ("-1", "greater than or equal to 0"),
    "tasks-1-command": ("", "required"),
    "tasks-1-memory": ("512m", "enter 512Mi"),
    "tasks-1-cpu": ("1e9", "Examples: 2"),
    "files-0-name": ("", "Enter a file name"),
    "files-1-name": ("../train.py", ".."),
}


def many_mistakes() -> dict[str, str]:
    more = {"tasks-TOTAL_FORMS": "2", "tasks-1-name": "server", "files-TOTAL_FORMS": "2", "files-0-text": "print(1)"}
    return minimal_form(**more) | {field: typed for field, (typed, _words) in MISTAKES.items()}


def test_many_mistakes_are_reported_at_once_and_nothing_is_lost(people: People, as_: As) -> None:
    page = as_(people.alice).post(reverse("jobs:submit"), many_mistakes())
    html = page.content.decode()
    for field, (typed, words) in MISTAKES.items():
        assert words in " ".join(problems_of(page, field)), (field, problems_of(page, field))
        assert f'href="#id_{field}"' in html, field
        assert str(bound(page, field).value() or "") == typed, field
    assert not Job.objects.exists()


def test_check_of_a_draft_finds_the_same_problems(people: People, as_: As) -> None:
    answer = as_(people.alice).post(reverse("jobs:submit"), many_mistakes() | {"do": "check"}).json()
    assert {field.removeprefix("id_") for field in answer["problems"]} == set(MISTAKES)


def test_what_only_the_console_knows_is_reported_beside_what_is_typed_wrong(people: People, as_: As) -> None:
    people.submit("taken")
    wrong = {"name": "taken", "tasks-0-cpu": "100k", "tasks-0-memory": "2TB", "priority": "x", "kind": "adopted"}
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**wrong))
    found = {field: problems_of(page, field) for field in wrong}
    assert all(len(problems) == 1 for problems in found.values()), found
    assert "Choose another name" in found["name"][0]
    assert "The largest node has" in found["tasks-0-cpu"][0]
    assert "The largest node has" in found["tasks-0-memory"][0]


def test_closed_queue_does_not_hide_other_problems(people: People, as_: As) -> None:
    people.submit("taken")
    people.queue.state = "closed"
    people.queue.save()
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(name="taken"))
    assert [len(problems_of(page, field)) for field in ("name", "queue")] == [1, 1]


@pytest.mark.parametrize(
    ("typed", "stored"),
    [("8 GB", "8G"), ("8gib", "8Gi"), ("8 Gi", "8Gi"), ("1.5 TB", "1.5T"), ("512 MB", "512M"), ("100KB", "100k")],
)
def test_units_of_memory_are_understood(people: People, as_: As, typed: str, stored: str) -> None:
    values = {"tasks-0-memory": typed, "tasks-0-cpu": "500 m"}
    as_(people.ada).post(reverse("jobs:submit"), minimal_form(**values) | {"do": "yaml"})
    page = as_(people.alice).post(reverse("jobs:submit"), minimal_form(**values) | {"do": "yaml"})
    text = page.context["form"]["text"].value()
    assert f"memory: {stored}" in text
    assert "cpu: 500m" in text


def bound(page: object, field: str) -> object:
    """The bound field of a posted name."""
    context = page.context  # type: ignore[attr-defined]
    prefix, _dash, rest = field.partition("-")
    if not rest:
        return context["form"][field]
    number, _dash, name = rest.partition("-")
    return context[prefix].forms[int(number)][name]


def problems_of(page: object, field: str) -> list[str]:
    return [str(error) for error in bound(page, field).errors]  # type: ignore[attr-defined]


MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mine, namespace: elsewhere}
spec:
  queue: fast
  tasks:
    - name: main
      template: {spec: {containers: [{name: c, image: x, command: [sh]}]}}
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (" \n", []),
        ("a: [", ["Line 2, column 1: invalid YAML: did not find expected node content."]),
        (MANIFEST.replace("queue:", "queeue:"), ["Line 5: Unknown field “queeue”. Did you mean “queue”?"]),
        (
            MANIFEST,
            [
                "Line 5: Lab cannot use a queue “fast”. Available queues: default.",
                "Line 3: metadata.namespace: ignored: a job belongs",
            ],
        ),
    ],
)
def test_editor_shows_the_mistakes_of_a_manifest_by_line(people: People, as_: As, text: str, lines: list[str]) -> None:
    found = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text, "do": "check"}).json()
    assert len(found["problems"]) == len(lines), found["problems"]
    words = [one["words"][: len(line)] for one, line in zip(found["problems"], lines, strict=True)]
    assert words == lines
    assert found["values"]["queue"] == ["default"]
    assert "RestartJob" in found["values"]["action"]
    assert not Job.objects.exists()


def test_check_of_a_hostile_manifest_is_bounded(people: People, as_: As) -> None:
    text = "name: x\ntasks:\n" + "- name: main\n  command: [x]\n  nonsense: 1\n" * 5_000
    found = as_(people.alice).post(reverse("jobs:submit_yaml"), {"text": text, "do": "check"}).json()
    assert len(found["problems"]) == 51
    assert found["problems"][0]["line"] == 5
    assert found["problems"][-1]["message"].startswith("… and ")
    assert len(found["fields"]) < 10
    assert "replicas" in found["fields"]["tasks[]"]


def test_only_pages_with_an_editor_allow_its_styles(people: People, as_: As) -> None:
    policies = [
        as_(people.alice).get(reverse(name)).headers["Content-Security-Policy"]
        for name in ("jobs:submit_yaml", "jobs:submit")
    ]
    assert ["style-src 'self' 'nonce-" in policy for policy in policies] == [True, False]
