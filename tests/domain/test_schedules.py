"""Schedule specs, and the decision whether a run starts at a time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain import schedules
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import MAX_JOB_NAME, JobSpec
from hekla.domain.schedule_runs import SkipReason
from hekla.domain.schedules import Concurrency, ScheduleDecision, ScheduleSpec

JOB = {"tasks": [{"name": "main", "command": ["true"]}]}
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def schedule(**changes: object) -> ScheduleSpec:
    return ScheduleSpec.parse({"name": "nightly", "cron": "0 * * * *", "job": JOB, **changes})


def problems(**changes: object) -> dict[str, str]:
    with pytest.raises(Invalid) as raised:
        schedule(**changes)
    return {problem.path: problem.message for problem in raised.value.problems}


def test_schedule_survives_serialization() -> None:
    spec = schedule(time_zone="Asia/Shanghai", concurrency="Forbid", suspended=True, failed_jobs_history_limit=0)
    assert ScheduleSpec.parse(spec.document()) == spec
    assert "name" not in spec.document()["job"]


def test_job_of_a_run_is_named_by_its_minute() -> None:
    job = schedule().run(NOON)
    assert job.name == f"nightly-{int(NOON.timestamp()) // 60}"
    assert JobSpec.parse(job.document()) == job
    assert schedule().run(NOON, by_hand=True).name == f"{job.name}-now"


def test_longest_schedule_name_gives_valid_job_names() -> None:
    spec = schedule(name="x" * schedules.MAX_NAME)
    assert len(spec.run(NOON, by_hand=True).name) == MAX_JOB_NAME
    assert "40" in problems(name="x" * (schedules.MAX_NAME + 1))["name"]


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"cron": "never"}, "cron", "five fields"),
        ({"time_zone": "Mars/Olympus"}, "time_zone", "Unknown time zone"),
        ({"concurrency": "Sometimes"}, "concurrency", "not one of Allow, Forbid, Replace"),
        ({"starting_deadline_seconds": 0}, "starting_deadline_seconds", "at least 1"),
        ({"suspended": "yes"}, "suspended", "true or false"),
        ({"successful_jobs_history_limit": -1}, "successful_jobs_history_limit", "at least 0"),
        ({"name": "Nightly"}, "name", "lowercase letters"),
        ({"job": None}, "job", "mapping"),
        ({"job": {"tasks": []}}, "job.tasks", "At least one"),
        ({"job": {**JOB, "priority": "high"}}, "job.priority", "integer"),
        ({"job": {"tasks": [{"name": "main", "command": ["a"], "replicas": -1}]}}, "job.tasks.0.replicas", "at least"),
    ],
)
def test_problem_has_its_path(changes: dict[str, object], path: str, message: str) -> None:
    found = problems(**changes)
    assert list(found) == [path]
    assert message in found[path]


def test_job_with_too_long_host_names_is_refused() -> None:
    found = problems(name="n" * 40, job={"tasks": [{"name": "w" * 20, "command": ["true"]}]})
    assert "host names" in found["job.tasks.0.name"]


# Decisions.


def test_nothing_is_due_before_its_time() -> None:
    assert schedules.decide_run(schedule(), NOON, NOON + 59 * MINUTE, []) == ScheduleDecision()


def test_due_run_starts() -> None:
    assert schedules.decide_run(schedule(), NOON - MINUTE, NOON, []) == ScheduleDecision(NOON)


def test_checked_run_is_not_due_again() -> None:
    assert schedules.decide_run(schedule(), NOON, NOON, []) == ScheduleDecision()


def test_suspended_schedule_starts_nothing() -> None:
    assert schedules.decide_run(schedule(suspended=True), NOON - MINUTE, NOON, []) == ScheduleDecision()


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        (Concurrency.ALLOW, ScheduleDecision(NOON)),
        (Concurrency.FORBID, ScheduleDecision(NOON, SkipReason.STILL_RUNNING)),
        (Concurrency.REPLACE, ScheduleDecision(NOON, replaces=(7, 8))),
    ],
)
def test_concurrency_policy_applies_to_a_running_run(policy: Concurrency, want: ScheduleDecision) -> None:
    assert schedules.decide_run(schedule(concurrency=policy), NOON - MINUTE, NOON, [7, 8]) == want


@pytest.mark.parametrize("policy", Concurrency)
def test_concurrency_policies_are_equal_without_a_running_run(policy: Concurrency) -> None:
    assert schedules.decide_run(schedule(concurrency=policy), NOON - MINUTE, NOON, []) == ScheduleDecision(NOON)


def test_after_a_pause_the_last_run_starts_and_the_others_are_missed() -> None:
    found = schedules.decide_run(schedule(), NOON - 4.5 * 60 * MINUTE, NOON + 10 * MINUTE, [])
    assert (found.due_at, found.skip) == (NOON, None)
    assert found.missed == schedules.MissedRuns(NOON - 240 * MINUTE, NOON - 60 * MINUTE, 4)
    assert found.missed.count <= schedules.MAX_COUNTED


def test_count_of_missed_runs_is_limited() -> None:
    spec = schedule(cron="* * * * *")
    missed = schedules.decide_run(spec, NOON - timedelta(days=400), NOON, []).missed
    assert missed is not None
    assert missed.count > schedules.MAX_COUNTED
    assert (missed.count, missed.last) == (schedules.MAX_COUNTED + 1, NOON - MINUTE)


def test_run_after_its_starting_deadline_is_skipped() -> None:
    spec = schedule(starting_deadline_seconds=60)
    assert schedules.decide_run(spec, NOON - MINUTE, NOON + MINUTE, []) == ScheduleDecision(NOON)
    late = schedules.decide_run(spec, NOON - MINUTE, NOON + MINUTE + timedelta(seconds=1), [])
    assert late == ScheduleDecision(NOON, SkipReason.TOO_LATE)


@given(
    st.sampled_from(["* * * * *", "*/7 3-5 * * *", "0 12 * * mon"]),
    st.lists(st.integers(1, 5000), min_size=1, max_size=8),
    st.sampled_from(Concurrency),
    st.lists(st.integers(1, 9), unique=True, max_size=2),
    st.one_of(st.none(), st.integers(1, 7200)),
)
def test_each_time_is_decided_once_for_any_checks(
    expression: str, steps: list[int], policy: Concurrency, running: list[int], deadline: int | None
) -> None:
    spec = schedule(cron=expression, concurrency=policy, starting_deadline_seconds=deadline)
    checked_at, decided = NOON, 0
    for step in steps:
        now = checked_at + step * MINUTE
        found = schedules.decide_run(spec, checked_at, now, running)
        assert found == schedules.decide_run(spec, checked_at, now, running)
        if found.due_at:
            assert checked_at < found.due_at <= now
            decided += 1 + (found.missed.count if found.missed else 0)
            if found.missed and found.missed.count > schedules.MAX_COUNTED:
                return
        if found.due_at and found.skip is None and deadline is not None:
            assert (now - found.due_at).total_seconds() <= deadline
        if policy is Concurrency.FORBID and running:
            assert found.due_at is None or found.skip is not None
        checked_at = now
    all_times = spec.next_times(NOON, decided + 1)
    assert sum(moment <= checked_at for moment in all_times) == decided


def test_newest_finished_runs_are_retained() -> None:
    spec = schedule(successful_jobs_history_limit=2, failed_jobs_history_limit=0)
    assert schedules.excess_runs([9, 8, 7, 6], [5], spec) == [7, 6, 5]
    assert schedules.excess_runs([9], [], spec) == []
