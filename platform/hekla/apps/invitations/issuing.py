"""Invitation links for the rows of an import."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from hekla.apps.invitations import letters
from hekla.apps.invitations.importing import ImportOutcome
from hekla.lib import clock


@dataclass(frozen=True, slots=True)
class Issued:
    """The outcome of a row. `link`: of a new invitation, available only now; `sent`: it will also be mailed."""

    outcome: ImportOutcome
    link: str = ""
    sent: bool = False


def issue(outcomes: Sequence[ImportOutcome], absolute: Callable[[str], str]) -> list[Issued]:
    """The outcomes with the links of new invitations; queues a mail for each, if mail is configured."""
    links = {
        place: absolute(reverse("invitations:sign_up", args=[outcome.secret]))
        for place, outcome in enumerate(outcomes)
        if outcome.secret
    }
    invitations = {at: invitation for at in links if (invitation := outcomes[at].invitation)}
    posted = letters.post([(invitation, links[at]) for at, invitation in invitations.items()], now=clock.now())
    sent = {at for at, invitation in invitations.items() if invitation.pk in posted}
    return [Issued(one, links.get(at, ""), at in sent) for at, one in enumerate(outcomes)]
