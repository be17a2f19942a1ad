"""Schedules: which runs start, are skipped or retained, and who reads and changes a schedule."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.apps.schedules import selectors, services
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import Forbidden, Invalid, NotFound, Refused
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.schedules import ScheduleSpec
from hekla.lib import clock
from hekla.pages.schedules import live as live_views

__all__ = ["db", "people", "shared_people"]
As = Callable[[User], Client]
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
JOB = {"tasks": [{"name": "main", "command": ["true"], "resources": {"cpu": "1"}}]}
MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: whatever}
spec: {tasks: [{name: main, template: {spec: {containers: [{name: m, command: [python, train.py]}]}}}]}
"""


def spec(**changes: object) -> ScheduleSpec:
    return ScheduleSpec.parse({"name": "hourly", "cron": "0 * * * *", "job": JOB, **changes})


def create_schedule(people: People, now: datetime = NOON - MINUTE, **changes: object) -> Schedule:
    return services.create(spec=spec(**changes), tenant=people.lab, user=people.alice, now=now)


def outcomes(schedule: Schedule) -> list[tuple[str, str]]:
    return [(run.outcome, run.reason) for run in selectors.runs(schedule).order_by("due_at", "id")]


def names() -> list[str]:
    return list(Job.objects.order_by("id").values_list("name", flat=True))


def kinds(schedule: Schedule) -> list[str]:
    return [event.kind for event in selectors.history(schedule)]


def name_at(moment: datetime) -> str:
    return f"hourly-{int(moment.timestamp()) // 60}"


def test_due_run_starts_once(people: People) -> None:
    schedule = create_schedule(people)
    for _ in range(3):
        services.start_due(now=NOON + timedelta(seconds=2))
    assert names() == [name_at(NOON)]
    job = Job.objects.get()
    assert (job.owner, job.tenant) == (people.alice, people.lab)
    assert kinds(schedule) == ["ScheduleCreated", "ScheduleRunStarted"]
    schedule.refresh_from_db()
    assert schedule.next_at == NOON + HOUR


def test_no_run_before_its_time(people: People) -> None:
    create_schedule(people)
    services.start_due(now=NOON - timedelta(seconds=1))
    assert names() == []


def test_stale_clock_starts_no_run_twice(people: People) -> None:
    schedule = create_schedule(people)
    services.start_due(now=NOON + HOUR)
    services.start_due(now=NOON)
    assert names() == [name_at(NOON + HOUR)]
    assert outcomes(schedule) == [("missed", ""), ("started", "")]


def test_downtime_starts_the_latest_run_and_records_missed_ones(people: People) -> None:
    schedule = create_schedule(people)
    services.start_due(now=NOON + 3 * HOUR + MINUTE)
    assert names() == [name_at(NOON + 3 * HOUR)]
    missed = selectors.runs(schedule).get(outcome="missed")
    assert (missed.due_at, missed.until, missed.count) == (NOON, NOON + 2 * HOUR, 3)
    assert kinds(schedule) == ["ScheduleCreated", "ScheduleMissed", "ScheduleRunStarted"]


def test_run_after_its_deadline_is_skipped(people: People) -> None:
    schedule = create_schedule(people, starting_deadline_seconds=60)
    services.start_due(now=NOON + 2 * MINUTE)
    assert names() == []
    assert outcomes(schedule) == [("skipped", "too_late")]


def test_forbid_skips_while_a_run_is_unfinished(people: People, as_: As) -> None:
    schedule = create_schedule(people, concurrency="Forbid")
    services.start_due(now=NOON)
    services.start_due(now=NOON + HOUR)
    Job.objects.update(phase="completed")
    services.start_due(now=NOON + 2 * HOUR)
    assert names() == [name_at(NOON), name_at(NOON + 2 * HOUR)]
    assert outcomes(schedule) == [("started", ""), ("skipped", "still_running"), ("started", "")]
    page = as_(people.bob).get(reverse("schedules:detail", args=[schedule.uid])).content.decode()
    assert f"The earlier run had not finished ({name_at(NOON)})" in page


