"""The mail with an invitation's link."""

from smtplib import SMTPException

from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from hekla.apps import mail
from hekla.apps.invitations.models import Invitation


class InvitationNotSent(Exception):
    """The mail server did not accept the mail; a retry may succeed."""


def deliver(invitation: Invitation, link: str) -> None:
    """Send the link to the address of the invitation. Raises InvitationNotSent."""
    subject = _("Invitation to %(tenant)s on Hekla") % {"tenant": invitation.tenant.name}
    text = render_to_string("invitations/mail.txt", {"invitation": invitation, "link": link})
    try:
        mail.send(invitation.email, subject, text)
    except (OSError, SMTPException) as error:
        raise InvitationNotSent(str(error)) from error
