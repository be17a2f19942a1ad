"""Changes to reports by people, and sending those that are due.

A report that is due gets one run, under a lock of its row: with one copy for each recipient and, in the same
transaction, a notification that the mails of notifications deliver. So two workers send nothing twice, and a report
whose times passed while the console was not running is sent once, for the last of them.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps import limits
from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.notifications import selectors as notifications
from hekla.apps.notifications import services as notifying
from hekla.apps.notifications.choices import Moment
from hekla.apps.reports import sections, selectors
from hekla.apps.reports.models import MAX_ERROR, OverviewSettings, Report, ReportCopy, ReportRecipient, ReportRun
from hekla.apps.reports.overview import OverviewFigure
from hekla.domain import events
from hekla.domain.errors import Forbidden, HeklaError, Invalid, Problem, Refused
from hekla.domain.reports import ReportObstacle, ReportScope, ReportSpec

log = logging.getLogger(__name__)
MOST_REPORTS, MOST_RUNS = 50, 200
"""Of one owner; of one report, whose older runs are deleted."""
MOST_BY_HAND, MOST_BY_HAND_OF_ONE = 10, 30
"""How often a report can be sent by hand in a day; how often one person can send reports, also deleted ones."""
_DAY = timedelta(days=1)
_APART = ("recipients", "paused")
"""Fields of a spec that are not stored in the column of that name."""
_OF_A_CHANGE = ("owner", "name", "spec", "is_paused", "stopped", "next_at", "changed_at")


class ReportNameConflict(Refused):
    """The person has a report of that name already."""

    code = "name_taken"


def create(*, spec: ReportSpec, user: User, now: datetime) -> Report:
    """A new report. Raises Invalid, ReportNameConflict; Refused above the number of reports."""
    people = _check(spec, user)
    try:
        with unit_of_work():
            if Report.objects.filter(owner=user).count() >= MOST_REPORTS:
                raise Refused(_("You have too many reports. Delete one first."))
            report = Report(created_at=now)
            _write(report, spec, user, now)
            report.save(force_insert=True)
            _set_recipients(report, people)
            _tell(report, events.ReportCreated(name=spec.name), actor_of(user), now)
    except IntegrityError as error:
        raise _name_conflict(spec.name) from error
    return report


def change(report: Report, new: ReportSpec | Mapping[str, Any], *, user: User, now: datetime) -> Report:
    """Replace the spec, or only these fields of it. From now on the report is this person's.

    A report that was stopped is sent again. Raises Forbidden, Invalid, ReportNameConflict.
    """
    require_right(report, user)
    try:
        with unit_of_work():
            report = changes.locked(report)
            old = selectors.spec_of(report)
            spec = new if isinstance(new, ReportSpec) else ReportSpec.parse({**old.document(), **new})
            people = _check(spec, user, known=old.recipients)
            due_at = report.next_at
            _write(report, spec, user, now)
            if due_at and report.next_at and spec.is_due_as(old):  # what is due now is still sent
                report.next_at = min(due_at, report.next_at)
            report.save(update_fields=_OF_A_CHANGE)
            _set_recipients(report, people)
            _tell(report, events.ReportChanged(name=spec.name, changes=_changes(old, spec)), actor_of(user), now)
    except IntegrityError as error:
        raise _name_conflict(report.name) from error
    return report


def pause(report: Report, *, paused: bool, user: User, now: datetime) -> Report:
    """Pause or resume a report. What was due while it was paused is not sent. Raises Forbidden."""
    require_right(report, user)
    with unit_of_work():
        report = changes.locked(report)
        if report.is_paused != paused:
            old = selectors.spec_of(report)
            spec = old.model_copy(update={"paused": paused})
            report.is_paused, report.next_at = paused, _next(spec, report.stopped, now)
            report.save(update_fields=["is_paused", "next_at"])
            _tell(report, events.ReportChanged(name=report.name, changes=_changes(old, spec)), actor_of(user), now)
    return report


def delete(report: Report, *, user: User, now: datetime) -> None:
    """Delete a report with its history. Mails that are not sent yet are given up. Raises Forbidden."""
    require_right(report, user)
    with unit_of_work():
        report = changes.locked(report)
        _tell(report, events.ReportDeleted(name=report.name), actor_of(user), now)
        report.delete()


def send_now(report: Report, *, user: User, now: datetime) -> ReportRun:
    """Send the last whole period at once. A second call within the same minute returns the same run.

    Raises Forbidden, Refused.
    """
    require_right(report, user)
    minute = now.replace(second=0, microsecond=0)
    with unit_of_work():
        report = changes.locked(report)
        own = ReportRun.objects.filter(report=report, by_hand=True)
        if known := own.filter(due_at=minute).first():
            return known
        if own.filter(created_at__gt=now - _DAY).count() >= MOST_BY_HAND:
            raise Refused(_("This report was sent by hand %d times in the last 24 hours. Try later.") % MOST_BY_HAND)
        spec = selectors.spec_of(report)
        if not spec.recipients:
            raise Refused(_("This report has no recipients."))
        if found := selectors.obstacle(report.owner, spec):
            raise Refused(str(_STOPPED[found]))
        if not limits.allows(f"reports:{user.pk}", most=MOST_BY_HAND_OF_ONE, seconds=round(_DAY.total_seconds())):
            raise Refused(_("You sent reports by hand %d times today. Try tomorrow.") % MOST_BY_HAND_OF_ONE)
        return _dispatch(report, spec, minute, by_hand=True, actor=actor_of(user), now=now)


def send_due(*, now: datetime) -> None:
    """Send all reports that are due. Repeated or concurrent calls have the effect of one."""
    for pk in selectors.due(now):
        try:
            _send_one(pk, now)
        except HeklaError as error:  # the stored specification is invalid by now; it must not stop the others
            log.error("report %s cannot be sent: %s", pk, error)
        except Exception:  # whatever is wrong with one report, it must not stop the others
            log.exception("report %s cannot be sent", pk)


def _send_one(pk: int, now: datetime) -> None:
    with unit_of_work():
        found = Report.objects.select_for_update(of=("self",), skip_locked=True).select_related("owner")
        report = found.filter(pk=pk, next_at__lte=now).first()
        if report is None:
            return
        spec = selectors.spec_of(report)
        due_at = spec.due_at(now)
        if obstacle := selectors.obstacle(report.owner, spec):
            report.stopped = obstacle
            _tell(report, events.ReportStopped(name=report.name, reason=obstacle), PLATFORM, now)
        elif due_at is not None and not ReportRun.objects.filter(report=report, due_at=due_at, by_hand=False).exists():
            _dispatch(report, spec, due_at, by_hand=False, actor=PLATFORM, now=now)
        report.next_at = _next(spec, report.stopped, now)
        report.save(update_fields=["stopped", "next_at"])


def _dispatch(
    report: Report, spec: ReportSpec, due_at: datetime, *, by_hand: bool, actor: Actor, now: datetime
) -> ReportRun:
    """Create a run with a copy for each recipient, and notify those who may see it."""
    span = spec.span(due_at)
    run = ReportRun.objects.create(
        report=report, due_at=due_at, by_hand=by_hand, begin=span.begin, end=span.end, before=span.before,
        created_at=now,
    )  # fmt: skip
    copies = [_copy(run, user, spec, now) for user in selectors.recipients(report)]
    ReportCopy.objects.bulk_create(copies)
    left_out = sum(bool(copy.obstacle) for copy in copies)
    event = events.ReportDispatched(name=report.name, recipients=len(copies) - left_out, left_out=left_out)
    _tell(report, event, actor, now)
    old = ReportRun.objects.filter(report=report).order_by("-id").values("pk")[MOST_RUNS:]
    ReportRun.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()
    return run


def _copy(run: ReportRun, user: User, spec: ReportSpec, now: datetime) -> ReportCopy:
    found = selectors.obstacle(user, spec)
    has_mail = found is None and settings.MAIL_IS_SET_UP and bool(notifications.preference(user).mail)
    if found is None:
        facts = {"report": spec.name, "report_uid": str(run.report.uid), "run": str(run.uid)}
        key = f"report:{run.uid}"
        notifying.tell_of_themselves(user, Moment.REPORT, key, at=now, facts=facts, always_mail=True)
    return ReportCopy(run=run, user=user, obstacle=found or "", has_mail=has_mail)


def settle(run_uid: str, user: User, *, error: str, is_over: bool, now: datetime) -> None:
    """Note that the mail of a copy was sent, or was not (`error`). Call in a unit of work. `is_over`: no retry."""
    fate: dict[str, Any] = {"error": error[:MAX_ERROR]}
    if is_over:
        fate |= {"failed_at": now} if error else {"sent_at": now}
    ReportCopy.objects.filter(run__uid=run_uid, user=user).update(**fate)


def arrange_overview(figures: Sequence[OverviewFigure], *, user: User, now: datetime) -> None:
    """Choose the figures of this person's overview, in this order; none: the usual ones again."""
    names = [one.value for one in dict.fromkeys(figures)]
    with unit_of_work():
        if names:
            OverviewSettings.objects.update_or_create(user=user, defaults={"figures": names})
        else:
            OverviewSettings.objects.filter(user=user).delete()
        event = events.OverviewArranged(figures=tuple(names))
        record(event, subject=f"user:{user.pk}", actor=actor_of(user), at=now)


