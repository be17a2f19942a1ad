"""Writing to the log, inside the transaction that makes the change.

Readers follow the log by number, so a number must never become visible after a higher one. Events are therefore held
back until the end of the unit of work and numbered there, from one row that is locked until the commit: the order of
numbers is the order of commits, and a failed transaction leaves no gap. A transaction locks this row last: foreign
keys, which PostgreSQL would check at the commit, and may have to wait for, are checked before. So a transaction that
has locked the row waits for nothing else, and the row cannot be part of a deadlock. See decision 0002.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import F

from hekla.apps.event_log.models import LoggedEvent, Numbering
from hekla.apps.event_log.signals import recorded
from hekla.apps.rows import BATCH, insert_all, insertion
from hekla.domain import events
from hekla.lib import tracing

_CHECK_CONSTRAINTS = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED"
"""`connection.check_constraints` in one round trip: foreign keys wait now, not while the numbers are locked."""
_TAKE_NUMBERS = """
    INSERT INTO event_log_numbering AS numbers (id, last, purged) VALUES (1, %s, 0)
    ON CONFLICT (id) DO UPDATE SET last = numbers.last + excluded.last
"""
_LAST = "(SELECT last FROM event_log_numbering WHERE id = 1)"
_pending: ContextVar[list[LoggedEvent] | None] = ContextVar("pending_events", default=None)
_is_announced: ContextVar[bool] = ContextVar("is_announced", default=True)
_session: ContextVar[Callable[[], str] | None] = ContextVar("session", default=None)
_behalf: ContextVar["Actor | None"] = ContextVar("on_behalf", default=None)


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of an event: a person (with an id) or a part of the platform (without)."""

    id: int | None
    name: str


CONTROLLER = Actor(None, "controller")
PLATFORM = Actor(None, "platform")


@contextmanager
def on_behalf(admin: Actor) -> Iterator[None]:
    """Within this block, `admin` impersonates the people who act; each event names both."""
    token = _behalf.set(admin)
    try:
        yield
    finally:
        _behalf.reset(token)


@contextmanager
def within_session(name: Callable[[], str]) -> Iterator[None]:
    """Within this block, people act by the token of the session with this name; an empty name: by other means."""
    token = _session.set(name)
    try:
        yield
    finally:
        _session.reset(token)


@contextmanager
def unit_of_work() -> Iterator[None]:
    """One transaction together with its events. Joins the enclosing unit of work, if there is one.

    If an inner unit fails, its events are dropped, whatever the enclosing unit does then.
    """
    around = _pending.get()
    if around is not None:
        with _or_nothing(around), transaction.atomic():
            yield
        return
    token = _pending.set([])
    try:
        with tracing.span("unit of work", needs_parent=True), transaction.atomic():
            yield
            _number(_pending.get() or [])
    finally:
        _pending.reset(token)


@contextmanager
def unannounced() -> Iterator[None]:
    """Within this block, commits send no signal: nobody waits for what happens in a simulated past."""
    token = _is_announced.set(False)
    try:
        yield
    finally:
        _is_announced.reset(token)


@contextmanager
def dry_run() -> Iterator[None]:
    """A unit of work that is undone at its end, without numbers for its events: a dry run of what happens in it."""
    token = _pending.set([])
    try:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)
    finally:
        _pending.reset(token)


def is_pending(prefix: str) -> bool:
    """Whether this unit of work has recorded an event with such a subject. It has no number yet, and may never get one.

    `prefix`: the beginning of the subject, for example `queue:`.
    """
    return any(event.subject.startswith(prefix) for event in _pending.get() or ())


@contextmanager
def _or_nothing(pending: list[LoggedEvent]) -> Iterator[None]:
    before = len(pending)
    try:
        yield
    except BaseException:
        del pending[before:]
        raise


def record(
    event: events.Event,
    *,
    subject: str,
    actor: Actor,
    at: datetime,
    tenant: int | None = None,
    topics: Iterable[str] = (),
) -> None:
    """Add an event to the current unit of work. Raises RuntimeError outside of one."""
    pending = _pending.get()
    if pending is None:
        raise RuntimeError("An event can only be recorded inside a unit of work")
    tenant_topic = [f"tenant:{tenant}"] if tenant is not None else []
    pending.append(
        LoggedEvent(
            at=at,
            kind=event.kind,
            subject=subject,
            tenant_id=tenant,
            actor_id=actor.id,
            actor_name=actor.name,
            impersonator_name=_impersonator_name(actor),
            session=_session_name(actor),
            trace=tracing.current(),
            topics=[*dict.fromkeys([subject, *tenant_topic, *topics])],
            payload=event.model_dump(mode="json"),
        )
    )


def _impersonator_name(actor: Actor) -> str:
    """The admin who impersonates the actor; empty for parts of the platform, and for the admin's own actions."""
    admin = _behalf.get()
    return admin.name if admin and actor.id not in {None, admin.id} else ""


def _session_name(actor: Actor) -> str:
    """The session whose token the person uses; empty for parts of the platform, and without such a token."""
    name = _session.get()
    return name() if name is not None and actor.id is not None else ""


def purge(subjects: Collection[str]) -> int:
    """Delete all events of these subjects. Returns their number. Raises RuntimeError outside a unit of work.

    Call it last in a unit of work that records an event about it: it locks the row of the numbers.
    """
    if _pending.get() is None:
        raise RuntimeError("Events can only be purged inside a unit of work")
    count, _ = LoggedEvent.objects.filter(subject__in=subjects).delete()
    with connection.cursor() as cursor:
        cursor.execute(_CHECK_CONSTRAINTS)
    Numbering.objects.update(purged=F("purged") + count)
    return count


def _number(pending: list[LoggedEvent]) -> None:
    if not pending:
        return
    first, rest = pending[:BATCH], pending[BATCH:]
    keys = [f"{_LAST} - {len(pending) - place - 1}" for place in range(len(first))]
    insert, values = insertion(first, keys)
    with connection.cursor() as cursor:
        cursor.execute(f"{_CHECK_CONSTRAINTS}; {_TAKE_NUMBERS}; {insert} RETURNING id", [len(pending), *values])
        while cursor.nextset():  # one round trip; only the last statement has rows
            pass
        [number, *_others] = cursor.fetchone()
    for place, event in enumerate(pending):
        event.pk = number + place
    tracing.annotate({"hekla.events": ", ".join(sorted({one.kind for one in pending})), "hekla.last_event": number})
    insert_all(rest)
    if not _is_announced.get():
        return
    actor, topics = pending[-1].actor_name, {topic for event in pending for topic in event.topics}
    facts = {"actor": actor, "topics": topics, "kinds": {event.kind for event in pending}}
    transaction.on_commit(lambda: recorded.send(sender=LoggedEvent, **facts), robust=True)
