"""The tabs that all pages about capacity and use share."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

TABS = (
    ("operations:gpu_time", _("GPU time")),
    ("operations:waste", _("Unused GPUs now")),
    ("operations:waiting", _("Waiting")),
    ("operations:failures", _("Failures")),
    ("reports:list", _("Reports")),
)


def tabs_on(view: str) -> Iterator[tuple[str, str, bool]]:
    """Label, URL, and whether it is the tab of this view."""
    return ((str(label), reverse(name), name == view) for name, label in TABS)