def require_right(report: Report, user: User) -> None:
    """Raises Forbidden unless the person may change, pause, send and delete the report."""
    if not selectors.may_change(user, report):
        raise Forbidden(_("Only the owner of the report and platform admins can do this."))


_STOPPED = {
    ReportObstacle.DISABLED: gettext_lazy("Sign-in of the report's owner is disabled. Save the report to own it."),
    ReportObstacle.HIDDEN: gettext_lazy("The report's owner may not see what it is about. Save the report to own it."),
}


def _check(spec: ReportSpec, user: User, *, known: tuple[str, ...] = ()) -> list[User]:
    """The recipients. Raises Invalid with every problem of a report that this person saves. `known`: they stay."""
    found = [*_of_contents(spec, user)]
    candidates = {one.username: one for one in selectors.known_people(user).filter(username__in=spec.recipients)}
    people = []
    for name in spec.recipients:
        person = candidates.get(name)
        if person is None:
            found.append(Problem("recipients", _("Unknown person “%s”.") % name))
        elif name not in known and selectors.obstacle(person, spec):
            found.append(Problem("recipients", _("%s may not see what this report is about.") % name))
        else:
            people.append(person)
    if found:
        raise Invalid(found)
    return people


def _of_contents(spec: ReportSpec, user: User) -> Iterator[Problem]:
    for name in spec.sections:
        if name not in sections.SECTIONS:
            yield Problem("sections", _("Unknown section “%s”.") % name)
    if selectors.obstacle(user, spec):
        if spec.scope is ReportScope.ALL:
            yield Problem("scope", _("You may not see any measures. Ask an admin of a tenant to add you."))
        else:
            yield Problem("subject", _("You may not see “%s”, or it does not exist.") % spec.subject)


