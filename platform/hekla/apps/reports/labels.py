"""Scopes, periods, schedules and obstacles of reports in words."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.reports import ReportEvery, ReportObstacle, ReportPeriod, ReportScope, ReportSpec

SCOPES: Mapping[str, Any] = {
    ReportScope.ALL: gettext_lazy("everything that the reader may see"),
    ReportScope.TENANT: gettext_lazy("a tenant"),
    ReportScope.QUEUE: gettext_lazy("a queue"),
    ReportScope.CLUSTER: gettext_lazy("a cluster"),
}
PERIODS: Mapping[str, Any] = {
    ReportPeriod.DAY: gettext_lazy("the day before"),
    ReportPeriod.WEEK: gettext_lazy("the week before, from Monday"),
    ReportPeriod.MONTH: gettext_lazy("the calendar month before"),
}
EVERY: Mapping[str, Any] = {
    ReportEvery.NEVER: gettext_lazy("only by hand"),
    ReportEvery.DAY: gettext_lazy("every day"),
    ReportEvery.WEEK: gettext_lazy("on Mondays"),
    ReportEvery.MONTH: gettext_lazy("on the first day of the month"),
}
OBSTACLES: Mapping[str, Any] = {
    ReportObstacle.DISABLED: gettext_lazy("sign-in is disabled for this person"),
    ReportObstacle.HIDDEN: gettext_lazy("may not see what the report is about"),
}
STOPPED: Mapping[str, Any] = {
    ReportObstacle.DISABLED: gettext_lazy("Sign-in is disabled for its owner."),
    ReportObstacle.HIDDEN: gettext_lazy("Its owner may not see what it is about."),
}


def subject(spec: ReportSpec) -> str:
    """What a report is about, as a sentence."""
    match spec.scope:
        case ReportScope.TENANT:
            return _("About tenant %s.") % spec.subject
        case ReportScope.QUEUE:
            return _("About queue %s.") % spec.subject
        case ReportScope.CLUSTER:
            return _("About cluster %s.") % spec.subject
    return _("About everything that you may see.")


def times(spec: ReportSpec) -> str:
    """When a report is sent."""
    if spec.every is ReportEvery.NEVER:
        return str(EVERY[spec.every])
    words = {"when": EVERY[spec.every], "hour": f"{spec.hour:02}:00", "zone": spec.time_zone}
    return _("%(when)s at %(hour)s (%(zone)s)") % words
