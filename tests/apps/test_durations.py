"""Durations in forms."""

import pytest
from django import forms

from hekla.pages.frame.durations import DurationField, read, write


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4h", 14400), ("90m", 5400), ("1d 2h", 93600), ("1d2h", 93600), ("1.5h", 5400), ("90 min", 5400),
        ("2 Days", 172800), ("1 小时 30 分钟", 5400), ("7200", 7200), ("0", 0), ("0.5m", 30),
        ("", None), ("4", 4), ("h", None), ("2h 1d", None), ("1h 2h", None), ("4x", None), ("-4h", None),
        ("1h 30", None), ("1.0001s", None), ("0.5s", None), ("4h!", None), ("١h", 3600),
    ],
)  # fmt: skip
def test_durations_are_read(text: str, seconds: int | None) -> None:
    assert read(text) == seconds


@pytest.mark.parametrize("seconds", [0, 1, 59, 60, 5400, 86399, 86400, 93600, 1_000_000])
def test_written_durations_are_read_again(seconds: int) -> None:
    assert read(write(seconds)) == seconds


class _Form(forms.Form):
    limit = DurationField(required=False, minimum=60)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", None), ("1m", None), ("30s", "at least 1m"), ("4 fortnights", "for example 4h"), ("99999999d", "at most")],
)
def test_field_says_what_to_enter(text: str, problem: str | None) -> None:
    form = _Form({"limit": text})
    assert form.is_valid() == (problem is None)
    assert (problem or "") in " ".join(form.errors.get("limit", []))


def test_field_shows_seconds_as_a_duration_and_keeps_typed_text() -> None:
    assert 'value="4h"' in str(_Form(initial={"limit": 14400})["limit"])
    assert 'value="240m"' in str(_Form({"limit": "240m"})["limit"])
    assert not _Form({"limit": "4h"}, initial={"limit": 14400}).has_changed()