def _write(report: Report, spec: ReportSpec, user: User, now: datetime) -> None:
    """Set the columns that follow from the spec (not saved yet)."""
    document = spec.document()
    report.spec = {name: value for name, value in document.items() if name not in _APART}
    report.owner, report.name, report.is_paused, report.stopped = user, spec.name, spec.paused, ""
    report.next_at, report.changed_at = _next(spec, "", now), now


def _next(spec: ReportSpec, stopped: str, now: datetime) -> datetime | None:
    return None if spec.paused or stopped else next(iter(spec.next_times(now, 1)), None)


def _set_recipients(report: Report, people: list[User]) -> None:
    ReportRecipient.objects.filter(report=report).exclude(user__in=people).delete()
    rows = [ReportRecipient(report=report, user=user) for user in people]
    ReportRecipient.objects.bulk_create(rows, ignore_conflicts=True)


def _changes(old: ReportSpec, new: ReportSpec) -> dict[str, events.FieldChange]:
    before, after = old.document(), new.document()
    return {
        name: events.FieldChange(old=before[name], new=after[name]) for name in after if before[name] != after[name]
    }


def _name_conflict(name: str) -> ReportNameConflict:
    return ReportNameConflict(_("You have a report “%s” already. Choose another name.") % name, "name")


def _tell(report: Report, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"report:{report.uid}", topics=["reports"], actor=actor, at=now)
