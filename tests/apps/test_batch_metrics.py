"""The metrics of a batch: stored in parts, compared on its page, exported, and its end told once."""

import csv
import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_batches import order, submit
from tests.apps.test_notifications import choose, hook, record_phase, sentences_for
from tests.support.markup import tidy
from tests.support.receivers import Hook

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors, services
from hekla.apps.batches.ending import end_batches
from hekla.apps.batches.models import Batch
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_metrics import selectors as job_metrics
from hekla.apps.job_metrics import services as metric_logs
from hekla.apps.job_metrics.models import MetricLog
from hekla.apps.job_metrics.services import LogPart
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.models import Notification
from hekla.backends.base import BackendError, PodKey
from hekla.backends.log_chunk import LogChunk
from hekla.controller import job_metrics as reader
from hekla.lib import clock
from hekla.pages.batches import live as live_views
from hekla.pages.runs.parallel import MOST_LINES

__all__ = ["db", "hook", "people", "shared_people"]
As = Callable[[User], Client]
LOSSES = {"lr-1": (0.9, 0.5), "lr-2": (0.8, 0.1), "lr-3": (0.2, 0.7)}


def printed(job: Job, text: str, *, attempt: int = 1, index: int = 0, is_last: bool = False) -> None:
    """The pod has printed this, and it is read."""
    now = clock.now()
    Job.objects.filter(pk=job.pk).update(started_at=now)
    facts = {"version": 1, "slot": index, "address": "", "created_at": now, "started_at": now, "phase": "running"}
    pod, is_new = Pod.objects.get_or_create(job=job, task="main", index=index, attempt=attempt, defaults=facts)
    if is_new and pod.index < job_metrics.MAX_REPLICAS:
        MetricLog.objects.create(pod=pod, job=job, due_at=now)
    MetricLog.objects.update(due_at=now)
    for log in metric_logs.claim(now=now, limit=2_000):
        if (log.pod.job_id, log.pod.index, log.pod.attempt) == (job.pk, index, attempt):
            data = text.encode()
            metric_logs.store(log, LogPart(data, log.offset + len(data), is_last=is_last), now=now)


def lines(*values: float) -> str:
    return "".join(f"::metric step={step} loss={value} steps={step}\n" for step, value in enumerate(values))


@pytest.fixture
def batch(people: People) -> Batch:
    found = submit(people)
    for name, values in LOSSES.items():
        printed(Job.objects.get(name=name), lines(*values))
    return found


def complete(*names: str) -> None:
    """These jobs complete. Their run times do not change."""
    Job.objects.filter(name__in=names).update(phase="completed")


def finish(**phases: str) -> None:
    """The jobs (`lr_1`) end, and nothing more is printed."""
    for name, phase in phases.items():
        job = Job.objects.get(name=name.replace("_", "-"))
        if job.started_at:
            printed(job, "", is_last=True)
        Job.objects.filter(pk=job.pk).update(phase=phase, finished_at=clock.now())


def runs_of(batch: Batch) -> dict[str, dict[str, Any]]:
    return {run.job.name: dict(run.metrics) for run in selectors.runs(batch)}


# What is stored.


def test_a_log_is_read_in_parts_of_whole_lines(people: People) -> None:
    batch = submit(people)
    job = Job.objects.get(name="lr-1")
    printed(job, "::metric loss=3\n::metric lo")
    assert MetricLog.objects.get().offset == 16
    steps = {"last_step": 0, "min_step": 0, "max_step": 0}
    assert runs_of(batch)["lr-1"] == {"loss": {"last": 3, "min": 3, "max": 3, "count": 1, **steps}}
    printed(job, "::metric loss=1\n::metric loss=2", is_last=True)
    log = MetricLog.objects.get()
    assert log.is_complete
    assert log.summary == {
        "loss": {"last": 2, "min": 1, "max": 3, "count": 3, "last_step": 2, "min_step": 1, "max_step": 0}
    }
    assert not job_metrics.next_due()


