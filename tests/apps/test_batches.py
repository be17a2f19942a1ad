"""Batches: atomic submission, stop, retry and access."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.support.markup import tidy

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors, services
from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.domain import formats
from hekla.domain.errors import Forbidden, Invalid, NotFound, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock
from hekla.pages.batches import live as live_views

__all__ = ["db", "people", "shared_people"]
As = Callable[[User], Client]
JOB = {"tasks": [{"name": "main", "command": ["train", "{{ lr }}"], "resources": {"cpu": "1"}}]}
MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: whatever}
spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: [train, "{{ lr }}"]}]}}}]}
"""


def sweep(**changes: object) -> SweepSpec:
    return SweepSpec.parse({"name": "lr", "parameters": {"lr": [3, 20, 100]}, "job": JOB, **changes})


def submit(people: People, **changes: object) -> Batch:
    return services.submit_sweep(spec=sweep(**changes), tenant=people.lab, user=people.alice, now=clock.now())


def names() -> list[str]:
    return list(Job.objects.order_by("submitted_at").values_list("name", flat=True))


def kinds(batch: Batch) -> list[str]:
    found = LoggedEvent.objects.filter(subject=f"batch:{batch.uid}").order_by("id")
    return list(found.values_list("kind", flat=True))


def test_a_sweep_is_submitted_in_order_with_its_parameters(people: People) -> None:
    batch = submit(people)
    assert names() == ["lr-1", "lr-2", "lr-3"]
    members = selectors.current(batch)
    assert [(m.number, m.parameters["lr"], m.job.spec["tasks"][0]["command"]) for m in members] == [
        (1, "3", ["train", "3"]), (2, "20", ["train", "20"]), (3, "100", ["train", "100"]),
    ]  # fmt: skip
    assert {m.job.owner for m in members} == {people.alice}
    assert LoggedEvent.objects.filter(kind="JobSubmitted").count() == 3
    assert kinds(batch) == ["BatchSubmitted"]