def test_replace_ends_the_earlier_run(people: People) -> None:
    create_schedule(people, concurrency="Replace")
    services.start_due(now=NOON)
    services.start_due(now=NOON + HOUR)
    first, second = Job.objects.order_by("id")
    assert first.phase in (JobPhase.TERMINATING, JobPhase.TERMINATED)
    assert second.phase == JobPhase.PENDING
    commanded = LoggedEvent.objects.get(kind="JobCommanded", subject=f"job:{first.uid}")
    assert (commanded.payload["action"], commanded.actor_id) == (LifecycleAction.TERMINATE_JOB, None)


def test_default_allows_concurrent_runs(people: People) -> None:
    create_schedule(people)
    services.start_due(now=NOON)
    services.start_due(now=NOON + HOUR)
    assert set(Job.objects.values_list("phase", flat=True)) == {JobPhase.PENDING}
    assert Job.objects.count() == 2


# Refusals.


def _close_queue(people: People) -> str:
    queues.set_state(people.queue, "closed", by=people.ada, actor=PLATFORM, now=NOON)
    return "is closed since"


def _remove_owner(people: People) -> str:
    tenancy.add_member(people.lab, people.ada, "admin", actor=PLATFORM, now=NOON)
    tenancy.remove_member(people.lab, people.alice.pk, actor=PLATFORM, now=NOON)
    return "Unknown tenant"


def _take_name(people: People) -> str:
    people.submit(name_at(NOON))
    return "already"


@pytest.mark.parametrize("arrange", [_close_queue, _remove_owner, _take_name])
def test_refused_run_is_recorded_and_the_schedule_continues(people: People, arrange: Callable[[People], str]) -> None:
    schedule = create_schedule(people)
    sentence = arrange(people)
    services.start_due(now=NOON)
    refused = selectors.runs(schedule).get()
    assert (refused.outcome, refused.reason) == ("skipped", "refused")
    assert sentence in refused.message
    schedule.refresh_from_db()
    assert schedule.next_at == NOON + HOUR


def test_refused_schedule_does_not_block_others(people: People) -> None:
    create_schedule(people, name="first", job={**JOB, "queue": "default"})
    queues.create(cluster=people.cluster, name="second", actor=PLATFORM, now=NOON)
    create_schedule(people, name="other", job={**JOB, "queue": "second"})
    queues.set_state(people.queue, "closed", by=people.ada, actor=PLATFORM, now=NOON)
    services.start_due(now=NOON)
    assert names() == [f"other-{int(NOON.timestamp()) // 60}"]


def test_unreadable_schedule_does_not_block_others(people: People, caplog: pytest.LogCaptureFixture) -> None:
    broken = create_schedule(people, name="broken")
    create_schedule(people)
    Schedule.objects.filter(pk=broken.pk).update(spec={**broken.spec, "cron": "once"})
    services.start_due(now=NOON)
    assert names() == [name_at(NOON)]
    assert f"schedule {broken.pk} cannot be looked at" in caplog.text


def test_impossible_job_is_refused_at_creation(people: People) -> None:
    with pytest.raises(Invalid, match="largest node"):
        create_schedule(people, job={"tasks": [{"name": "main", "command": ["true"], "resources": {"cpu": "64"}}]})
    assert not Schedule.objects.exists()


def test_name_is_unique_in_a_tenant(people: People) -> None:
    create_schedule(people)
    with pytest.raises(services.ScheduleNameConflict):
        create_schedule(people)
    services.create(spec=spec(), tenant=people.other, user=people.charlie, now=NOON)


def test_viewer_cannot_create(people: People) -> None:
    with pytest.raises(Forbidden):
        services.create(spec=spec(), tenant=people.lab, user=people.bob, now=NOON)


# Changes.


def test_suspended_runs_are_not_caught_up(people: People) -> None:
    schedule = create_schedule(people)
    services.set_suspended(schedule, suspended=True, user=people.alice, now=NOON - MINUTE)
    services.start_due(now=NOON)
    services.set_suspended(schedule, suspended=False, user=people.alice, now=NOON + 90 * MINUTE)
    services.start_due(now=NOON + 91 * MINUTE)
    assert names() == []
    services.start_due(now=NOON + 2 * HOUR)
    assert names() == [name_at(NOON + 2 * HOUR)]
    assert kinds(schedule) == ["ScheduleCreated", "ScheduleSuspended", "ScheduleResumed", "ScheduleRunStarted"]


