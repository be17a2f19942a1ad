"""Queries about price lists. Everybody who may see measures may read them; factors only of queues that they can see."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.prices.models import PriceList
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import NotFound
from hekla.domain.prices import PriceRates, PriceSpec


def visible_to(user: User) -> QuerySet[PriceList]:
    """All price lists for people with a tenant, and for those who see everything; none for others. Newest first."""
    found = PriceList.objects.order_by("-begin_at")
    if accounts.may(user, Permission.SEE_EVERYTHING) or tenancy.visible_ids(user):
        return found
    return found.none()


def get(uid: UUID, user: User) -> PriceList:
    """One list. Raises NotFound."""
    found = visible_to(user).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("Unknown price list."))
    return found


def may_set(user: User) -> bool:
    """Whether the person may add and delete price lists: operators and platform admins."""
    return accounts.may(user, Permission.MANAGE_CLUSTERS)


def spec_for(found: PriceList, user: User) -> PriceSpec:
    """The prices of a list, with the factors of those queues that the person can see."""
    pks = [int(key) for key in found.factors]
    names = dict(queues.visible_to(user).filter(pk__in=pks).values_list("pk", "name")) if pks else {}
    factors = {names[pk]: found.factors[str(pk)] for pk in pks if pk in names}
    return PriceSpec.parse({**found.spec, "queues": factors})


def at(moment: datetime) -> PriceList | None:
    """The list that is valid at this moment; None: nothing has a price."""
    return PriceList.objects.filter(begin_at__lte=moment).order_by("-begin_at").first()


def until(found: PriceList) -> datetime | None:
    """When the next list begins; None: there is none."""
    later = PriceList.objects.filter(begin_at__gt=found.begin_at).order_by("begin_at")
    return later.values_list("begin_at", flat=True).first()


def has_lists() -> bool:
    """Whether there is any price list."""
    return PriceList.objects.exists()


def currency() -> str:
    """The currency of all lists; empty without a list."""
    return PriceList.objects.order_by("begin_at").values_list("currency", flat=True).first() or ""


def zone() -> ZoneInfo:
    """The zone by whose clock hours have prices: that of the console."""
    return ZoneInfo(settings.TIME_ZONE)


def rates(found: PriceList) -> PriceRates:
    """The prices of a list as numbers; queues by primary key."""
    factors = {int(key): text for key, text in found.factors.items()}
    return PriceRates.of(PriceSpec.parse(found.spec), zone(), factors)


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """All price lists, oldest first, as spans of time with their rates."""

    spans: tuple[tuple[datetime, datetime | None, PriceRates], ...]

    @classmethod
    def read(cls) -> "PriceHistory":
        """As they are stored now: one query."""
        found = list(PriceList.objects.order_by("begin_at"))
        begins = [*(one.begin_at for one in found), None]
        return cls(tuple((*_span(pair), rates(one)) for pair, one in zip(pairwise(begins), found, strict=True)))

    def at(self, moment: datetime) -> PriceRates | None:
        """The rates at this moment; None: nothing has a price."""
        found = (rate for begin, end, rate in self.spans if begin <= moment and (end is None or moment < end))
        return next(found, None)


def _span(pair: tuple[datetime | None, datetime | None]) -> tuple[datetime, datetime | None]:
    begin, end = pair
    assert begin is not None  # noqa: S101  (only the last one is)
    return begin, end


def keys_of(names: Iterable[str]) -> dict[str, int]:
    """The primary keys of queues by name; unknown names are left out."""
    return dict(Queue.objects.filter(name__in=list(names)).values_list("name", "pk"))
