"""The record of what sessions do, one row for each minute.

It is no event: nothing reacts to a minute. Web processes add what they have counted every few seconds, the collector
what it has measured; both to the row of the minute, in any order. Counting twice is not possible, since amounts are
added by who counted them. Old rows are deleted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from hekla.apps import due_work
from hekla.apps.idleness.models import LONGEST_GRACE_MINUTES, LONGEST_IDLE_MINUTES, SessionMinute
from hekla.domain.idleness import Signal

RETENTION = timedelta(minutes=LONGEST_IDLE_MINUTES + LONGEST_GRACE_MINUTES, days=1)
_MOST_DELETED = 50_000
OfSession = Mapping[tuple[int, datetime], Counter[Signal]]
"""Amounts in the minutes of sessions (primary keys)."""
OfPerson = Mapping[tuple[int, int, datetime], Counter[Signal]]
"""Amounts in the minutes of people in pods: pod and person (primary keys). They count for each session of theirs."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the collector found out about a session (primary key): busy kernels, CPU and GPU; None: not known."""

    session: int
    kernel: int | None
    cpu: int | None
    gpu: int | None


def minute_of(at: datetime) -> datetime:
    """The start of the minute."""
    return at.replace(second=0, microsecond=0)


def count(sessions: OfSession, people: OfPerson) -> None:
    """Add what a web process has counted. Ended sessions get nothing."""
    with connection.cursor() as cursor:
        if sessions:
            rows = sorted(sessions.items())
            cursor.execute(
                _COUNT_SESSIONS,
                {
                    "sessions": [session for (session, _at), _amounts in rows],
                    "ats": [at for (_session, at), _amounts in rows],
                    "requests": [amounts[Signal.REQUESTS] for _key, amounts in rows],
                    "inputs": [amounts[Signal.INPUT] for _key, amounts in rows],
                    "bytes": [amounts[Signal.NETWORK] for _key, amounts in rows],
                },
            )
        if people:
            rows_of_people = sorted(people.items())
            cursor.execute(
                _COUNT_PEOPLE,
                {
                    "pods": [pod for (pod, _person, _at), _amounts in rows_of_people],
                    "people": [person for (_pod, person, _at), _amounts in rows_of_people],
                    "ats": [at for (_pod, _person, at), _amounts in rows_of_people],
                    "terminal": [amounts[Signal.TERMINAL] for _key, amounts in rows_of_people],
                    "ssh": [amounts[Signal.SSH] for _key, amounts in rows_of_people],
                },
            )


def measure(found: Sequence[Measured], *, now: datetime) -> None:
    """Store what the collector has measured in this minute: of several measurements, the highest.

    The minute before takes it over if nothing was measured in it: the collector runs about once in a minute, and not on
    the second.
    """
    rows, at = sorted(found, key=lambda one: one.session), minute_of(now)
    facts: dict[str, Any] = {
        "sessions": [one.session for one in rows],
        "at": at,
        "before": at - timedelta(minutes=1),
        "kernels": [one.kernel for one in rows],
        "cpus": [one.cpu for one in rows],
        "gpus": [one.gpu for one in rows],
    }
    with connection.cursor() as cursor:
        cursor.execute(_MEASURE, facts)
        cursor.execute(_MEASURE_BEFORE, facts)


def purge(*, now: datetime) -> int:
    """Delete old minutes, at most so many at once. Returns their number."""
    with connection.cursor() as cursor:
        cursor.execute(_PURGE, {"until": now - RETENTION, "most": _MOST_DELETED})
        return int(cursor.rowcount)


def purge_work() -> list[QuerySet[Any, Any]]:
    """Minutes that are too old (see `due_work`)."""
    return [SessionMinute.objects.filter(at__lt=due_work.present() - RETENTION)]


_COUNT_SESSIONS = """
INSERT INTO idleness_sessionminute AS stored (session_id, at, requests, input, network_bytes)
SELECT counted.session, counted.at, counted.requests, counted.input, counted.bytes
FROM unnest(
    %(sessions)s::bigint[], %(ats)s::timestamptz[], %(requests)s::bigint[], %(inputs)s::bigint[], %(bytes)s::bigint[]
) AS counted (session, at, requests, input, bytes)
JOIN workbench_toolsession AS known ON known.id = counted.session AND known.ended_at IS NULL
ORDER BY known.id, counted.at
ON CONFLICT (session_id, at) DO UPDATE SET
    requests = stored.requests + excluded.requests,
    input = stored.input + excluded.input,
    network_bytes = stored.network_bytes + excluded.network_bytes
"""
_COUNT_PEOPLE = """
INSERT INTO idleness_sessionminute AS stored (session_id, at, terminal, ssh)
SELECT known.id, counted.at, counted.terminal, counted.ssh
FROM unnest(
    %(pods)s::bigint[], %(people)s::bigint[], %(ats)s::timestamptz[], %(terminal)s::bigint[], %(ssh)s::bigint[]
) AS counted (pod, person, at, terminal, ssh)
JOIN workbench_toolsession AS known
    ON known.pod_id = counted.pod AND known.owner_id = counted.person AND known.ended_at IS NULL
ORDER BY known.id, counted.at
ON CONFLICT (session_id, at) DO UPDATE SET
    terminal = stored.terminal + excluded.terminal, ssh = stored.ssh + excluded.ssh
"""
_MEASURE = """
INSERT INTO idleness_sessionminute AS stored (session_id, at, kernel, cpu, gpu)
SELECT known.id, %(at)s, found.kernel, found.cpu, found.gpu
FROM unnest(%(sessions)s::bigint[], %(kernels)s::integer[], %(cpus)s::integer[], %(gpus)s::integer[])
    AS found (session, kernel, cpu, gpu)
JOIN workbench_toolsession AS known ON known.id = found.session AND known.ended_at IS NULL
ORDER BY known.id
ON CONFLICT (session_id, at) DO UPDATE SET
    kernel = greatest(stored.kernel, excluded.kernel),
    cpu = greatest(stored.cpu, excluded.cpu),
    gpu = greatest(stored.gpu, excluded.gpu)
"""
_MEASURE_BEFORE = """
WITH locked AS MATERIALIZED (
    SELECT session_id, at FROM idleness_sessionminute
    WHERE session_id = ANY(%(sessions)s::bigint[]) AND at = %(before)s
        AND kernel IS NULL AND cpu IS NULL AND gpu IS NULL
    ORDER BY session_id FOR NO KEY UPDATE
)
UPDATE idleness_sessionminute AS stored SET kernel = found.kernel, cpu = found.cpu, gpu = found.gpu
FROM locked JOIN unnest(%(sessions)s::bigint[], %(kernels)s::integer[], %(cpus)s::integer[], %(gpus)s::integer[])
    AS found (session, kernel, cpu, gpu) ON found.session = locked.session_id
WHERE stored.session_id = locked.session_id AND stored.at = locked.at
"""
"""In the order of all others who write several rows: an UPDATE alone locks them in the order of its plan."""
_PURGE = """
DELETE FROM idleness_sessionminute WHERE (session_id, at) IN (
    SELECT session_id, at FROM idleness_sessionminute WHERE at < %(until)s ORDER BY at LIMIT %(most)s
)
"""