def test_repeated_suspension_is_recorded_once(people: People) -> None:
    schedule = create_schedule(people)
    for _ in range(2):
        services.set_suspended(schedule, suspended=True, user=people.alice, now=NOON)
    assert kinds(schedule) == ["ScheduleCreated", "ScheduleSuspended"]


def test_last_editor_owns_the_jobs(people: People) -> None:
    schedule = create_schedule(people)
    tenancy.change_role(people.lab, people.bob.pk, "admin", actor=PLATFORM, now=NOON)
    services.change(schedule, spec(cron="30 * * * *", job={**JOB, "priority": 3}), user=people.bob, now=NOON - MINUTE)
    services.start_due(now=NOON + 30 * MINUTE)
    job = Job.objects.get()
    assert (job.owner, job.priority, job.name) == (people.bob, 3, name_at(NOON + 30 * MINUTE))
    changed = LoggedEvent.objects.get(kind="ScheduleChanged")
    assert changed.payload["changes"]["cron"] == {"old": "0 * * * *", "new": "30 * * * *"}
    assert set(changed.payload["changes"]) == {"cron", "job"}


def test_schedule_cannot_be_renamed(people: People) -> None:
    with pytest.raises(Refused, match="renamed"):
        services.change(create_schedule(people), spec(name="other"), user=people.alice, now=NOON)


def test_deleted_schedule_keeps_its_jobs(people: People) -> None:
    schedule = create_schedule(people)
    services.start_due(now=NOON)
    services.delete(schedule, user=people.alice, now=NOON)
    assert not Schedule.objects.exists()
    assert Job.objects.get().deleted_at is None
    assert kinds(schedule)[-1] == "ScheduleDeleted"
    with pytest.raises(NotFound):
        services.delete(schedule, user=people.alice, now=NOON)


def test_manual_run_starts_once_a_minute(people: People) -> None:
    schedule = create_schedule(people)
    for seconds in (1, 20):
        services.run_now(schedule, user=people.alice, now=NOON + timedelta(seconds=seconds))
    services.start_due(now=NOON + timedelta(seconds=30))
    assert names() == [f"{name_at(NOON)}-now", name_at(NOON)]
    assert [run.by_hand for run in selectors.runs(schedule).order_by("id")] == [True, False]


def test_forbid_applies_to_manual_runs(people: People) -> None:
    schedule = create_schedule(people, concurrency="Forbid")
    services.start_due(now=NOON)
    with pytest.raises(services.StillRunning, match=name_at(NOON)):
        services.run_now(schedule, user=people.alice, now=NOON + MINUTE)


# Retention.


def test_history_limits_keep_the_newest_finished_jobs(people: People) -> None:
    create_schedule(people, successful_jobs_history_limit=2, failed_jobs_history_limit=1)
    ends = ["completed", "failed", "completed", "terminated", "completed", "aborted", "completed"]
    for hour, phase in enumerate(ends):
        services.start_due(now=NOON + hour * HOUR)
        Job.objects.filter(phase="pending").update(phase=phase)
    services.start_due(now=NOON + 7 * HOUR)
    assert services.tidy(now=NOON + 8 * HOUR) == 3
    assert services.tidy(now=NOON + 8 * HOUR) == 0
    left = Job.objects.filter(deleted_at=None).order_by("id").values_list("phase", flat=True)
    assert list(left) == ["terminated", "completed", "aborted", "completed", "pending"]
    assert LoggedEvent.objects.filter(kind="JobDeleted").count() == 3


def test_other_jobs_are_not_deleted(people: People) -> None:
    create_schedule(people, successful_jobs_history_limit=0)
    job = people.submit("mine")
    Job.objects.update(phase="completed")
    assert services.tidy(now=NOON) == 0
    job.refresh_from_db()
    assert job.deleted_at is None


