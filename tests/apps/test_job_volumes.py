"""Volumes and policies of a job: on its page, and as rows and choices of the form."""

import re
from collections.abc import Callable

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.test_submission import form_of, minimal_form, post_data

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import ClusterObject
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.pages.job_forms.submission_form import InitialValues
from hekla.pages.submit.form_mapping import filled

As = Callable[[User], Client]
SPEC = JobSpec.parse(
    {
        "name": "mounting",
        "volumes": [
            {"name": "data", "volume_claim_name": "imagenet"},
            {"name": "out", "volume_claim": {"storage": "5Gi", "access_modes": ["ReadWriteMany"]}},
            {"name": "shm", "empty_dir": {"medium": "Memory", "size_limit": "8Gi"}},
            {"name": "tmp", "empty_dir": {}},
        ],
        "tasks": [
            {
                "name": "ps",
                "command": ["run"],
                "volume_mounts": [
                    {"name": "data", "mount_path": "/data", "read_only": True},
                    {"name": "shm", "mount_path": "/dev/shm"},
                ],
            },
            {
                "name": "worker",
                "command": ["run"],
                "volume_mounts": [
                    {"name": "out", "mount_path": "/work/out"},
                    {"name": "tmp", "mount_path": "/scratch"},
                ],
            },
        ],
    }
)


def test_page_lists_volumes_with_mounts(people: People, as_: As) -> None:
    job = services.submit(spec=SPEC, tenant=people.lab, user=people.alice, now=clock.now())
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid]), {"tab": "settings"}).content.decode()
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    for row in (
        "Volume data claim imagenet /data ps · read only",
        "Volume out claim of 5Gi, deleted with the job /work/out worker",
        "Volume shm memory of the pod, at most 8Gi /dev/shm ps",
        "Volume tmp empty folder per pod /scratch worker",
    ):
        assert row in words


def sent_of(spec: JobSpec) -> QueryDict:
    return post_data(form_of(None, filled(spec)))


def test_each_volume_is_a_row_of_the_form() -> None:
    rows = filled(SPEC).volumes
    assert [(row["source"], row["path"], row["tasks"], row["claim"] or row["size"]) for row in rows] == [
        ("claim", "/data", "ps", "imagenet"),
        ("memory", "/dev/shm", "ps", "8Gi"),
        ("shared", "/work/out", "worker", "5Gi"),
        ("folder", "/scratch", "worker", ""),
    ]
    form = form_of(sent_of(SPEC), InitialValues())
    assert (form.spec(), form.also) == (SPEC, ["plugins and their arguments"])


def test_volumes_that_rows_cannot_express_are_passed_on() -> None:
    document = SPEC.document()
    document["tasks"][0]["volume_mounts"][0]["sub_path"] = "train"
    spec = JobSpec.parse(document)
    form = form_of(sent_of(spec), InitialValues())
    assert (form.spec(), len(form.volumes.forms)) == (spec, 0)
    assert form.also == ["volumes", "plugins and their arguments", "ps: mounted volumes", "worker: mounted volumes"]
    first = filled(spec)
    sent = post_data(form_of(None, InitialValues(first.job, first.tasks[1:], first.files)))
    without = form_of(sent, InitialValues()).spec()
    assert without is not None
    assert [volume.name for volume in without.volumes] == ["out", "tmp"]
    row = filled(SPEC).volumes[2] | {"name": "out", "path": "/more", "tasks": ""}
    more = form_of(post_data(form_of(None, InitialValues(first.job, first.tasks, first.files, [row]))), InitialValues())
    both = more.spec()
    assert both is not None, more.problems
    assert [volume.name for volume in both.volumes] == ["data", "out", "shm", "tmp", "volume-1"]


TYPED = {"volumes-TOTAL_FORMS": "3", "volumes-INITIAL_FORMS": "0"} | {
    f"volumes-{row}-{name}": text
    for row, values in enumerate(
        [
            {"source": "claim", "claim": "imagenet", "path": "/data", "read_only": "on"},
            {"source": "new", "size": "10 gb", "path": "/work/out", "tasks": "main"},
            {"source": "folder"},
        ]
    )
    for name, text in values.items()
}


