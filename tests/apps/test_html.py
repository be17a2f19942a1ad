"""Small pieces of HTML that are built in Python."""

from datetime import UTC, datetime
from enum import StrEnum

import pytest
from django.utils import timezone, translation
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from markupsafe import Markup, escape

from hekla.pages.frame import html
from hekla.pages.frame.html import text


class Colour(StrEnum):
    RED = "<red>"


@pytest.mark.parametrize(
    "value",
    [
        *("", "plain", "<b>", "a & b", "it's", 'say "so"', "“–” 中文", SafeString("<b>&amp;</b>"), Markup("<i>")),
        *(0, -7, 1.5, True, None, Colour.RED, gettext_lazy("Jobs"), ["<"]),
    ],
)
def test_text_is_escaped_as_by_the_library(value):
    assert str(text(value)) == str(escape(value))


def test_cells_of_many_rows_are_those_of_one():
    at, later = datetime(2026, 1, 31, 23, tzinfo=UTC), datetime(2026, 2, 1, 5, tzinfo=UTC)
    for zone, language in (("UTC", "en"), ("Asia/Shanghai", "zh-hans")):
        with timezone.override(zone), translation.override(language):
            assert html.moments(exact=True)(at) == html.moment(at, exact=True)
            assert html.moments(exact=False)(at) == html.moment(at)
            assert html.durations()(at, later) == html.duration(at, later)
            assert html.durations()(None, later) == html.NOTHING
            assert html.phase_in(language, "running") == html.phase("running")
