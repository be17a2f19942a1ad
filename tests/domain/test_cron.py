"""Cron expressions, compared with a search that checks the local time minute by minute."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from hekla.domain import cron
from hekla.domain.cron import InvalidCron

MINUTE = timedelta(minutes=1)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns",
         "Africa/Cairo", "Asia/Shanghai", "America/Santiago")  # fmt: skip


def at(text: str, zone: str = "UTC", fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=cron.zone(zone), fold=fold).astimezone(UTC)


def first(expression: str, after: datetime, zone: str = "UTC", count: int = 1) -> list[datetime]:
    return list(islice(cron.parse(expression).after(after, cron.zone(zone)), count))


def local(moments: list[datetime], zone: str) -> list[str]:
    return [moment.astimezone(cron.zone(zone)).strftime("%m-%d %H:%M %Z") for moment in moments]


# The search: it implements the rules of the module independently.


def field_matches(word: str, value: int, low: int, high: int) -> bool:
    for part in word.split(","):
        body, _, step = part.partition("/")
        begin, dash, end = body.partition("-")
        begin, end = (low, high) if begin == "*" else (int(begin), int(end) if dash else high if step else int(begin))
        if begin <= value <= end and (value - begin) % int(step or 1) == 0:
            return True
    return False


def matches(expression: str, local_time: datetime) -> bool:
    minute, hour, day, month, weekday = expression.split()
    by_day, by_weekday = (
        field_matches(day, local_time.day, 1, 31),
        field_matches(weekday, local_time.isoweekday() % 7, 0, 6),
    )
    free = day in ("*", "*/1") or weekday in ("*", "*/1")
    by_date = field_matches(month, local_time.month, 1, 12) and (
        by_day and by_weekday if free else by_day or by_weekday
    )
    return by_date and field_matches(minute, local_time.minute, 0, 59) and field_matches(hour, local_time.hour, 0, 23)


def walk(expression: str, begin: datetime, minutes: int, zone: str) -> list[datetime]:
    elapsed = expression.split()[1] in ("*", "*/1")
    found, passed, last = [], set(), None
    for number in range(-1500, minutes + 1):
        moment = begin + number * MINUTE
        local_time = moment.astimezone(cron.zone(zone)).replace(tzinfo=None)
        local_times = [local_time]
        if last is not None and not elapsed:
            local_times += [last + n * MINUTE for n in range(1, round((local_time - last) / MINUTE))]
            local_times = [one for one in local_times if one not in passed]
        passed.update(local_times)
        last = local_time
        if number > 0 and any(matches(expression, one) for one in local_times):
            found.append(moment)
    return found


def words(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(sorted).map(lambda pair: f"{pair[0]}-{pair[1]}")
    step = st.integers(1, high)
    stepped = st.one_of(
        step.map(lambda n: f"*/{n}"), st.builds("{}/{}".format, span, step), st.builds("{}/{}".format, number, step)
    )
    one = st.one_of(number.map(str), span, stepped)
    return st.one_of(st.just("*"), st.lists(one, min_size=1, max_size=3).map(",".join))


EXPRESSIONS = st.tuples(
    words(0, 59), words(0, 23), st.one_of(st.just("*"), words(1, 28)), st.just("*"), words(0, 6)
).map(" ".join)
INSTANTS = st.one_of(
    st.datetimes(datetime(2024, 1, 1), datetime(2026, 1, 1)),
    # Nights with clock changes in some of these zones.
    st.sampled_from([datetime(2025, 3, 30), datetime(2025, 10, 25, 20), datetime(2025, 3, 9), datetime(2025, 11, 2),
                     datetime(2025, 4, 5, 10), datetime(2025, 10, 4, 12), datetime(2025, 4, 24, 20),
                     datetime(2025, 10, 30, 18), datetime(2025, 9, 6, 22)]),
).map(lambda moment: moment.replace(second=0, microsecond=0, tzinfo=UTC))  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@given(EXPRESSIONS, INSTANTS, st.sampled_from(ZONES))
def test_times_equal_a_minute_by_minute_search(expression: str, begin: datetime, zone: str) -> None:
    minutes = 2 * 24 * 60
    expected = walk(expression, begin, minutes, zone)
    until = begin + minutes * MINUTE
    found = []
    for moment in cron.parse(expression).after(begin, cron.zone(zone)):
        if moment > until:
            break
        found.append(moment)
    assert found == expected
    if expected:
        assert cron.parse(expression).latest(until, cron.zone(zone)) == expected[-1]


@settings(max_examples=examples(100), deadline=None)
@given(EXPRESSIONS, INSTANTS, st.sampled_from(ZONES))
def test_times_ascend_and_latest_finds_them(expression: str, begin: datetime, zone: str) -> None:
    parsed, time_zone = cron.parse(expression), cron.zone(zone)
    moments = list(islice(parsed.after(begin, time_zone), 40))
    assert all(one < next_ for one, next_ in pairwise([begin, *moments]))
    assert all(parsed.latest(moment, time_zone) == moment for moment in moments[:5])
    assert all(parsed.latest(next_ - MINUTE, time_zone) == one for one, next_ in list(pairwise(moments))[:5])


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("@hourly", "2026-01-01T01:00"),
        ("@daily", "2026-01-02T00:00"),
        ("@midnight", "2026-01-02T00:00"),
        ("@weekly", "2026-01-04T00:00"),
        ("@Monthly", "2026-02-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@annually", "2027-01-01T00:00"),
        ("5 4 * * sun", "2026-01-04T04:05"),
        ("5 4 * * 7", "2026-01-04T04:05"),
        ("5 4 * * 5-7", "2026-01-02T04:05"),
        ("0 0 ? JUN-aug MON", "2026-06-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 13 * fri", "2026-01-02T00:00"),  # either day is enough
        ("0 0 */2 * fri", "2026-01-02T00:00"),
        ("30/10 9-17/4 * * *", "2026-01-01T09:30"),
    ],
)
def test_accepted_expressions(expression: str, want: str) -> None:
    assert first(expression, at("2026-01-01T00:00")) == [at(want)]


def test_century_without_a_leap_day() -> None:
    assert first("0 0 29 2 *", at("2096-03-01T00:00")) == [at("2104-02-29T00:00")]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "five fields"),
        ("* * * *", "This one has 4"),
        ("0 * * * * *", "This one has 6"),
        ("60 * * * *", "“60” is not a number from 0 to 59"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "from 1 to 31"),
        ("* * * foo *", "a name, for example feb"),
        ("* * * * 8", "from 0 to 7"),
        ("5-1 * * * *", "upwards"),
        ("*/0 * * * *", "the step after “/” must be between 1"),
        ("*/x * * * *", "the step after “/” must be between 1"),
        ("1,,2 * * * *", "“”"),
        ("0 0 30 2 *", "never run"),
        ("0 0 31 4,6,9,11 *", "never run"),
        ("0 0 L * *", "“l”"),
        ("@every 1h", "not one of @yearly"),
        ("@reboot", "not one of @yearly"),
        ("TZ=UTC 0 0 * * *", "This one has 6"),
        ("² * * * *", "is not a number"),
        ("* " * 200, "five fields"),
    ],
)
def test_invalid_expression_is_refused_with_a_reason(expression: str, message: str) -> None:
    with pytest.raises(InvalidCron, match=message):
        cron.parse(expression)


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parsed = cron.parse(text)
    except InvalidCron:
        return
    assert next(parsed.after(at("2026-01-01T00:00"), cron.zone("UTC"))).year >= 2026


def test_unknown_time_zone_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidCron, match="Did you mean “Europe/Berlin”"):
        cron.zone("Europe/Berlim")
    with pytest.raises(InvalidCron):
        cron.zone("../../etc/passwd")


# Clock changes.


def test_skipped_time_runs_when_the_clock_moves_forward() -> None:
    found = first("30 2 * * *", at("2025-03-29T12:00"), "Europe/Berlin", 2)
    assert local(found, "Europe/Berlin") == ["03-30 03:00 CEST", "03-31 02:30 CEST"]


def test_several_skipped_times_run_once() -> None:
    found = first("0,20,40 2,3 * * *", at("2025-03-30T00:00"), "Europe/Berlin", 4)
    assert local(found, "Europe/Berlin") == [
        "03-30 03:00 CEST", "03-30 03:20 CEST", "03-30 03:40 CEST", "03-31 02:00 CEST",
    ]  # fmt: skip


def test_repeated_time_runs_once() -> None:
    found = first("30 2 * * *", at("2025-10-25T12:00"), "Europe/Berlin", 2)
    assert local(found, "Europe/Berlin") == ["10-26 02:30 CEST", "10-27 02:30 CET"]


def test_intervals_continue_through_clock_changes() -> None:
    back = first("*/30 * * * *", at("2025-10-25T23:45"), "Europe/Berlin", 6)
    assert [next_ - one for one, next_ in pairwise(back)] == [30 * MINUTE] * 5
    assert local(back, "Europe/Berlin")[:5] == [
        "10-26 02:00 CEST", "10-26 02:30 CEST", "10-26 02:00 CET", "10-26 02:30 CET", "10-26 03:00 CET",
    ]  # fmt: skip
    forward = first("*/30 * * * *", at("2025-03-30T00:15"), "Europe/Berlin", 5)
    assert [next_ - one for one, next_ in pairwise(forward)] == [30 * MINUTE] * 4


def test_skipped_midnight_still_runs() -> None:
    found = first("0 0 * * *", at("2025-04-24T20:00"), "Africa/Cairo", 2)
    assert local(found, "Africa/Cairo") == ["04-25 01:00 EEST", "04-26 00:00 EEST"]


def test_clock_change_of_half_an_hour() -> None:
    found = first("15 2 * * *", at("2025-10-05T00:00", "Australia/Lord_Howe"), "Australia/Lord_Howe")
    assert local(found, "Australia/Lord_Howe") == ["10-05 02:30 +11"]