def test_typed_volumes_are_mounted(people: People, as_: As) -> None:
    claim = {"cluster": people.cluster, "kind": "PersistentVolumeClaim", "digest": "d"}
    names = (f"{people.lab.slug}/imagenet", f"{people.lab.slug}/job/out", "elsewhere/secret")
    ClusterObject.objects.bulk_create(ClusterObject(name=name, **claim) for name in names)
    page = as_(people.alice).get(reverse("jobs:submit"))
    assert page.context["claims"] == ["imagenet"]
    assert as_(people.alice).post(reverse("jobs:submit"), minimal_form(**TYPED)).status_code == 302
    spec = Job.objects.get().spec
    assert spec["volumes"] == [
        {"name": "volume-1", "volume_claim_name": "imagenet"},
        {"name": "volume-2", "volume_claim": {"storage": "10G"}},
    ]
    assert spec["tasks"][0]["volume_mounts"] == [
        {"name": "volume-1", "mount_path": "/data", "read_only": True},
        {"name": "volume-2", "mount_path": "/work/out"},
    ]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"volumes-0-path": "data"}, "volumes-0-path", "absolute path"),
        ({"volumes-1-path": "/data"}, "volumes-1-path", "Another volume of the task is mounted"),
        ({"volumes-1-path": ""}, "volumes-1-path", "Enter the path"),
        ({"volumes-0-claim": ""}, "volumes-0-claim", "Enter the name of the claim"),
        ({"volumes-1-size": ""}, "volumes-1-size", "Enter the size"),
        ({"volumes-1-size": "0"}, "volumes-1-size", "more than zero"),
        ({"volumes-1-claim": "imagenet"}, "volumes-1-claim", "Only for an existing claim"),
        ({"volumes-1-tasks": "ps"}, "volumes-1-tasks", "Its tasks: main"),
    ],
)
def test_wrong_volumes_are_reported_at_their_fields(changes: dict[str, str], field: str, words: str) -> None:
    data = QueryDict(mutable=True)
    data.update(minimal_form(**TYPED | changes))
    form = form_of(data, InitialValues())
    assert form.spec() is None
    assert {name: [words in message for message in messages] for name, messages in form.problems.items()} == {
        f"id_{field}": [True]
    }


@pytest.mark.parametrize(
    ("policies", "choices", "carried"),
    [
        ([], ("", ""), 0),
        ([{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}], ("RestartJob", "RestartJob"), 0),
        ([{"events": ["PodEvicted"], "action": "RestartTask"}], ("", "RestartTask"), 0),
        (
            [{"events": ["PodFailed"], "action": "AbortJob"}, {"events": ["PodEvicted"], "action": "RestartPod"}],
            ("AbortJob", "RestartPod"),
            0,
        ),
        ([{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}], ("", ""), 1),
        ([{"exit_code": 3, "action": "RestartJob"}, {"events": ["PodFailed"], "action": "AbortJob"}], ("", ""), 2),
        (
            [{"events": ["PodFailed"], "action": "AbortJob"}, {"exit_code": 3, "action": "RestartJob"}],
            ("AbortJob", ""),
            1,
        ),
    ],
)
def test_policies_are_choices_of_the_form(
    policies: list[dict[str, object]], choices: tuple[str, str], carried: int
) -> None:
    completes = [{"events": ["TaskCompleted"], "action": "CompleteJob"}]
    task = {"name": "main", "command": ["run"], "policies": [*policies, *completes]}
    spec = JobSpec.parse({"name": "a", "policies": policies, "tasks": [task]})
    form = form_of(sent_of(spec), InitialValues())
    assert form.spec() == spec
    assert (form.job["on_failure"].value(), form.job["on_eviction"].value()) == choices
    assert len(filled(spec).job["rest"].get("policies", [])) == carried
    assert form.tasks.forms[0]["on_completion"].value() == ("" if carried else "CompleteJob")