def test_a_line_without_end_does_not_stop_the_reader(people: People) -> None:
    submit(people)
    printed(Job.objects.get(name="lr-1"), "x" * metric_logs.READ_BYTES)
    log = MetricLog.objects.get()
    assert log.offset == metric_logs.READ_BYTES
    assert [found.pk for found in metric_logs.claim(now=log.due_at, limit=1)] == [log.pk]


def test_a_very_long_log_is_read_to_its_limit(people: People) -> None:
    submit(people)
    job = Job.objects.get(name="lr-1")
    printed(job, "::metric loss=1\n")
    MetricLog.objects.update(offset=metric_logs.MAX_LOG_BYTES - 1)
    printed(job, "::metric loss=2\n")
    assert MetricLog.objects.get().is_complete


def test_two_readers_store_a_part_once(people: People) -> None:
    submit(people)
    job = Job.objects.get(name="lr-1")
    printed(job, "")
    log = MetricLog.objects.get()
    part = LogPart(b"::metric loss=1\n", 16, is_last=False)
    stored = [metric_logs.store(log, part, now=clock.now()) for _ in range(2)]
    assert (stored, MetricLog.objects.get().summary["loss"]["count"]) == ([True, False], 1)


def test_claimed_logs_are_not_claimed_again(people: People) -> None:
    submit(people)
    printed(Job.objects.get(name="lr-1"), "")
    MetricLog.objects.update(due_at=clock.now())
    now = clock.now()
    assert [len(metric_logs.claim(now=now, limit=10)) for _ in range(2)] == [1, 0]
    assert len(metric_logs.claim(now=now + timedelta(minutes=2), limit=10)) == 1


def test_the_first_replica_and_its_last_attempt_count(people: People) -> None:
    batch = submit(people)
    job = Job.objects.get(name="lr-1")
    printed(job, "::metric loss=1 other=1\n", index=1)
    printed(job, "::metric loss=2\n", index=0, attempt=1)
    printed(job, "::metric loss=3\n", index=0, attempt=2)
    found = runs_of(batch)["lr-1"]
    assert (found["loss"]["last"], found["other"]["last"]) == (3, 1)


def test_replicas_behind_the_first_are_not_read(people: People) -> None:
    submit(people)
    printed(Job.objects.get(name="lr-1"), "::metric loss=1\n", index=job_metrics.MAX_REPLICAS)
    assert not MetricLog.objects.exists()


def test_a_silent_cluster_is_read_less_often_and_given_up_after_a_week(people: People) -> None:
    submit(people)
    job = Job.objects.get(name="lr-1")
    printed(job, "")
    assert MetricLog.objects.get().due_at - clock.now() <= metric_logs.READ_EVERY
    Job.objects.filter(pk=job.pk).update(phase="completed")
    printed(job, "")
    assert MetricLog.objects.get().due_at - clock.now() > metric_logs.READ_EVERY
    assert job_metrics.next_due()
    Job.objects.filter(pk=job.pk).update(finished_at=clock.now() - timedelta(days=8))
    printed(job, "")
    assert job_metrics.next_due() is None


