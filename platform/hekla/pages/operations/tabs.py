"""The tabs that the pages of operations share."""

from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TABS: tuple[tuple[str, str | Promise], ...] = (
    ("operations:overview", _("Overview")),
    ("operations:gpu_time", _("GPU time")),
    ("operations:waste", _("Unused GPUs")),
    ("operations:cost", _("Cost")),
    ("operations:stalled", _("Stalled pods")),
    ("operations:waiting", _("Waiting")),
    ("operations:failures", _("Failures")),
    ("operations:queues", _("Queues")),
    ("operations:sessions", _("Sessions")),
    ("reports:list", _("Reports")),
)
"""Route and label."""


def tabs(current: str) -> list[dict[str, Any]]:
    """The tabs, of which the one of the route `current` is marked."""
    return [{"label": label, "address": reverse(route), "current": route == current} for route, label in TABS]