def test_oldest_runs_are_deleted(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_RUNS", 2)
    schedule = create_schedule(people)
    for hour in range(4):
        services.start_due(now=NOON + hour * HOUR)
    assert ScheduleRun.objects.filter(schedule=schedule).count() == 4  # none has finished
    Job.objects.update(phase="completed")
    services.start_due(now=NOON + 4 * HOUR)
    assert [run.due_at for run in selectors.runs(schedule)] == [NOON + 4 * HOUR, NOON + 3 * HOUR]


# Pages.


def fill(**changes: Any) -> dict[str, Any]:
    return {
        "name": "nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "concurrency": "Forbid",
        "successful_jobs_history_limit": "3", "failed_jobs_history_limit": "1", "manifest": MANIFEST, **changes,
    }  # fmt: skip


def test_form_creates_a_schedule_and_its_page_describes_it(people: People, as_: As) -> None:
    answer = as_(people.alice).post(reverse("schedules:create"), fill(starting_deadline_seconds="10m"))
    made = Schedule.objects.get()
    assert answer["Location"] == reverse("schedules:detail", args=[made.uid])
    page = as_(people.bob).get(answer["Location"]).content.decode()
    assert "30 2 * * *" in page
    assert "Europe/Berlin" in page
    assert "Skip the new run" in page
    assert page.count("02:30 CE") == 5
    assert "Run now" not in page
    assert "Run now" in as_(people.alice).get(answer["Location"]).content.decode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cron": "99 * * * *"}, "is not a number from 0 to 59"),
        ({"time_zone": "Europe/Berlim"}, "Did you mean"),
        ({"manifest": MANIFEST.replace("train.py", "'train.py', 7")}, "Must be a string"),
        ({"manifest": "just words"}, "must be a mapping"),
        ({"name": "Night"}, "is not a valid name"),
        ({"failed_jobs_history_limit": "-1"}, "greater than or equal to 0"),
    ],
)
def test_form_errors_keep_the_input(people: People, as_: As, changes: dict[str, str], message: str) -> None:
    page = as_(people.alice).post(reverse("schedules:create"), fill(**changes)).content.decode()
    assert message in page
    assert "metadata: {name: whatever}" in page or "manifest" in changes
    assert 'value="Europe/Berlin"' in page or "time_zone" in changes
    assert not Schedule.objects.exists()


def test_form_starts_from_an_existing_job(people: People, as_: As) -> None:
    job = people.submit("train-7")
    page = as_(people.alice).get(f"{reverse('schedules:create')}?job={job.uid}").content.decode()
    assert 'value="train-7"' in page
    assert "kind: Job" in page
    assert as_(people.charlie).get(f"{reverse('schedules:create')}?job={job.uid}").status_code == 404


def test_edit_form_is_prefilled(people: People, as_: As) -> None:
    schedule = create_schedule(people, time_zone="Asia/Shanghai", concurrency="Replace")
    address = reverse("schedules:edit", args=[schedule.uid])
    page = as_(people.alice).get(address).content.decode()
    assert 'value="Asia/Shanghai"' in page
    assert '<option value="Replace" selected>' in page
    as_(people.alice).post(address, fill(cron="@daily"))
    schedule.refresh_from_db()
    assert (selectors.spec_of(schedule).cron, schedule.name) == ("@daily", "hourly")


def test_cron_job_manifest_round_trips(people: People, as_: As) -> None:
    schedule = create_schedule(people, time_zone="Asia/Shanghai", suspended=True)
    text = as_(people.bob).get(reverse("schedules:manifest", args=[schedule.uid])).content.decode()
    assert "kind: CronJob" in text
    services.delete(schedule, user=people.alice, now=NOON)
    as_(people.alice).post(reverse("schedules:create_yaml"), {"text": text})
    assert selectors.spec_of(Schedule.objects.get()) == spec(time_zone="Asia/Shanghai", suspended=True)
    wrong = as_(people.alice).post(reverse("schedules:create_yaml"), {"text": text.replace("schedule:", "shedule:")})
    assert "Did you mean" in wrong.content.decode()


def test_outsiders_get_404(people: People, as_: As) -> None:
    schedule = create_schedule(people)
    stranger = as_(people.charlie)
    assert stranger.get(reverse("schedules:detail", args=[schedule.uid])).status_code == 404
    assert stranger.post(reverse("schedules:run", args=[schedule.uid])).status_code == 404
    assert "hourly" not in stranger.get(reverse("schedules:list")).content.decode()
    assert "hourly" not in live_views._schedules(people.charlie, {})
    with pytest.raises(NotFound):
        live_views._schedule_topics(people.charlie, {"uid": str(schedule.uid)})


