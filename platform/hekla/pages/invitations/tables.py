"""The table of a tenant's open invitations."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.invitations.models import Invitation, InvitationMail
from hekla.pages.frame import html
from hekla.pages.frame.tables import ActionsColumn, ListColumn, ListFilter, ListTable, noted


def _letter(letter: InvitationMail) -> str:
    if not letter.due_at:
        return _("Not mailed: %(why)s") % {"why": letter.error}
    if letter.error:
        return _("Not mailed yet. Retrying: %(why)s") % {"why": letter.error}
    return _("Sending the link by mail.")


def _recipient(invitation: Invitation) -> SafeString:
    anyone = format_html('<span class="muted">{}</span>', _("anyone with the link"))
    letter = getattr(invitation, "letter", None)
    note = format_html('<span class="row-note">{}</span>', _letter(letter)) if letter else ""
    return format_html("{}{}", invitation.email or invitation.username or anyone, note)


def _role(invitation: Invitation) -> str:
    roles = [invitation.get_role_display()]
    return " · ".join([*roles, invitation.get_platform_role_display()] if invitation.platform_role else roles)


class InvitationsTable(ListTable):
    """Invitations that are neither accepted nor revoked. `facts.now`: the time that decides which have expired."""

    label = gettext_lazy("Invitations")
    keys = False

    recipient = ListColumn(gettext_lazy("Recipient"), sort=("email", "username"), cell=_recipient)
    role = ListColumn(gettext_lazy("Role"), sort=("role", "platform_role"), cell=_role)
    invited_by = ListColumn(
        gettext_lazy("Invited by"),
        sort="created_at",
        cell=lambda one: noted(one.invited_by, html.moment(one.created_at)),
    )
    valid_until = ListColumn(gettext_lazy("Valid until"), sort="expires_at")
    actions = ActionsColumn("invitations/_actions.html")

    def render_valid_until(self, record: Invitation) -> SafeString:
        """The time of expiry, or a badge if the invitation has expired."""
        is_over = record.expires_at < self.facts["now"]
        return html.badge("stopped", _("expired")) if is_over else html.moment(record.expires_at, exact=True)


class InvitationsFilter(ListFilter):
    """Filters by invited person and inviter."""

    search = ("email", "username", "display_name", "invited_by__username", "invited_by__display_name")
    hint = gettext_lazy("Name or email address")