def test_a_thousand_jobs_are_one_submission(people: People, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(60):
        batch = submit(people, parameters={"lr": list(range(1000))})
    assert BatchJob.objects.filter(batch=batch).count() == Job.objects.count() == 1000


# All or nothing.


def _job_name_exists(people: People) -> str:
    people.submit("lr-2")
    return "jobs with these names already: lr-2"


def _close_queue(people: People) -> str:
    queues.set_state(people.queue, "closed", by=people.ada, actor=PLATFORM, now=clock.now())
    return "is closed since"


def _batch_name_exists(people: People) -> str:
    services.submit_file(
        name="lr", specs=[formats.load(MANIFEST).spec], tenant=people.lab, user=people.alice, now=clock.now()
    )
    return "has a batch “lr” already"


@pytest.mark.parametrize("arrange", [_job_name_exists, _close_queue, _batch_name_exists])
def test_refused_submission_leaves_nothing(people: People, arrange: Callable[[People], str]) -> None:
    sentence = arrange(people)
    before = (Job.objects.count(), Batch.objects.count(), LoggedEvent.objects.count())
    with pytest.raises(Refused, match=sentence):
        submit(people)
    assert (Job.objects.count(), Batch.objects.count(), LoggedEvent.objects.count()) == before


def test_one_invalid_job_refuses_the_batch(people: People) -> None:
    sizes = [("small", "1"), ("large", "64"), ("other", "1"), ("small", "1")]
    specs = [
        JobSpec.parse({"name": name, "tasks": [{"name": "main", "command": ["ls"], "resources": {"cpu": cpu}}]})
        for name, cpu in sizes
    ]
    with pytest.raises(Invalid) as raised:
        services.submit_file(name="f", specs=specs, tenant=people.lab, user=people.alice, now=clock.now())
    assert raised.value.problems[0].path == "jobs.2.tasks.0.resources.cpu"
    assert raised.value.problems[-1].path == "jobs.4.name"
    assert (Job.objects.count(), Batch.objects.count()) == (0, 0)


def test_missing_secret_of_one_job_is_found(people: People) -> None:
    def job(name: str, word: str) -> JobSpec:
        task = {"name": "main", "command": ["echo", word]}
        return JobSpec.parse({"name": name, "tasks": [task], "plugins": {"openpai": []}})

    specs = [job("open", "hello"), job("closed", "<% $secrets.key %>")]
    with pytest.raises(Invalid, match="secret “key” has no value"):
        services.submit_file(name="f", specs=specs, tenant=people.lab, user=people.alice, now=clock.now())
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", ["", "Capital", "x" * 41, "-"])
def test_invalid_batch_name_is_refused(people: People, name: str) -> None:
    spec = formats.load(MANIFEST).spec
    with pytest.raises(Invalid) as raised:
        services.submit_file(name=name, specs=[spec], tenant=people.lab, user=people.alice, now=clock.now())
    assert raised.value.problems[0].path == "name"


def test_viewer_cannot_submit(people: People) -> None:
    with pytest.raises(Forbidden):
        services.submit_sweep(spec=sweep(), tenant=people.lab, user=people.bob, now=clock.now())


# Stop and retry.


def test_stop_skips_finished_jobs(people: People) -> None:
    batch = submit(people)
    Job.objects.filter(name="lr-1").update(phase="completed")
    assert services.stop(batch, user=people.alice, now=clock.now()) == 2
    assert services.stop(batch, user=people.alice, now=clock.now()) == 0
    assert set(Job.objects.exclude(name="lr-1").values_list("phase", flat=True)) <= {"aborting", "aborted"}
    assert kinds(batch) == ["BatchSubmitted", "BatchStopped"]
    with pytest.raises(Forbidden):
        services.stop(batch, user=people.bob, now=clock.now())


def test_failed_jobs_are_retried(people: People) -> None:
    batch = submit(people)
    Job.objects.filter(name="lr-1").update(phase="completed")
    Job.objects.filter(name__in=["lr-2", "lr-3"]).update(phase="failed")
    assert services.retry_failed(batch, user=people.alice, now=clock.now()) == 2
    assert services.retry_failed(batch, user=people.alice, now=clock.now()) == 0
    Job.objects.filter(name="lr-2-r2").update(phase="failed")
    assert services.retry_failed(batch, user=people.alice, now=clock.now()) == 1
    assert names() == ["lr-1", "lr-2", "lr-3", "lr-2-r2", "lr-3-r2", "lr-2-r3"]
    members = selectors.current(batch)
    assert [(m.number, m.attempt, m.parameters["lr"]) for m in members] == [(1, 1, "3"), (2, 3, "20"), (3, 2, "100")]
    assert members[1].job.spec["tasks"][0]["command"] == ["train", "20"]
    assert kinds(batch) == ["BatchSubmitted", "BatchRetried", "BatchRetried"]
    assert selectors.phase_counts([batch]) == {batch.pk: {"completed": 1, "pending": 2}}


def test_retry_shortens_a_long_name(people: People) -> None:
    spec = formats.load_many("{name: " + "n" * 53 + ", tasks: [{name: m, command: [ls]}]}")[0].spec
    batch = services.submit_file(name="f", specs=[spec], tenant=people.lab, user=people.alice, now=clock.now())
    Job.objects.update(phase="failed")
    services.retry_failed(batch, user=people.alice, now=clock.now())
    assert names()[-1] == "n" * 50 + "-r2"


# Pages.


def fill(**changes: str) -> dict[str, str]:
    return {"name": "lr", "how": "grid", "parameters": "lr = 3, 20, 100", "manifest": MANIFEST, **changes}


def test_preview_then_submission(people: People, as_: As) -> None:
    alice = as_(people.alice)
    page = alice.post(reverse("batches:sweep"), fill(do="look")).content.decode()
    assert "3 jobs would be submitted" in page
    assert "<code>train 20</code>" in tidy(page)
    assert "lr = 3, 20, 100" in page
    assert not Batch.objects.exists()
    answer = alice.post(reverse("batches:sweep"), fill(do="submit"))
    assert answer["Location"] == reverse("batches:detail", args=[Batch.objects.get().uid])
    detail = as_(people.bob).get(answer["Location"]).content.decode()
    assert "lr-3" in detail
    assert "?sort=p.lr" in detail
    assert 'aria-label="Pending: 3"' in tidy(detail)
    assert "Stop all" not in detail
    assert "Stop all" in alice.get(answer["Location"]).content.decode()


def test_rows_of_a_table_are_jobs(people: People, as_: As) -> None:
    """Pasted, or as a file, whose text the page then has for correction."""
    alice = as_(people.alice)
    pasted = fill(do="look", how="table", parameters="lr\tseed\n0.1\t1\n")
    assert "No command or variable uses {{ seed }}" in alice.post(reverse("batches:sweep"), pasted).content.decode()
    wrong = fill(do="submit", table=SimpleUploadedFile("runs.csv", b"lr\n3\n20,5\n"))  # type: ignore[arg-type]
    page = alice.post(reverse("batches:sweep"), wrong)
    assert page.context["form"].errors["parameters"] == ["Row 2 has 2 values. The table has 1 columns."]
    assert (page.context["form"]["parameters"].value(), page.context["form"]["how"].value()) == (
        "lr\n3\n20,5\n",
        "table",
    )
    right = fill(do="submit", table=SimpleUploadedFile("runs.csv", b"\xef\xbb\xbflr\n3\n20\n"))  # type: ignore[arg-type]
    alice.post(reverse("batches:sweep"), right)
    assert [job.spec["tasks"][0]["command"][-1] for job in Job.objects.order_by("pk")] == ["3", "20"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": "lr 3"}, "is not in the form"),
        ({"parameters": "lr=1\nlr=2"}, "is set twice"),
        ({"parameters": "lr=1\nmomentum=2"}, "uses {{ momentum }}"),
        ({"parameters": "lr=0.1..1 log"}, "Ranges need a random sweep"),
        ({"how": "random"}, "Enter the number of samples"),
        ({"manifest": MANIFEST.replace("{{ lr }}", "{{ rate }}")}, "Unknown parameter “rate”"),
        ({"manifest": "kind: Job\n"}, "apiVersion"),
        ({"name": "Lr"}, "is not a valid name"),
    ],
)
@pytest.mark.parametrize("do", ["look", "submit"])
def test_form_errors_keep_the_input(people: People, as_: As, changes: dict[str, str], message: str, do: str) -> None:
    page = as_(people.alice).post(reverse("batches:sweep"), fill(do=do, **changes)).content.decode()
    assert message in page
    assert ">\nlr" in page or "parameters" in changes
    assert "metadata: {name: whatever}" in page or "manifest" in changes
    assert not Job.objects.exists()


