"""The templates of the gallery, whoever has them: one list of cards.

A person's own and a tenant's saved jobs fill the submission form. Published templates have locked fields and a form of
their own. The templates of flows are jobs that steps of flows name. Those that come with Hekla are for everybody.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts.models import User
from hekla.apps.flows import selectors as flows
from hekla.apps.gallery import selectors
from hekla.apps.presets import selectors as saved
from hekla.apps.tenancy import selectors as tenancy
from hekla.pages.submit.presets import INCLUDED

_MOST = 500
"""Cards of each kind. A tenant has at most 200 of each."""


class Availability(StrEnum):
    """To whom a template is available."""

    PERSONAL = "personal"
    TENANT = "tenant"
    EVERYBODY = "everybody"


SCOPES: dict[Availability, Promise] = {
    Availability.PERSONAL: gettext_lazy("Only you"),
    Availability.TENANT: gettext_lazy("Your tenants"),
    Availability.EVERYBODY: gettext_lazy("Everybody"),
}


@dataclass(frozen=True, slots=True)
class TemplateCard:
    """A template. `note`: its tenant and kind; `needs`: programs that its environment must have."""

    scope: Availability
    title: str
    about: str
    note: str
    address: str
    needs: str = ""

    @property
    def scope_word(self) -> str:
        """To whom it is available, in words."""
        return str(SCOPES[self.scope])


def cards(user: User, scope: str = "", text: str = "") -> list[TemplateCard]:
    """The templates that the person may use, their own first. `scope`: only these; `text`: in the title or words."""
    found = (card for source in (_saved, _published, _of_flows, _included) for card in source(user))
    fitting = (card for card in found if scope in ("", card.scope) and _holds(card, text))
    return sorted(fitting, key=lambda card: [*Availability].index(card.scope))


def _is_theirs(user: User) -> Q:
    """Of no tenant, or of one in which the person has a role. An admin may see more, but not under “Your tenants”."""
    return Q(tenant=None) | Q(tenant__in=tenancy.own(user).order_by().values("pk"))


def _holds(card: TemplateCard, text: str) -> bool:
    return text.lower() in f"{card.title} {card.about} {card.note}".lower()


def _saved(user: User) -> Iterator[TemplateCard]:
    for each in saved.visible_to(user).filter(_is_theirs(user)).defer("spec")[:_MOST]:
        address = f"{reverse('jobs:submit')}?saved={each.uid}"
        about = _("Default for new jobs") if each.is_default else ""
        yield TemplateCard(_scope(each.tenant), each.name, about, _fills(each.tenant), address)


def _published(user: User) -> Iterator[TemplateCard]:
    for each in selectors.visible_to(user).filter(_is_theirs(user))[:_MOST]:
        scope = Availability.TENANT if each.tenant else Availability.EVERYBODY
        locked = _("some fields, version %d") % each.version
        note = f"{each.tenant} · {locked}" if each.tenant else locked
        yield TemplateCard(scope, each.title, each.description, note, reverse("gallery:template", args=[each.uid]))


def _of_flows(user: User) -> Iterator[TemplateCard]:
    for each in flows.templates(user).filter(_is_theirs(user)).defer("spec")[:_MOST]:
        note = f"{each.tenant} · {_('also for steps of flows')}"
        yield TemplateCard(Availability.TENANT, each.name, "", note, reverse("flows:template", args=[each.uid]))


def _included(_user: User) -> Iterator[TemplateCard]:
    note = _("comes with Hekla")
    for each in INCLUDED:
        address = f"{reverse('jobs:submit')}?template={each.name}"
        yield TemplateCard(Availability.EVERYBODY, str(each.title), str(each.about), note, address, each.needs)
    about = _("Steps that start one after the other, with branches and conditions.")
    yield TemplateCard(
        Availability.EVERYBODY, _("Flow: steps that depend on each other"), about, note, reverse("flows:start")
    )


def _scope(tenant: Any) -> Availability:  # noqa: ANN401
    return Availability.TENANT if tenant else Availability.PERSONAL


def _fills(tenant: Any) -> str:  # noqa: ANN401
    return f"{tenant} · {_('fills the form')}" if tenant else _("fills the form")