def test_a_silent_cluster_is_tried_once_in_a_run(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(people)
    for name in LOSSES:
        printed(Job.objects.get(name=name), "")
    tried: list[str] = []
    broken = Job.objects.get(name="lr-1").uid.hex

    class Cluster:
        def logs(self, key: PodKey, *, offset: int, limit: int) -> LogChunk:
            tried.append(key.job)
            if key.job == broken:
                raise BackendError("the node does not answer")
            return LogChunk(b"::metric loss=1\n", offset, offset + 16, complete=True)

    monkeypatch.setattr(reader, "backend_of", lambda _cluster: Cluster())
    now = clock.now()
    MetricLog.objects.update(due_at=now)
    MetricLog.objects.filter(pod__job__name="lr-1").update(due_at=now - timedelta(minutes=1))
    assert (reader.read_metrics(now=now), tried) == (0, [broken])
    assert reader.read_metrics(now=now + metric_logs.READ_EVERY) == 2
    assert tried[-1] == broken


# The page.


def page_of(people: People, as_: As, batch: Batch, query: str = "") -> str:
    return as_(people.alice).get(f"{reverse('batches:detail', args=[batch.uid])}?{query}").content.decode()


def test_page_without_metrics_says_how_to_print_one(people: People, as_: As) -> None:
    page = page_of(people, as_, submit(people))
    assert "::metric step=100 loss=0.23" in page
    assert 'name="metric"' not in page


def test_page_compares_the_runs(people: People, as_: As, batch: Batch) -> None:
    assert "No job has completed yet, so there is no best run." in tidy(page_of(people, as_, batch))
    complete("lr-2", "lr-3")
    page = tidy(page_of(people, as_, batch))
    best = page.split("<strong>Best run</strong>")[1].split("</p>")[0]
    assert "lr-2" in best
    assert "loss 0.1" in best
    assert "<code>lr=20</code>" in best
    assert page.count('class="best"') == 1
    assert 'data-plot="run-curves-plot"' in page
    assert '"name":"lr=20"' in page
    assert page.count("<polyline") == 3
    assert "lr-2: lr=20 loss 0.1" in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort=m.loss", ["lr-2", "lr-1", "lr-3"]),
        ("sort=-m.loss", ["lr-3", "lr-1", "lr-2"]),
        ("sort=m.loss&value=min", ["lr-2", "lr-3", "lr-1"]),
        ("sort=m.loss&value=max", ["lr-3", "lr-2", "lr-1"]),
        ("sort=m.unknown", ["lr-1", "lr-2", "lr-3"]),
        ("sort=took", ["lr-3", "lr-2", "lr-1"]),
        ("sort=-ended", ["lr-1", "lr-2", "lr-3"]),
    ],
)
def test_metrics_sort_the_table(people: People, as_: As, batch: Batch, query: str, expected: list[str]) -> None:
    page = page_of(people, as_, batch, query)
    assert order(page.split('id="runs"')[1]) == expected
    live = live_views._batch(people.alice, {"uid": str(batch.uid), "query": query})
    assert order(live.split('id="runs"')[1]) == expected


def test_runs_without_the_metric_are_last(people: People, as_: As) -> None:
    batch = submit(people)
    printed(Job.objects.get(name="lr-2"), lines(1.0))
    for sort in ("m.loss", "-m.loss"):
        assert order(page_of(people, as_, batch, f"sort={sort}").split('id="runs"')[1])[0] == "lr-2"


def test_the_chosen_ranking_stays(people: People, as_: As, batch: Batch) -> None:
    alice, address = as_(people.alice), reverse("batches:detail", args=[batch.uid])
    complete(*LOSSES)
    alice.get(f"{address}?metric=loss&goal=max&value=last")
    for query in ("", "?sort=name"):
        page = tidy(alice.get(f"{address}{query}").content.decode())
        assert "lr-3" in page.split("<strong>Best run</strong>")[1].split("</p>")[0]
    page = tidy(alice.get(f"{address}?metric=loss").content.decode())
    assert "lr-2" in page.split("<strong>Best run</strong>")[1].split("</p>")[0]


def test_table_as_csv(people: People, as_: As, batch: Batch) -> None:
    alice = as_(people.alice)
    complete(*LOSSES)
    answer = alice.get(f"{reverse('batches:table', args=[batch.uid])}?sort=-m.loss&q=lr-")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert answer["Content-Disposition"] == 'attachment; filename="lr.csv"'
    assert [(row["job"], row["parameter.lr"], row["metric.loss.last"], row["best"]) for row in rows] == [
        ("lr-3", "100", "0.7", ""), ("lr-1", "3", "0.5", ""), ("lr-2", "20", "0.1", "yes"),
    ]  # fmt: skip
    assert as_(people.charlie).get(reverse("batches:table", args=[batch.uid])).status_code == 404


