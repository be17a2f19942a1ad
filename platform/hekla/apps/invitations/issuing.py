"""The links of people who were invited by a table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from hekla.apps.invitations import letters
from hekla.apps.invitations.importing import ImportOutcome
from hekla.lib import clock


@dataclass(frozen=True, slots=True)
class Issued:
    """A row, and where somebody was invited, the link of it, told this once, and whether it is mailed too."""

    outcome: ImportOutcome
    link: str = ""
    sent: bool = False


def issue(outcomes: Sequence[ImportOutcome], absolute: Callable[[str], str]) -> list[Issued]:
    """The links of those who were invited, which are mailed soon where that is possible."""
    links = {
        place: absolute(reverse("invitations:sign_up", args=[outcome.secret]))
        for place, outcome in enumerate(outcomes)
        if outcome.secret
    }
    invitations = {at: invitation for at in links if (invitation := outcomes[at].invitation)}
    posted = letters.post([(invitation, links[at]) for at, invitation in invitations.items()], now=clock.now())
    sent = {at for at, invitation in invitations.items() if invitation.pk in posted}
    return [Issued(one, links.get(at, ""), at in sent) for at, one in enumerate(outcomes)]
