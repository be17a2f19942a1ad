"""Queries for the event log, by number and by subject."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import (
    BooleanField,
    Case,
    Count,
    F,
    Func,
    JSONField,
    Max,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Upper

from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.apps.event_log.models import LoggedEvent, Numbering

_LAST = "SELECT max(id) FROM event_log_loggedevent"
_SUBJECTS = "SELECT subject FROM event_log_loggedevent WHERE id > %(number)s AND id <= %(last)s"
"""Written out: a reconcile asks both several times, and building the query costs Django more than running it."""


_MOST_OF_NODES = 50_000
_AT_ONCE = 5000


def last_number() -> int:
    """The number of the newest event; 0 if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST)
        found: tuple[int | None] = cursor.fetchone()
    return found[0] or 0


def first_after(number: int) -> datetime | None:
    """When the first event after this number happened; None if there is none."""
    return LoggedEvent.objects.filter(id__gt=number).order_by("id").values_list("at", flat=True).first()


def oldest() -> datetime | None:
    """When the oldest event that was not purged happened; None if there is none."""
    return first_after(0)


def after(number: int, *, limit: int) -> Sequence[LoggedEvent]:
    """The events after `number`, at most `limit`, in order."""
    return list(LoggedEvent.objects.filter(id__gt=number).order_by("id")[:limit])


def of_kinds_after(number: int, kinds: Collection[str], *, limit: int) -> Sequence[LoggedEvent]:
    """The events of these kinds after `number`, at most `limit`, in order."""
    return list(LoggedEvent.objects.filter(id__gt=number, kind__in=kinds).order_by("id")[:limit])


def sign_in_addresses(subject: str, *, since: datetime) -> set[str]:
    """The addresses from which this person (`user:ID`) signed in since then."""
    found = LoggedEvent.objects.filter(subject=subject, kind="SignedIn", at__gte=since)
    return set(found.order_by().values_list("payload__address", flat=True).distinct())


def subjects(number: int, last: int, *, topic: str = "", or_kinds: Collection[str] = (), limit: int) -> set[str] | None:
    """The subjects of the events after `number` up to `last`, at most `limit`; None if there are more.

    With `topic`, those of the topic, and those of the kinds `or_kinds`.
    """
    condition = " AND (topics @> ARRAY[%(topic)s]::varchar[] OR kind = ANY(%(kinds)s))" if topic else ""
    values: dict[str, Any] = {"number": number, "last": last, "topic": topic, "kinds": list(or_kinds)}
    with connection.cursor() as cursor:
        cursor.execute(f"{_SUBJECTS}{condition} ORDER BY id LIMIT %(limit)s", values | {"limit": limit + 1})
        subjects = [subject for (subject,) in cursor.fetchall()]
    return set(subjects) if len(subjects) <= limit else None


def count_after(number: int, topics: Iterable[str], *, limit: int = 1000) -> int:
    """The number of events of these topics after `number`, counted up to `limit`."""
    return len(LoggedEvent.objects.filter(id__gt=number, topics__overlap=list(topics)).values_list("id")[:limit])


def lost() -> int:
    """The number of events that are missing although they were not purged; more than 0 is a fault.

    Counted in one statement, so that concurrent writes and purges make no difference.
    """
    there = (
        LoggedEvent.objects.order_by().annotate(log=Value(1)).values("log").annotate(count=Count("id")).values("count")
    )
    counted = Numbering.objects.annotate(there=Coalesce(Subquery(there), 0))
    return counted.values_list(F("last") - F("purged") - F("there"), flat=True).first() or 0


def gains(uid: str, *, limit: int) -> list[LoggedEvent]:
    """The newest evictions of pods for the job with this uid, newest first, at most `limit`."""
    return _gains(limit).rows(uid=uid)


@cache
def _gains(limit: int) -> CompiledQuery[LoggedEvent]:
    found = LoggedEvent.objects.filter(kind="PodEvicted").annotate(gainer=KT("payload__for_job"))
    return CompiledQuery(lambda: found.filter(gainer=Parameter("uid", TextField())).order_by("-id")[:limit])


def traces_of(subjects: Collection[str]) -> dict[str, str]:
    """The context of the newest trace in which a person submitted, resumed or restarted these jobs, by subject."""
    kinds = ("JobSubmitted", "JobCommanded")
    found = LoggedEvent.objects.filter(subject__in=subjects, kind__in=kinds, actor_id__isnull=False).exclude(trace="")
    return dict(found.order_by("subject", "-id").distinct("subject").values_list("subject", "trace"))