def test_hostile_names_are_escaped(people: People, as_: As) -> None:
    batch = submit(people, parameters={"lr": ["<b>1</b>", "%{x} 2"]})
    for name in ("lr-1", "lr-2"):
        printed(Job.objects.get(name=name), lines(1.0, 2.0))
    page = page_of(people, as_, batch)
    assert "<b>1" not in page
    assert "lr=&amp;lt;b" not in page.split('id="runs"')[1]


def test_a_thousand_jobs_with_metrics(people: People, as_: As, django_assert_max_num_queries: Any) -> None:
    batch = submit(people, parameters={"lr": list(range(1000))})
    Job.objects.update(started_at=clock.now())
    now = clock.now()
    facts = {"task": "main", "index": 0, "attempt": 1, "version": 1, "address": "", "created_at": now}
    pods = Pod.objects.bulk_create(Pod(job=job, slot=0, **facts) for job in Job.objects.all())
    MetricLog.objects.bulk_create(
        MetricLog(
            pod=pod,
            job_id=pod.job_id,
            due_at=now,
            summary={f"m{k}": {"last": pod.pk, "min": 0, "max": 1, "count": 2} for k in range(10)},
            points={
                f"m{k}": {"steps": [0, 1, 0, 1], "values": [0, 1, 0, 1], "seconds": [0, 1, 0, 1], "every": 2}
                for k in range(10)
            },
        )
        for pod in pods
    )
    client, address = as_(people.alice), f"{reverse('batches:detail', args=[batch.uid])}?sort=-m.m3&metric=m3"
    client.get(address)  # saves the choice of the metric
    with django_assert_max_num_queries(12):
        page = client.get(address).content.decode()
    assert page.count('<tr id="run-') == 100
    assert page.count("<polyline") == MOST_LINES
    assert "2 more metrics are in the CSV file." in tidy(page)
    assert len(page) < 600_000


# The end.


def test_the_end_of_a_batch_notifies_once(people: People, batch: Batch) -> None:
    notifications.follow(now=clock.now())
    choose(people)
    for name, phase in (("lr-1", "completed"), ("lr-2", "failed")):
        record_phase(Job.objects.get(name=name), phase)
    finish(lr_1="completed", lr_2="failed")
    assert end_batches(now=clock.now()) == 0
    record_phase(Job.objects.get(name="lr-3"), "completed")
    finish(lr_3="completed")
    assert [end_batches(now=clock.now()) for _ in range(2)] == [1, 0]
    notifications.follow(now=clock.now())
    sentence = "Batch lr has ended: 2 jobs completed, 1 failed. Best run: lr-1 (loss 0.5)."
    assert sentences_for(people.alice) == [sentence]
    event = LoggedEvent.objects.get(kind="BatchEnded")
    assert event.payload == {
        "name": "lr", "completed": 2, "failed": 1, "stopped": 0, "best": "lr-1", "metric": "loss", "value": 0.5,
    }  # fmt: skip
    notice = Notification.objects.get()
    assert notice.page == reverse("batches:detail", args=[batch.uid])


@pytest.mark.parametrize(
    ("moments", "phases", "is_notified"),
    [
        (["ended"], {"lr_1": "completed", "lr_2": "failed", "lr_3": "failed"}, True),
        (["failed"], {"lr_1": "completed", "lr_2": "failed", "lr_3": "completed"}, True),
        (["failed"], {"lr_1": "completed", "lr_2": "aborted", "lr_3": "completed"}, False),
        (["ended"], {"lr_1": "failed", "lr_2": "failed", "lr_3": "failed"}, False),
        ([], {"lr_1": "failed", "lr_2": "completed", "lr_3": "failed"}, False),
    ],
)
def test_the_choice_of_a_person_decides(
    people: People, batch: Batch, moments: list[str], phases: dict[str, str], is_notified: bool
) -> None:
    choose(people, moments=moments)
    finish(**phases)
    assert end_batches(now=clock.now()) == 1
    assert len(sentences_for(people.alice)) == is_notified


