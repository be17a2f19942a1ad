"""The state machine of alerts: when a rule fires, clears, and loses its data."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.alerts import (
    TRANSITIONS,
    WINDOW,
    Absence,
    AlertComparison,
    AlertCondition,
    AlertReason,
    AlertState,
    AlertStatus,
    advance,
    due_at,
    replay,
)
from hekla.domain.errors import Invalid

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOT = AlertCondition(AlertComparison.ABOVE, 90, 70, duration=MINUTE, recovery=MINUTE)
AT_ONCE = AlertCondition(AlertComparison.ABOVE, 0, 0)
RULE = {"name": "hot", "measure": "gpus_free", "threshold": 10}


def walk(condition, *steps, watched_since=NOW):
    """The states after readings at these times (seconds from the start)."""
    status, states = None, []
    for seconds, reading in steps:
        now = NOW + seconds * SECOND
        status, _passed = advance(condition, status, reading, watched_since=watched_since, now=now)
        states.append(str(status.state))
    return states


def test_it_fires_after_the_duration_and_clears_after_the_recovery():
    steps = [(0, 95.0), (30, 91.0), (60, 91.0), (70, 80.0), (80, 60.0), (130, 60.0), (140, 60.0)]
    states = ["pending", "pending", "firing", "firing", "recovering", "recovering", "normal"]
    assert walk(HOT, *steps) == states


def test_a_short_peak_does_not_fire_and_a_short_dip_does_not_clear():
    assert walk(HOT, (0, 95.0), (30, 80.0), (70, 95.0)) == ["pending", "normal", "pending"]
    assert walk(HOT, (0, 95.0), (60, 95.0), (70, 10.0), (80, 75.0), (200, 60.0)) == [
        *("pending", "firing", "recovering", "firing", "recovering"),
    ]


def test_values_below_the_threshold_can_fire():
    low = AlertCondition(AlertComparison.BELOW, 10, 20)
    assert walk(low, (0, 9.0), (1, 15.0), (2, 20.0)) == ["firing", "firing", "normal"]


def test_missing_data_is_no_verdict_before_a_whole_window():
    steps = [(0, 1.0), (10, Absence.NO_DATA), (100, Absence.NO_DATA), (130, Absence.NO_DATA), (140, 1.0)]
    assert walk(AT_ONCE, *steps) == ["firing", "firing", "firing", "no_data", "firing"]
    assert walk(AT_ONCE, (0, Absence.NO_DATA), (100, Absence.NO_DATA), (120, 0.0)) == ["normal"] * 3


def test_a_console_that_was_off_judges_only_what_it_saw():
    """Pending and lost times count from the start of the console, so nothing fires or is lost at the start."""
    pending = AlertStatus(AlertState.PENDING, NOW - 10 * MINUTE)
    assert advance(HOT, pending, 95.0, watched_since=NOW, now=NOW)[0].state is AlertState.PENDING
    assert advance(HOT, pending, 95.0, watched_since=NOW, now=NOW + MINUTE)[0].state is AlertState.FIRING
    lost = AlertStatus(AlertState.NORMAL, NOW - MINUTE, lost_at=NOW - 10 * MINUTE)
    assert advance(HOT, lost, Absence.NO_DATA, watched_since=NOW, now=NOW)[1] == []
    assert advance(HOT, lost, Absence.NO_DATA, watched_since=NOW, now=NOW + WINDOW)[0].state is AlertState.NO_DATA


def test_a_subject_that_is_gone_ends_its_alert():
    status, passed = advance(
        AT_ONCE, AlertStatus(AlertState.FIRING, NOW, is_open=True), Absence.GONE, watched_since=NOW, now=NOW
    )
    assert [(one.new, one.reason) for one in passed] == [(AlertState.NORMAL, AlertReason.GONE)]
    assert not status.is_open


READINGS = st.one_of(st.floats(-10, 110), st.just(float("nan")), st.sampled_from(Absence))
CONDITIONS = st.builds(
    AlertCondition,
    st.just(AlertComparison.ABOVE),
    st.just(90.0),
    st.sampled_from([90.0, 70.0]),
    st.sampled_from([timedelta(), MINUTE]),
    st.sampled_from([timedelta(), MINUTE]),
)


@given(CONDITIONS, st.lists(st.tuples(st.integers(0, 90), READINGS), max_size=40))
def test_every_course_keeps_to_the_table_and_is_stable(condition, steps):
    status, now = None, NOW
    for seconds, reading in steps:
        now += seconds * SECOND
        before = status
        status, passed = advance(condition, before, reading, watched_since=NOW, now=now)
        assert {(one.old, one.new) for one in passed} <= TRANSITIONS
        assert len(passed) <= 2
        assert [one.old for one in passed[1:]] == [one.new for one in passed[:-1]]
        again, changed = advance(condition, status, reading, watched_since=NOW, now=now)
        assert (again, changed) == (status, [])
        due = due_at(condition, status, watched_since=NOW)
        assert due is None or due > now or reading is Absence.GONE
        if status.state in {AlertState.FIRING, AlertState.RECOVERING}:
            assert status.is_open


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(50, 100)), min_size=1, max_size=6))
def test_a_replay_agrees_with_evaluations_each_second(steps):
    at, course = NOW, []
    for seconds, value in steps:
        course.append((at, value))
        at += seconds * SECOND
    fired, status, second = 0, None, NOW
    values = dict(course)
    value = 0.0
    while second <= at:
        value = values.get(second, value)
        status, passed = advance(HOT, status, value, watched_since=NOW, now=second)
        fired += sum(one.new is AlertState.FIRING and one.old is not AlertState.RECOVERING for one in passed)
        second += SECOND
    assert len(replay(HOT, "one", course, now=at)) == fired


def test_a_replay_names_the_times_and_the_worst_value():
    course = [(NOW, 95.0), (NOW + 2 * MINUTE, 99.0), (NOW + 3 * MINUTE, 10.0)]
    [episode] = replay(HOT, "one", course, now=NOW + 10 * MINUTE)
    assert (episode.begin, episode.until, episode.peak) == (NOW + MINUTE, NOW + 4 * MINUTE, 99.0)
    assert replay(HOT, "one", [], now=NOW) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"clear": 20}, ""),
        ({"comparison": "below", "clear": 5}, ""),
        ({"threshold": float("nan")}, "threshold"),
        ({"for_seconds": -1}, "for_seconds"),
        ({"actions": [{"kind": "cordon"}, {"kind": "cordon"}]}, ""),
        ({"actions": [{"kind": "explode"}]}, "actions.0"),
        ({"name": "a\0b"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(change, path):
    with pytest.raises(Invalid) as raised:
        AlertRuleSpec.parse({**RULE, **change})
    assert raised.value.problems[0].path.startswith(path)


def test_a_spec_survives_serialization():
    spec = AlertRuleSpec.parse({**RULE, "actions": [{"kind": "notify", "roles": ["owner"]}, {"kind": "stop_job"}]})
    assert AlertRuleSpec.parse(spec.document()) == spec