def last_of_kind(subjects: Collection[str], kind: str) -> dict[str, datetime]:
    """The time of the last event of this kind, by subject; subjects without one are left out."""
    found = LoggedEvent.objects.filter(subject__in=subjects, kind=kind).order_by().values_list("subject")
    return dict(found.annotate(last=Max("at")))


def node_history(subject: str, *, since: datetime) -> Iterator[tuple[datetime, str, bool, bool]]:
    """Time, node, whether it was ready and whether it was there, of a cluster's events of nodes since then, in order.

    `subject`: of the cluster. At most `_MOST_OF_NODES`, the newest.
    """
    found = LoggedEvent.objects.filter(subject=subject, kind="NodeChanged", at__gte=since).order_by("-id")
    rows = list(found.values_list("at", "payload")[:_MOST_OF_NODES])
    for at, payload in reversed(rows):
        yield at, payload["node"], payload["ready"], payload.get("present", True)


ClusterEvent = tuple[datetime, str, str, bool, tuple[str, int, int] | None, str, Any]
"""Time, kind, subject, whether a person is the actor, task, index and attempt of a pod, its new phase, and the payload
of the kinds that were requested whole.
"""


def of_cluster(
    cluster_id: int, since: datetime, until: datetime, kinds: Collection[str], whole: Collection[str]
) -> Iterator[ClusterEvent]:
    """The events of these kinds about a cluster and its jobs in a period, in order.

    `whole`: kinds with payloads, also of the time after the period.
    """
    wanted = Q(at__lt=until, kind__in=[*kinds]) | Q(kind__in=[*whole])
    found = LoggedEvent.objects.filter(wanted, at__gte=since, topics__contains=[f"cluster:{cluster_id}"]).order_by("id")
    names = {name: KT(f"payload__{name}") for name in ("task", "index", "attempt", "new")}
    payload = Case(When(kind__in=[*whole], then=F("payload")), output_field=JSONField(null=True))
    fields = ("at", "kind", "subject", "actor_id", *names)
    rows = found.annotate(**names, whole=payload).values_list(*fields, "whole")
    for at, kind, subject, actor, task, index, attempt, new, document in rows.iterator(_AT_ONCE):
        pod = (task, int(index), int(attempt)) if attempt is not None else None
        yield at, kind, subject, actor is not None, pod, new or "", document


def failed_pods(*, since: datetime) -> list[tuple[str, str]]:
    """The job (as a subject) and the node of each failure of a pod since then, the newest, at most `_MOST_OF_NODES`."""
    found = LoggedEvent.objects.filter(at__gte=since, kind="PodPhaseChanged", payload__new="failed")
    return list(found.order_by("-at").values_list("subject", "payload__node")[:_MOST_OF_NODES])


def about(subject: str | Parameter) -> QuerySet[LoggedEvent]:
    """All events of one subject, oldest first."""
    return LoggedEvent.objects.filter(subject=subject).order_by("id")