def test_a_choice_for_one_job_is_respected(people: People, batch: Batch) -> None:
    notifications.follow(now=clock.now())
    job = Job.objects.get(name="lr-1")
    notifications.choose_for_job(people.bob, job, {"moments": ["failed"], "channels": ["page"]})
    record_phase(job, "failed")
    notifications.follow(now=clock.now())
    assert (sentences_for(people.bob), sentences_for(people.alice)) == (["lr-1 failed."], [])


def test_other_moments_notify_once_per_batch(people: People, batch: Batch, django_assert_max_num_queries: Any) -> None:
    notifications.follow(now=clock.now())
    choose(people)
    Job.objects.update(submitted_at=clock.now() - timedelta(hours=1))
    notifications.look(now=clock.now())
    assert [sentence[4:] for sentence in sentences_for(people.alice)] == [
        " of batch lr has waited for more than 30 min 0 s."
    ]
    for name in LOSSES:
        record_phase(Job.objects.get(name=name), "running")
    notifications.follow(now=clock.now())
    assert sentences_for(people.alice)[1:] == ["lr-1 is running, the first job of batch lr."]
    Job.objects.update(phase="completed", expires_at=clock.now())
    notifications.look(now=clock.now())
    assert sentences_for(people.alice)[2:] == ["Jobs of batch lr are about to be deleted with their logs."]
    with django_assert_max_num_queries(13):  # none for each job
        assert notifications.look(now=clock.now()) == 0


def test_a_webhook_has_the_addresses_of_job_and_batch(people: People, batch: Batch, hook: Hook) -> None:
    notifications.follow(now=clock.now())
    choose(people, channels=["webhook"], webhook_url=hook.url)
    job = Job.objects.get(name="lr-1")
    record_phase(job, "running")
    notifications.follow(now=clock.now())
    assert notifications.send_due(now=clock.now()) == 1
    payload = json.loads(hook.requests[0].body)
    assert payload["job"]["url"].endswith(reverse("jobs:detail", args=[job.uid]))
    assert payload["batch"]["url"].endswith(reverse("batches:detail", args=[batch.uid]))


def test_a_retried_batch_ends_again(people: People, batch: Batch) -> None:
    choose(people)
    finish(lr_1="completed", lr_2="failed", lr_3="completed")
    end_batches(now=clock.now())
    services.retry_failed(batch, user=people.alice, now=clock.now())
    assert Batch.objects.get().ended_at is None
    assert end_batches(now=clock.now()) == 0
    finish(lr_2_r2="completed")
    assert end_batches(now=clock.now()) == 1
    assert [sentence.partition(" Best")[0] for sentence in sentences_for(people.alice)] == [
        "Batch lr has ended: 2 jobs completed, 1 failed.", "Batch lr has ended: 3 jobs completed.",
    ]  # fmt: skip


def test_a_resumed_job_opens_its_batch_again(people: People, batch: Batch) -> None:
    finish(lr_1="completed", lr_2="aborted", lr_3="completed")
    end_batches(now=clock.now())
    Job.objects.filter(name="lr-2").update(phase="pending")
    end_batches(now=clock.now())
    assert Batch.objects.get().ended_at is None


def test_the_end_waits_for_the_metrics_but_not_for_ever(people: People, batch: Batch) -> None:
    now = clock.now()
    Job.objects.update(phase="completed", finished_at=now)
    assert end_batches(now=now) == 0
    assert end_batches(now=now + selectors.METRICS_WITHIN + timedelta(seconds=1)) == 1
