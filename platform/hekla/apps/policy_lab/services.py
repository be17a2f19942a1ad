"""Requests, cancels and stores experiments. They are bounded in number, size and duration.

One experiment runs at a time. Its process reports progress; without a report for `SILENCE` it counts as gone, and the
experiment begins again, `MAX_ATTEMPTS` times.
"""

import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.policy_lab import selectors
from hekla.apps.policy_lab.models import MAX_TITLE, LabRun, LabTrace
from hekla.apps.policy_lab.problems import LabProblem, english
from hekla.apps.policy_lab.wake import running
from hekla.domain import events
from hekla.domain.errors import Forbidden, Invalid, NotFound, Problem, Refused

MAX_PERIOD = timedelta(days=93)
MAX_TO_DO = 5
"""Experiments that wait or run."""
MAX_RUNS = 200
"""Older experiments are deleted."""
MAX_RESULT_BYTES = 4_000_000
MAX_ATTEMPTS = 2
MAX_TRACES = 50
MAX_TRACE_BYTES = 16 * 2**20
"""Of the file."""
SILENCE = timedelta(seconds=90)


def start(
    cluster: Cluster,
    *,
    title: str,
    starts_at: datetime,
    ends_at: datetime,
    policy: str,
    change: Mapping[str, Any],
    user: User,
    now: datetime,
    trace: LabTrace | None = None,
) -> LabRun:
    """Request an experiment, with the jobs of a trace if there is one. `change`: already validated.

    Raises Forbidden, Invalid, Refused.
    """
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    if problems := _problems(title, starts_at, ends_at, now, is_recorded=trace is None):
        raise Invalid(problems)
    with unit_of_work():
        Cluster.objects.select_for_update(of=("self",), no_key=True).get(pk=cluster.pk)
        if trace is not None and not LabTrace.objects.select_for_update(no_key=True).filter(pk=trace.pk).exists():
            raise NotFound(_("Unknown trace. Maybe it was deleted."))
        if LabRun.objects.filter(state__in=selectors.TO_DO).count() >= MAX_TO_DO:
            sentence = ngettext(
                "%(n)d experiment waits or runs already. Wait for one to finish, or cancel one.",
                "%(n)d experiments wait or run already. Wait for one to finish, or cancel one.",
                MAX_TO_DO,
            )
            raise Refused(sentence % {"n": MAX_TO_DO})
        row = LabRun.objects.create(
            title=title,
            cluster=cluster,
            trace=trace,
            trace_name=trace.name if trace else "",
            starts_at=starts_at,
            ends_at=ends_at,
            policy=policy,
            change=dict(change),
            created_at=now,
            created_by=user,
        )
        _record(row, events.PolicyLabStarted(run=str(row.uid), title=title), user, now)
        transaction.on_commit(running.soon)
    return row


def _problems(title: str, starts_at: datetime, ends_at: datetime, now: datetime, *, is_recorded: bool) -> list[Problem]:
    problems = []
    if len(title) > MAX_TITLE:
        problems.append(Problem("title", _("At most %d characters.") % MAX_TITLE))
    if not is_recorded:
        return problems
    if ends_at <= starts_at:
        problems.append(Problem("ends_at", _("The period must end after it begins.")))
    elif ends_at - starts_at > MAX_PERIOD:
        problems.append(Problem("ends_at", _("The period can be at most %d days.") % MAX_PERIOD.days))
    elif starts_at >= now:
        problems.append(Problem("starts_at", _("The period must begin in the past.")))
    return problems


def _record(row: LabRun, event: events.Event, user: User, now: datetime) -> None:
    record(event, subject=f"cluster:{row.cluster_id}", actor=actor_of(user), at=now)


def cancel(row: LabRun, *, user: User, now: datetime) -> None:
    """Cancel an experiment that waits or runs. Raises Forbidden, and Refused if it is over."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        to_do = LabRun.objects.filter(pk=row.pk, state__in=selectors.TO_DO)
        if not to_do.update(state=LabRun.State.CANCELLED, ended_at=now):
            raise Refused(_("This experiment is over already."))
        _record(row, events.PolicyLabCancelled(run=str(row.uid), title=row.title), user, now)
    row.refresh_from_db()


def delete(row: LabRun, *, user: User, now: datetime) -> None:
    """Delete an experiment that is over. Raises Forbidden, and Refused if it waits or runs."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    with unit_of_work():
        if LabRun.objects.filter(pk=row.pk, state__in=selectors.TO_DO).exists():
            raise Refused(_("This experiment is not over yet. Cancel it first."))
        LabRun.objects.filter(pk=row.pk).delete()
        _record(row, events.PolicyLabDeleted(run=str(row.uid), title=row.title), user, now)


# Traces.


