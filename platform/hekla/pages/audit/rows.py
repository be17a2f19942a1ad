"""The rows of the audit log, built in Python because a page has fifty of them, each with several links."""

import re
from collections.abc import Iterable
from urllib.parse import quote

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.audit.selectors import AuditEntry
from hekla.apps.event_log.words import kind_in_words
from hekla.pages.audit import links
from hekla.pages.frame import html
from hekla.pages.frame.html import text

_is_plain = re.compile(r"[\w.~:-]*", re.ASCII).fullmatch


def audit_rows(entries: Iterable[AuditEntry], user: User) -> SafeString:
    """The rows of these entries, with links to the pages that this person can open."""
    time, tenant, about = (text(words) for words in (_("Time"), _("Tenant"), _("All about this object")))
    kinds: dict[str, str] = {}
    moment = html.moments(exact=True)

    def row(entry: AuditEntry) -> str:
        event = entry.event
        if event.kind not in kinds:
            kinds[event.kind] = f'<a href="?kind={text(event.kind)}">{text(kind_in_words(event.kind))}</a>'
        place = f'<a href="?object={_quoted(event.subject)}">{about}</a>'
        return (
            f'<tr><td data-label="{time}">{moment(event.at)}</td>'
            f'<th scope="row" class="audit-sentence">{links.sentence(entry, user)}'
            f'<span class="row-note">{kinds[event.kind]} · {place}</span></th>'
            f'<td data-label="{tenant}">{text(entry.tenant.name) if entry.tenant else "–"}</td></tr>'
        )

    return SafeString("".join([row(entry) for entry in entries]))


def _quoted(subject: str) -> str:
    """A subject as a value of a query. `quote` takes a step for each character of those that have another one."""
    return subject.replace(":", "%3A") if _is_plain(subject) else quote(subject, safe="")
