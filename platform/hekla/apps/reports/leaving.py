"""The link in the mail of a report with which a recipient leaves it, without signing in."""

from uuid import UUID

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.reports.models import Report
from hekla.domain.errors import NotFound

_SALT, _LASTS_SECONDS = "hekla.reports.leave", 400 * 24 * 3600


def link(report: Report, reader: User) -> str:
    """The URL for this recipient. It is signed, and names both."""
    secret = signing.dumps([report.uid.hex, reader.pk], salt=_SALT, compress=True)
    return settings.PUBLIC_URL.rstrip("/") + reverse("reports:leave", args=[secret])


def parse(secret: str) -> tuple[Report, User]:
    """The report and the recipient of a link. Raises NotFound if it is not ours, too old, or the report is gone."""
    try:
        uid, key = signing.loads(secret, salt=_SALT, max_age=_LASTS_SECONDS)
    except signing.BadSignature as error:
        raise NotFound(_("This link is not valid any more.")) from error
    report = Report.objects.filter(uid=UUID(uid)).select_related("owner").first()
    reader = accounts.everybody().filter(pk=key, is_active=True).first()
    if report is None or reader is None:
        raise NotFound(_("This link is not valid any more."))
    return report, reader