def test_buttons_suspend_run_and_delete(people: People, as_: As) -> None:
    schedule = create_schedule(people, now=clock.now())
    alice = as_(people.alice)
    alice.post(reverse("schedules:suspend", args=[schedule.uid]), {"suspend": "yes"})
    assert "suspended" in live_views._schedule(people.alice, {"uid": str(schedule.uid)})
    alice.post(reverse("schedules:suspend", args=[schedule.uid]), {"suspend": "no"})
    answer = alice.post(reverse("schedules:run", args=[schedule.uid]))
    assert "Submitted hourly" in " ".join(map(str, get_messages(answer.wsgi_request)))
    assert ScheduleRun.objects.get().job.owner == people.alice
    alice.post(reverse("schedules:delete", args=[schedule.uid]))
    assert not Schedule.objects.exists()


def test_list_query_count_is_constant(people: People, as_: As, django_assert_max_num_queries: Any) -> None:
    for number in range(12):
        create_schedule(people, name=f"s{number}")
    services.start_due(now=NOON)
    client = as_(people.alice)
    client.get(reverse("schedules:list"))
    with django_assert_max_num_queries(14):
        page = client.get(reverse("schedules:list")).content.decode()
    assert page.count('<span class="badge phase-pending"') == 12


def test_empty_list_links_to_the_form(people: People, as_: As) -> None:
    page = as_(people.charlie).get(reverse("schedules:list")).content.decode()
    assert "No schedules" in page
    assert reverse("schedules:create") in page


def test_deleted_job_stays_in_the_history(people: People, as_: As) -> None:
    schedule = create_schedule(people)
    services.start_due(now=NOON)
    Job.objects.update(phase="completed")
    jobs.delete(Job.objects.get(), user=people.alice, now=NOON)
    page = as_(people.alice).get(reverse("schedules:detail", args=[schedule.uid])).content.decode()
    assert f'{name_at(NOON)}</a> <span class="muted">deleted<' in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [3, 2, 1, 0]), ("sort=due", [0, 1, 2, 3]), ("sort=-due", [3, 2, 1, 0]), ("sort=job", [0, 3, 1, 2]),
        ("sort=result", [1, 2, 0, 3]), ("outcome=skipped", [2, 1]), ("q=hourly&outcome=started", [3, 0]),
        ("outcome=nothing", [3, 2, 1, 0]), ("q=nobody", []),
    ],
)  # fmt: skip
def test_history_is_sorted_and_searched_by_the_query(people: People, as_: As, query: str, expected: list[int]) -> None:
    schedule = create_schedule(people, concurrency="Forbid")
    for hour in range(3):
        services.start_due(now=NOON + hour * HOUR)
    Job.objects.update(phase="completed")
    services.start_due(now=NOON + 3 * HOUR)
    runs = {run.pk: run.due_at for run in selectors.runs(schedule)}
    page = as_(people.bob).get(f"{reverse('schedules:detail', args=[schedule.uid])}?{query}").content.decode()
    for html in (page, live_views._schedule(people.bob, {"uid": str(schedule.uid), "query": query})):
        times = [runs[int(number)] for number in re.findall(r'<tr id="run-(\d+)"', html)]
        assert [(time - NOON) // HOUR for time in times] == expected


def test_long_history_is_paged_with_constant_queries(people: People, as_: As) -> None:
    schedule, client = create_schedule(people), as_(people.bob)
    address = reverse("schedules:detail", args=[schedule.uid])
    services.start_due(now=NOON)
    client.get(address)
    with CaptureQueriesContext(connection) as few:
        client.get(address)
    ScheduleRun.objects.bulk_create(
        ScheduleRun(schedule=schedule, due_at=NOON - number * HOUR, outcome="missed") for number in range(1, 120)
    )
    with CaptureQueriesContext(connection) as many:
        page = client.get(address).content.decode()
    assert len(many) == len(few) + 1  # one more query, which counts them
    assert ("1–50 of 120" in page, 'name="outcome"' in page, "page%3D1" in page) == (True, True, True)
    assert client.get(f"{address}?page=3").content.decode().count('<tr id="run-') == 20