def of_subjects(subjects: Collection[str], kinds: Collection[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """Subject, kind and payload of the events of these subjects and kinds, oldest first."""
    found = LoggedEvent.objects.filter(subject__in=subjects, kind__in=kinds).order_by("id")
    return list(found.values_list("subject", "kind", "payload"))


def of_people(
    *,
    tenants: Collection[int] | None,
    person: str = "",
    kind: str = "",
    named: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    limit: int,
) -> Sequence[LoggedEvent]:
    """Events with a person as actor, newest first, at most `limit`. `tenants` None: everywhere. Empty texts and None do
    not filter. `person` finds what they did, and what others did by impersonation: both the admin and the person match.
    `named`: a subject, or a part of the name of the object. `since` is included, `until` and `before` are not.
    """
    found = LoggedEvent.objects.filter(actor_id__isnull=False).order_by("-id")
    if tenants is not None:
        found = found.filter(tenant_id__in=tenants)
    if person:
        found = found.filter(Q(actor_name=person) | Q(impersonator_name=person))
    wanted = {"kind": kind, "at__gte": since, "at__lt": until, "id__lt": before}
    narrower = {field: value for field, value in wanted.items() if value}
    matching = found.filter(**narrower) if narrower else found
    if since and until and until - since <= _SHORT:
        # The sum keeps the database from searching all newer events for it, in the order of their numbers.
        matching = matching.order_by((F("id") + 0).desc())
    if not named:
        return list(matching[:limit])
    if ":" in named:
        return list(matching.filter(subject=named)[:limit])
    among_newest = _among_newest(found, narrower, matching, named, limit)
    if among_newest is not None:
        return among_newest
    # Two queries: each uses an index of its own, and one with both conditions none.
    newest = list(_naming(found, named).values_list("pk", "subject")[:_MOST_NAMED])
    own = _naming(matching, named) if narrower else found.filter(pk__in=[pk for pk, _ in newest[:limit]])
    others = matching.filter(_known({subject for _, subject in newest}))
    return _newest([*own[:limit], *others[:limit]])[:limit]


def _among_newest(
    found: QuerySet[LoggedEvent], narrower: Mapping[str, Any], matching: QuerySet[LoggedEvent], named: str, limit: int
) -> list[LoggedEvent] | None:
    """The same result, if it is among the newest events that match; None if not, since the text is in few names.

    A text in many names is in many of the newest, and the index of letters has no order: it would read all of them.
    """
    has_name = {"names__contains": Upper(Value(named))}
    oldest = next(iter(matching.values_list("pk", flat=True)[_WINDOW - 1 : _WINDOW]), 0)
    own = list(matching.filter(pk__gte=oldest).alias(names=_NAMES).filter(**has_name)[:limit])
    if len(own) < limit and oldest:
        return None
    last = own[-1].pk if len(own) == limit else 0  # older ones cannot be among the first
    newer = matching.filter(pk__gt=last)  # at most the window
    subjects = {subject for subject, kind in newer.values_list("subject", "kind") if narrower or kind not in _FIRSTS}
    others = found.filter(_known(subjects)).exclude(pk__gt=last, **narrower)  # the newer ones with the name are `own`
    naming = others.alias(names=_NAMES).filter(**has_name).order_by().values_list("subject", flat=True)
    named_ones = {event.subject for event in own} | (set(naming.distinct()) if subjects else set())
    rest = newer.filter(_known(named_ones)).exclude(pk__in=[event.pk for event in own])
    return _newest([*own, *rest[:limit]])[:limit]


def _newest(events: Iterable[LoggedEvent]) -> list[LoggedEvent]:
    return sorted({event.pk: event for event in events}.values(), key=lambda event: -event.pk)


def _known(subjects: Collection[str]) -> Q:
    """Whether the object of an event is one of these, which have the name that is searched in events of their own."""
    known = [one for one in subjects if not one.startswith(_BROAD)]
    return Q(_IsOneOf(F("subject"), RawSQL("%s::text[]", [known])))  # an array field would prepare each of them


class _IsOneOf(Func):
    """Whether a value is in a list, which is one parameter: a thousand take longer to send than to look up.

    The list is unnested, as the database would estimate the frequency of each of its values otherwise.
    """

    template, arg_joiner = "%(expressions)s))", " IN (SELECT unnest("
    output_field = BooleanField()


def _naming(events: QuerySet[LoggedEvent], part: str) -> QuerySet[LoggedEvent]:
    """The events with this part in a name. An index has all trigrams; shorter texts are searched in the names."""
    found = events.alias(names=_NAMES).filter(names__contains=Upper(Value(part)))
    if len(part) < _GRAM:
        return found
    return found.alias(grams=_grams(_NAMES)).filter(grams__contains=_grams(Upper(Value(part))))


def _grams(text: "Func[Any]") -> "Func[Any]":
    return Func(text, function="hekla_grams", output_field=ArrayField(TextField()))


_NAMES: "Func[Any]" = Func(F("payload"), function="hekla_event_names", output_field=TextField())
_GRAM = 3
_MOST_NAMED = 1000
_WINDOW = 4000
_FIRSTS = ("JobSubmitted", "BatchSubmitted", "FlowStarted")
"""Kinds of events that are the first ones of their objects: there are none before that could name it."""
_SHORT = timedelta(days=8)
"""A period whose events are sorted: there are not many by people."""
_BROAD = ("user:", "tenant:")
"""Subjects with events about many things, each with a name of its own."""