def test_file_is_previewed_and_submitted(people: People, as_: As) -> None:
    text = MANIFEST.replace("whatever", "first") + "---\n" + MANIFEST.replace("whatever", "second")
    alice, address = as_(people.alice), reverse("batches:file")
    page = alice.post(address, {"name": "both", "text": text, "do": "look"}).content.decode()
    assert "2 jobs would be submitted" in page
    alice.post(address, {"name": "both", "text": text, "do": "submit"})
    assert names() == ["first", "second"]
    wrong = alice.post(address, {"name": "again", "text": text.replace("second", "Second")}).content.decode()
    assert "document 2.metadata.name" in wrong
    assert "first" in wrong


def test_parameter_values_are_escaped(people: People, as_: As) -> None:
    batch = submit(people, parameters={"lr": ["<script>alert(1)</script>"]})
    page = as_(people.alice).get(reverse("batches:detail", args=[batch.uid])).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def order(page: str) -> list[str]:
    found = {name: page.find(f">{name}</a>") for name in ("lr-1", "lr-2", "lr-3")}
    return sorted((name for name, place in found.items() if place >= 0), key=lambda name: found[name])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["lr-1", "lr-2", "lr-3"]),
        ("sort=-number", ["lr-3", "lr-2", "lr-1"]),
        ("sort=p.lr", ["lr-1", "lr-2", "lr-3"]),
        ("sort=-p.lr", ["lr-3", "lr-2", "lr-1"]),
        ("sort=phase", ["lr-1", "lr-3", "lr-2"]),
        ("phase=completed", ["lr-2"]),
        ("q=lr%3D20", ["lr-2"]),
        ("q=LR-3", ["lr-3"]),
        ("q=nothing", []),
        ("sort=nonsense&page=99", ["lr-1", "lr-2", "lr-3"]),
        ("page=%C2%B2", ["lr-1", "lr-2", "lr-3"]),
    ],
)
def test_table_is_filtered_and_sorted_by_the_query(people: People, as_: As, query: str, expected: list[str]) -> None:
    batch = submit(people)
    Job.objects.filter(name="lr-2").update(phase="completed")
    page = as_(people.alice).get(f"{reverse('batches:detail', args=[batch.uid])}?{query}").content.decode()
    assert order(page) == expected
    assert order(live_views._batch(people.alice, {"uid": str(batch.uid), "query": query})) == expected


