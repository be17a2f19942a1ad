"""The table of a person's login sessions."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.login_sessions.models import LoginSession
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListTable, TextSearch


class SessionsTable(ListTable):
    """Login sessions. `facts.here`: the key of the current session."""

    label = gettext_lazy("Active sessions")
    keys = False

    browser = ListColumn(gettext_lazy("Browser"), sort="browser")
    address = ListColumn(gettext_lazy("IP address"), sort="address")
    since = ListColumn(gettext_lazy("Sign-in"), sort="since", cell=lambda row: html.moment(row.since))
    last_active = ListColumn(
        gettext_lazy("Last seen"),
        sort="last_active_at",
        cell=lambda row: html.moment(row.last_active_at),
    )
    actions = ActionsColumn("login_sessions/_actions.html")

    def render_browser(self, record: LoginSession) -> SafeString:
        """The name of the browser, with a badge for the current session."""
        name = record.browser or format_html('<span class="muted">{}</span>', _("unknown"))
        mark = html.badge("done", _("this session")) if record.session_key == self.facts["here"] else ""
        return format_html("{} {}", name, mark)


SEARCH = TextSearch(lambda row: f"{row.browser} {row.address}", gettext_lazy("Browser or IP address"))
