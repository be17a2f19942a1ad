"""The tabs of a job's page. The address says which is open, so reloading and going back lead to the same one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.jobs.models import Job
from hekla.pages.frame import html

OVERVIEW, LOG, PODS, RESULTS = "overview", "log", "pods", "results"
FILES, EVENTS, SETTINGS = "files", "events", "settings"
_LABELS: Mapping[str, Callable[[], str]] = {
    OVERVIEW: lambda: _("Overview"),
    LOG: lambda: _("Log"),
    PODS: lambda: _("Pods"),
    RESULTS: lambda: _("Results"),
    FILES: lambda: _("Files"),
    EVENTS: lambda: _("Events"),
    SETTINGS: lambda: _("Settings"),
}
WORDS = tuple(_LABELS)
"""All tabs, in order."""
_OF_PARAMETER = {"log": LOG, "events": EVENTS, "task": PODS, "phase": PODS, "node": PODS, "pods": PODS, "since": PODS}
"""Filters within one tab. A form that sends them need not name the tab."""


@dataclass(frozen=True, slots=True)
class TabLink:
    """A tab: its word in the address, its label and its URL."""

    word: str
    label: str
    url: str
    is_open: bool


def chosen(params: Mapping[str, str]) -> str:
    """The open tab: that of `tab`, else the one that the other parameters filter, else the overview."""
    word = params.get("tab", "")
    if word in _LABELS:
        return word
    return next((tab for name, tab in _OF_PARAMETER.items() if name in params), OVERVIEW)


def links(job: Job, opened: str) -> list[TabLink]:
    """All tabs of the job's page."""
    place = html.address("jobs:detail", job.uid)
    return [
        TabLink(word, label(), place if word == OVERVIEW else f"{place}?tab={word}", word == opened)
        for word, label in _LABELS.items()
    ]
