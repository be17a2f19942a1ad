"""Operations on notifications and their settings."""

from hekla.apps.notifications.services.choosing import choose, choose_for_job, forget_choice, mark_read, renew_secret
from hekla.apps.notifications.services.following import follow
from hekla.apps.notifications.services.looking import look, tidy
from hekla.apps.notifications.services.sending import send_due
from hekla.apps.notifications.services.submitting import submit
from hekla.apps.notifications.services.telling import tell_of_batch, tell_of_themselves

__all__ = [
    "choose",
    "choose_for_job",
    "follow",
    "forget_choice",
    "look",
    "mark_read",
    "renew_secret",
    "send_due",
    "submit",
    "tell_of_batch",
    "tell_of_themselves",
    "tidy",
]