def test_large_batch_is_paged(people: People, as_: As, django_assert_max_num_queries: Any) -> None:
    batch = submit(people, parameters={"lr": list(range(250))})
    client, address = as_(people.alice), reverse("batches:detail", args=[batch.uid])
    with django_assert_max_num_queries(20):
        page = client.get(f"{address}?page=3&q=lr-").content.decode()
    assert page.count('<tr id="run-') == 50
    assert "page=2" in page


def test_stop_and_retry_buttons(people: People, as_: As) -> None:
    batch = submit(people)
    alice = as_(people.alice)
    answer = alice.post(reverse("batches:stop", args=[batch.uid]))
    assert "Stopping 3 jobs" in " ".join(map(str, get_messages(answer.wsgi_request)))
    Job.objects.update(phase="failed")
    answer = alice.post(reverse("batches:retry", args=[batch.uid]))
    assert "Resubmitted 3 jobs" in " ".join(map(str, get_messages(answer.wsgi_request)))


def test_outsiders_get_404(people: People, as_: As) -> None:
    batch = submit(people)
    stranger = as_(people.charlie)
    assert stranger.get(reverse("batches:detail", args=[batch.uid])).status_code == 404
    assert stranger.post(reverse("batches:stop", args=[batch.uid])).status_code == 404
    assert stranger.get(f"{reverse('batches:sweep')}?job={Job.objects.first().uid}").status_code == 404
    assert ">lr<" not in stranger.get(reverse("batches:list")).content.decode()
    with pytest.raises(NotFound):
        live_views._batch_topics(people.charlie, {"uid": str(batch.uid)})


def test_list_counts_phases(people: People, as_: As) -> None:
    assert "No batches" in as_(people.alice).get(reverse("batches:list")).content.decode()
    submit(people)
    Job.objects.filter(name="lr-2").update(phase="completed")
    page = as_(people.bob).get(reverse("batches:list")).content.decode()
    assert 'aria-label="Pending: 2, Completed: 1"' in tidy(page)
    assert 'width="66.667"' in page


def test_sweep_form_starts_from_an_existing_job(people: People, as_: As) -> None:
    job = people.submit("train-7")
    page = as_(people.alice).get(f"{reverse('batches:sweep')}?job={job.uid}").content.decode()
    assert 'value="train-7"' in page
    assert "kind: Job" in page


def test_a_deleted_job_stays_in_its_batch(people: People, as_: As) -> None:
    batch = submit(people)
    Job.objects.update(phase="completed")
    jobs.delete(Job.objects.get(name="lr-2"), user=people.alice, now=clock.now())
    page = as_(people.alice).get(reverse("batches:detail", args=[batch.uid])).content.decode()
    assert 'lr-2</a> <span class="muted">deleted<' in tidy(page)