def store_trace(*, name: str, content: bytes, facts: Mapping[str, Any], user: User, now: datetime) -> LabTrace:
    """Store an uploaded workload. `facts`: the fields that reading it gave. Raises Forbidden, Invalid, Refused."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    if not name or len(name) > MAX_TITLE:
        raise Invalid([Problem("name", _("Give it a name of at most %d characters.") % MAX_TITLE)])
    with unit_of_work():
        if LabTrace.objects.count() >= MAX_TRACES:
            raise Refused(_("%d traces are stored already. Delete one first.") % MAX_TRACES)
        row = LabTrace.objects.create(
            name=name, content=zlib.compress(content), size=len(content), owner=user, created_at=now, **facts
        )
        _record_trace(row, events.LabTraceUploaded(name=name, format=row.format, jobs=row.jobs), user, now)
    return row


def delete_trace(row: LabTrace, *, user: User, now: datetime) -> None:
    """Delete a trace; experiments that are over keep their results. Raises Forbidden, and Refused if one waits or runs.

    For its owner and for platform admins.
    """
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    if not selectors.may_delete(user, row):
        raise Forbidden(_("Only its owner and platform admins can delete this trace."))
    with unit_of_work():
        if not LabTrace.objects.select_for_update().filter(pk=row.pk).exists():
            raise NotFound(_("Unknown trace. Maybe it was deleted."))
        if LabRun.objects.filter(trace=row, state__in=selectors.TO_DO).exists():
            raise Refused(_("An experiment with this trace is not over yet. Cancel it first."))
        _record_trace(row, events.LabTraceDeleted(name=row.name, format=row.format), user, now)
        row.delete()


def _record_trace(row: LabTrace, event: events.Event, user: User, now: datetime) -> None:
    record(event, subject=f"lab-trace:{row.uid}", actor=actor_of(user), at=now)


# For the process that runs them.


def claim(*, now: datetime) -> LabRun | None:
    """Begin the next experiment; None if none waits or one runs."""
    with transaction.atomic():
        found = list(LabRun.objects.select_for_update(of=("self",)).filter(state__in=selectors.TO_DO).order_by("pk"))
        _end_silent(found, now)
        if any(one.state == LabRun.State.RUNNING for one in found):
            return None
        row = next((one for one in found if one.state == LabRun.State.WAITING), None)
        if row is not None:
            row.state, row.started_at, row.beat_at, row.progress = LabRun.State.RUNNING, now, now, 0.0
            row.attempts += 1
            row.save(update_fields=["state", "started_at", "beat_at", "progress", "attempts"])
        return row


def _end_silent(rows: list[LabRun], now: datetime) -> None:
    """Those whose process is gone wait again, or have failed."""
    for row in rows:
        if row.state == LabRun.State.RUNNING and (row.beat_at is None or now - row.beat_at > SILENCE):
            row.state = LabRun.State.WAITING
            if row.attempts >= MAX_ATTEMPTS:
                row.state, row.ended_at = LabRun.State.FAILED, now
                problem = LabProblem("process_gone")
                row.problem, row.problem_facts = english(problem), problem.facts
            row.save(update_fields=["state", "ended_at", "problem", "problem_facts"])


def beat(uid: UUID, attempt: int, progress: float | None, *, now: datetime) -> bool:
    """Report that the experiment goes on. Returns False if it is not wanted any more."""
    values: dict[str, Any] = {"beat_at": now} | ({} if progress is None else {"progress": progress})
    rows = LabRun.objects.filter(uid=uid, attempts=attempt, state=LabRun.State.RUNNING)
    return bool(rows.update(**values))


def release(uid: UUID, attempt: int) -> None:
    """Let another worker begin the experiment: this one stops."""
    rows = LabRun.objects.filter(uid=uid, attempts=attempt, state=LabRun.State.RUNNING)
    rows.update(state=LabRun.State.WAITING, attempts=attempt - 1)


def finish(uid: UUID, attempt: int, result: Mapping[str, Any], *, now: datetime) -> bool:
    """Store the result, and delete the oldest experiments. Returns False if it is not wanted any more."""
    if len(orjson.dumps(result)) > MAX_RESULT_BYTES:
        return fail(uid, attempt, LabProblem("result_too_large"), now=now)
    rows = LabRun.objects.filter(uid=uid, attempts=attempt, state=LabRun.State.RUNNING)
    is_stored = bool(rows.update(state=LabRun.State.FINISHED, result=dict(result), progress=1.0, ended_at=now))
    _delete_old()
    return is_stored


def fail(uid: UUID, attempt: int, problem: LabProblem, *, now: datetime) -> bool:
    """Store why the experiment failed. Returns False if it is not wanted any more."""
    rows = LabRun.objects.filter(uid=uid, attempts=attempt, state=LabRun.State.RUNNING)
    texts = {"problem": english(problem), "problem_facts": problem.facts}
    return bool(rows.update(state=LabRun.State.FAILED, **texts, ended_at=now))


def _delete_old() -> None:
    stored = LabRun.objects.exclude(state__in=selectors.TO_DO).order_by("-pk").values_list("pk", flat=True)
    last = list(stored[MAX_RUNS - 1 : MAX_RUNS])
    if last:
        LabRun.objects.exclude(state__in=selectors.TO_DO).filter(pk__lt=last[0]).delete()
