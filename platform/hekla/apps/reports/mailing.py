"""The mails of reports: the report as HTML and as PDF, with what its reader may see when it is sent."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.mail import MailFile
from hekla.apps.notifications.letters import Letter, LetterWithdrawn
from hekla.apps.notifications.models import Notification
from hekla.apps.reports import composing, html, leaving, pdf, selectors, services
from hekla.apps.reports.contents import plain
from hekla.apps.reports.models import ReportRun
from hekla.domain.errors import HeklaError
from hekla.lib import clock

MOST_BYTES = 2 * 1024 * 1024
"""Of the HTML and of the file. They are much smaller: all tables are bounded."""


class ReportLetters:
    """Writes the mails of reports."""

    def compose(self, notification: Notification) -> Letter:
        """The mail of a copy. Raises LetterWithdrawn if the report is gone, or the person may not see it any more."""
        run = ReportRun.objects.filter(uid=UUID(notification.facts["run"])).select_related("report__owner").first()
        if run is None:
            raise LetterWithdrawn(_("The report was deleted."))
        try:
            return _written(run, notification.user)
        except HeklaError as error:
            raise LetterWithdrawn(error.message) from error

    def settle(self, notification: Notification, *, error: str, is_over: bool, now: datetime) -> None:
        """Note the fate of the mail in the history of the report."""
        run_uid = notification.facts["run"]
        services.settle(run_uid, notification.user, error=error, is_over=is_over, now=now)


def _written(run: ReportRun, reader: User) -> Letter:
    """The mail for this person. Raises HeklaError if they may not get it."""
    if not selectors.obtains(run.report, reader):
        raise LetterWithdrawn(_("The person is no recipient any more."))
    spec, span = selectors.spec_of(run.report), run.span
    contents = composing.compose(spec, span, reader, now=clock.now())
    sender = _("%s named you as a recipient of this report.") % plain(run.report.owner.username)
    contents = replace(contents, lines=(*contents.lines, sender))
    link, leave = composing.address(run.report), leaving.link(run.report, reader)
    page = html.document(contents, link, leave)
    file = MailFile(composing.file_name(spec, span, "pdf"), pdf.document(contents, link), "application/pdf")
    return Letter(
        subject=_("Report %s") % contents.title,
        text=html.text(contents, link, leave),
        html=page if len(page.encode()) <= MOST_BYTES else "",
        files=[file] if len(file.content) <= MOST_BYTES else [],
    )
