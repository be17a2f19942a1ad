"""Adding and deleting price lists. What costs were is never changed: a list begins in the future.

Only the first list may begin in the past, because nothing had a price before.
"""

from datetime import UTC, datetime, timedelta

from django.db import IntegrityError, connection
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require_actor
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.prices import selectors
from hekla.apps.prices.models import PriceList
from hekla.domain import events
from hekla.domain.errors import Invalid, Problem, Refused
from hekla.domain.prices import PriceSpec

MOST_LISTS = 200
_HOUR, _EARLIEST, _FURTHEST = timedelta(hours=1), timedelta(days=28), timedelta(days=36_500)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def create(*, spec: PriceSpec, begin_at: datetime, user: User, now: datetime) -> PriceList:
    """A new list from the UTC hour of `begin_at` on. Until then the one before is valid. Raises Forbidden, Invalid,
    Refused if it would change costs of the past, overlap another list, or mix currencies.
    """
    return _create(spec, begin_at, actor_of(user), now)


def create_for_demonstration(*, spec: PriceSpec, begin_at: datetime, now: datetime) -> PriceList | None:
    """The list of a demonstration, if there is no list at all; else None."""
    if PriceList.objects.exists():
        return None
    return _create(spec, begin_at, PLATFORM, now, is_demonstration=True)


def require_right(user: User) -> None:
    """Raises Forbidden unless the person may add and delete price lists."""
    require_actor(actor_of(user), Permission.MANAGE_CLUSTERS)


def _create(
    spec: PriceSpec, begin_at: datetime, actor: Actor, now: datetime, *, is_demonstration: bool = False
) -> PriceList:
    if actor is not PLATFORM:
        require_actor(actor, Permission.MANAGE_CLUSTERS)
    begin = max(begin_at, _EPOCH)
    begin -= (begin - _EPOCH) % _HOUR
    pks = selectors.keys_of(spec.queues)
    if unknown := [name for name in spec.queues if name not in pks]:
        raise Invalid([Problem(f"queues.{name}", _("Unknown queue “%s”.") % name) for name in unknown])
    try:
        with unit_of_work():
            _wait_for_others()
            found = list(PriceList.objects.order_by("begin_at"))
            _check(found, spec, begin, now)
            document = spec.document()
            factors = document.pop("queues")
            row = PriceList.objects.create(
                name=spec.name,
                currency=spec.currency,
                begin_at=begin,
                spec=document,
                factors={str(pks[name]): factor for name, factor in factors.items()},
                is_demonstration=is_demonstration,
                created_by=actor.name,
                created_at=now,
            )
            _tell(row, events.PriceListCreated(name=row.name, begin=begin.isoformat()), actor, now)
    except IntegrityError as error:
        raise _overlap() from error
    return row


def _wait_for_others() -> None:
    """Let one process add a list at a time. Locks on rows would not do: two first lists have none to lock."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE prices_pricelist IN SHARE ROW EXCLUSIVE MODE")


def _check(found: list[PriceList], spec: PriceSpec, begin: datetime, now: datetime) -> None:
    """Raises Refused with the reason why this list cannot begin then."""
    if len(found) >= MOST_LISTS:
        raise Refused(_("There are too many price lists. Delete one that has not begun."))
    if any(one.begin_at == begin for one in found):
        raise _overlap()
    if found and begin <= now:
        raise Refused(
            _("It begins in the past, where the list “%s” is valid, and costs of the past never change. "
              "Choose a later begin.") % (_valid(found, begin) or found[0]).name,
            "begin",
        )  # fmt: skip
    if begin < now - _EARLIEST:
        raise Refused(_("The first list can begin at most %d days ago.") % _EARLIEST.days, "begin")
    if begin > now + _FURTHEST:
        raise Refused(_("A list can begin at most 100 years from now."), "begin")
    other = next((one.currency for one in found if one.currency != spec.currency), None)
    if other is not None:
        raise Refused(_("All lists have the same currency, so costs can be added up: %s.") % other, "currency")


def _valid(found: list[PriceList], moment: datetime) -> PriceList | None:
    return next((one for one in reversed(found) if one.begin_at <= moment), None)


def _overlap() -> Refused:
    return Refused(_("Another list begins in the same hour, so both would be valid. Choose another begin."), "begin")


def delete(row: PriceList, *, user: User, now: datetime) -> None:
    """Delete a list that has not begun. Raises Forbidden; Refused if it has."""
    actor = actor_of(user)
    require_actor(actor, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        changes.lock(row)
        if row.begin_at <= now:
            raise Refused(_("This list has begun: costs depend on it. Add a list that replaces it."))
        _tell(row, events.PriceListDeleted(name=row.name), actor, now)
        row.delete()


def _tell(row: PriceList, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"price-list:{row.uid}", topics=["prices"], actor=actor, at=now)
