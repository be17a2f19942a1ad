"""Queries about reports. A report exists for its owner, its recipients, and people who see everything."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.queues import selectors as queues
from hekla.apps.reports.models import OverviewSettings, Report, ReportCopy, ReportRecipient, ReportRun
from hekla.apps.reports.overview import OverviewFigure
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import NotFound
from hekla.domain.reports import ReportObstacle, ReportScope, ReportSpan, ReportSpec


def visible_to(user: User) -> QuerySet[Report]:
    """The reports that this person owns or gets; all for those who see everything. By name."""
    found = Report.objects.select_related("owner")
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        found = found.filter(Q(owner=user) | Exists(ReportRecipient.objects.filter(report=OuterRef("pk"), user=user)))
    return found.order_by("name", "id")


def get(uid: UUID, user: User) -> Report:
    """One report. Raises NotFound."""
    report = visible_to(user).filter(uid=uid).first()
    if report is None:
        raise NotFound(_("Unknown report."))
    return report


def may_change(user: User, report: Report) -> bool:
    """Whether the person may change, pause, send and delete it: its owner, and those who manage people."""
    return report.owner_id == user.pk or accounts.may(user, Permission.MANAGE_PEOPLE)


def recipients(report: Report) -> list[User]:
    """Those who get it, by user name."""
    ids = ReportRecipient.objects.filter(report=report).values("user")
    return list(accounts.everybody().filter(pk__in=ids).order_by("username"))


def obtains(report: Report, user: User) -> bool:
    """Whether the person is a recipient now."""
    return ReportRecipient.objects.filter(report=report, user=user).exists()


def spec_of(report: Report) -> ReportSpec:
    """The spec of a report as it is now."""
    names = [user.username for user in recipients(report)]
    return ReportSpec.parse({**report.spec, "recipients": names, "paused": report.is_paused})


def spec_for(report: Report, reader: User) -> ReportSpec:
    """The spec as this person may see it. Recipients of different tenants do not learn of each other."""
    spec = spec_of(report)
    if may_change(reader, report) or accounts.may(reader, Permission.SEE_EVERYTHING):
        return spec
    return spec.model_copy(update={"recipients": tuple(name for name in spec.recipients if name == reader.username)})


def obstacle(user: User, spec: ReportSpec) -> ReportObstacle | None:
    """Why this person cannot get the report; None: they can. The measures decide what they see of its subject."""
    if not user.is_active:
        return ReportObstacle.DISABLED
    return None if _sees(user, spec.scope, spec.subject) else ReportObstacle.HIDDEN


def _sees(user: User, scope: ReportScope, name: str) -> bool:
    try:
        match scope:
            case ReportScope.TENANT:
                tenancy.get(name, user)
                return True
            case ReportScope.QUEUE:
                queues.get(name, user)
            case ReportScope.CLUSTER:
                clusters.get(name)
    except NotFound:
        return False
    return accounts.may(user, Permission.SEE_EVERYTHING) or bool(tenancy.visible_ids(user))


def known_people(user: User) -> QuerySet[User]:
    """The people that this person can name as recipients, by user name."""
    found = accounts.everybody().filter(is_active=True).order_by("username")
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return found
    return found.filter(Q(pk=user.pk) | Q(pk__in=tenancy.known_people(user).order_by().values("pk")))


def runs(report: Report, reader: User) -> QuerySet[ReportRun]:
    """The occasions at which it was sent, newest first, with the copies of all, or only the reader's own ones."""
    copies = ReportCopy.objects.select_related("user").order_by("user__username")
    if not may_change(reader, report):
        copies = copies.filter(user=reader)
    return (
        ReportRun.objects.filter(report=report)
        .select_related("report")
        .prefetch_related(Prefetch("copies", copies))
        .order_by("-id")
    )


def span_of(report: Report, run_uid: UUID) -> ReportSpan:
    """The time that one of its runs covers. Raises NotFound."""
    run = ReportRun.objects.filter(report=report, uid=run_uid).first()
    if run is None:
        raise NotFound(_("Unknown report."))
    return run.span


def overview_figures(user: User) -> list[OverviewFigure] | None:
    """The figures that the person chose for the overview, in their order; None: they chose none."""
    names = OverviewSettings.objects.filter(user=user).values_list("figures", flat=True).first()
    return None if names is None else [OverviewFigure(name) for name in names if name in list(OverviewFigure)]


def due(now: datetime) -> list[int]:
    """The row ids of due reports."""
    return list(Report.objects.filter(next_at__lte=now).order_by("next_at", "id").values_list("pk", flat=True))


def send_work() -> list[QuerySet[Any, Any]]:
    """Reports that are due now or soon (see `due_work`)."""
    return [Report.objects.filter(next_at__lte=due_work.horizon())]
