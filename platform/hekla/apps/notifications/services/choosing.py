"""Changes notification settings. They are private, so they record no events, except for a new email address:

whoever has only a person's session could redirect all later notices. The old address is notified (`following`).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import addresses, encryption
from hekla.apps.notifications.choices import Channel
from hekla.apps.notifications.models import JobChoice, Notification, Preference
from hekla.apps.notifications.signals import changed_for
from hekla.domain import events
from hekla.domain.errors import Invalid, NotFound, Problem, Refused

MOST_JOB_CHOICES = 1_000


def choose(user: User, values: dict[str, Any], *, now: datetime) -> str:
    """Store these of a person's defaults for all jobs. Returns the secret of a new webhook, else "". Raises Invalid."""
    with unit_of_work():
        found, _is_new = Preference.objects.get_or_create(user=user, defaults={"mail": user.email})
        changed = changes.edit(found, {**values, "language": get_language() or ""})
        _require_addresses(found.channels, {"mail": found.mail, "webhook_url": found.webhook_url})
        if mail := changed.get("mail"):
            event = events.MailAddressChanged(old=mail.old, new=mail.new)
            record(event, subject=f"user:{user.pk}", actor=actor_of(user), at=now)
        secret = ""
        if found.webhook_url and not found.webhook_secret:
            secret, found.webhook_secret = encryption.make_secret()
            found.save(update_fields=["webhook_secret"])
    return secret


def renew_secret(user: User) -> str:
    """Replace the webhook's secret, and return the new one. Raises Refused without a webhook."""
    with unit_of_work():
        found = Preference.objects.select_for_update().filter(user=user).first()
        if found is None or not found.webhook_url:
            raise Refused(_("No webhook is set."))
        secret, found.webhook_secret = encryption.make_secret()
        found.save(update_fields=["webhook_secret"])
    return secret


def choose_for_job(user: User, job: Job, values: dict[str, Any]) -> JobChoice:
    """Store a person's choice for one job. Raises NotFound, Invalid; Refused above MOST_JOB_CHOICES.

    A deleted job has a choice too: it still has news for a while.
    """
    if not jobs.known_to(user).filter(pk=job.pk).exists():
        raise NotFound(_("Unknown job."))
    reach = Preference.objects.filter(user=user).first() or Preference(user=user, mail=user.email)
    _require_addresses(values["channels"], {"mail": reach.mail, "webhook_url": reach.webhook_url})
    with unit_of_work():
        changes.locked(user)
        if JobChoice.objects.filter(user=user).exclude(job_uid=job.uid).count() >= MOST_JOB_CHOICES:
            raise Refused(_("You have custom settings for too many jobs. Change your defaults instead."))
        found, _made = JobChoice.objects.update_or_create(user=user, job_uid=job.uid, defaults=values)
    return found


def forget_choice(user: User, job: Job) -> None:
    """Delete the person's choice for this job, so that their defaults apply."""
    with unit_of_work():
        changes.locked(user)
        JobChoice.objects.filter(user=user, job_uid=job.uid).delete()


def mark_read(user: User, *, up_to: int, now: datetime) -> None:
    """Mark the person's notifications up to this id as read."""
    with unit_of_work():
        Notification.objects.filter(user=user, pk__lte=up_to, read_at=None).update(read_at=now)
        changed_for(user.pk)


def _require_addresses(channels: Sequence[str], reach: dict[str, Any]) -> None:
    """Raises Invalid if a channel has no address, or the webhook's address is not allowed."""
    problems = []
    if Channel.MAIL in channels and not reach["mail"]:
        problems.append(Problem("mail", _("Enter an email address.")))
    if Channel.WEBHOOK in channels and not reach["webhook_url"]:
        problems.append(Problem("webhook_url", _("Enter a webhook URL.")))
    if url := reach["webhook_url"]:
        try:
            addresses.check(url)
        except Refused as error:
            problems.append(Problem("webhook_url", error.message))
    if problems:
        raise Invalid(problems)
