"""Changes of idle rules, warnings of idle sessions, and the wish of a person to keep one.

Decision 0078 has the reasons: the rule is off until somebody turns it on, and what is not known never ends a session.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.idleness import selectors
from hekla.apps.idleness.models import IdlePolicy, SessionIdleness
from hekla.apps.jobs import services as job_services
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.workbench import services as workbench
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.domain import events
from hekla.domain.errors import Invalid, Problem, Refused
from hekla.domain.events import IdleSignal
from hekla.domain.idleness import IdleStep, IdleVerdict

MOST_HOURS = 24
"""For how long a person can keep a session, once."""
MAX_REASON = 200
_UNITS = 10
"""Amounts in events are rounded to a tenth."""


def require_right(tenant: Tenant | None, user: User) -> None:
    """Raises Forbidden if the person may not set the idle rule of the tenant, or that for all."""
    if tenant is None:
        accounts.require(user, Permission.SET_IDLE_RULE)
    else:
        tenancy.require(user, tenant, Permission.SET_IDLE_RULE)


def set_rule(tenant: Tenant | None, values: Mapping[str, Any], *, user: User, now: datetime) -> None:
    """Change the idle rule of a tenant, or that for all. Raises Forbidden, Invalid."""
    require_right(tenant, user)
    found = selectors.policy_of(tenant)
    changes.apply(found, values)
    if found.gpu_job_minutes is not None and found.gpu_percent is None:
        raise Invalid([Problem("gpu_percent", _("Jobs with idle GPUs need a GPU limit."))])
    try:
        found.clean_fields(exclude=["tenant"])
    except ValidationError as error:
        raise Invalid([Problem(name, " ".join(texts)) for name, texts in error.message_dict.items()]) from error
    with unit_of_work():
        stored, _is_new = IdlePolicy.objects.get_or_create(tenant=tenant)
        if changed := changes.edit(stored, values):
            event = events.IdlePolicyChanged(changes=changed)
            subject = f"tenant:{tenant.pk}" if tenant else "platform:idle"
            record(event, subject=subject, tenant=tenant.pk if tenant else None, actor=actor_of(user), at=now)


def require_reason(hours: int, reason: str) -> str:
    """The reason to keep something for so many hours, in one line. Raises Invalid."""
    reason = " ".join(reason.split())
    problems = []
    if not 1 <= hours <= MOST_HOURS:
        problems.append(Problem("hours", _("Choose 1 to %(n)d hours.") % {"n": MOST_HOURS}))
    if not reason or len(reason) > MAX_REASON:
        problems.append(Problem("reason", _("Say in at most %(n)d characters why it is needed.") % {"n": MAX_REASON}))
    if problems:
        raise Invalid(problems)
    return reason


def keep(session: ToolSession, *, hours: int, reason: str, user: User, now: datetime) -> datetime:
    """Keep a session for so many hours, once. Returns until when. Raises Forbidden, Refused, Invalid."""
    job_services.require_right(session.pod.job, user)
    reason = require_reason(hours, reason)
    if session.state is not SessionState.READY:
        raise Refused(_("The session is not ready, or has ended."))
    until = now + timedelta(hours=hours)
    with unit_of_work():
        state = _locked(session)
        if state.keep_until is not None:
            raise Refused(_("This session has been kept once already. Use it, and it stays open."))
        state.keep_until, state.keep_reason = until, reason
        state.save(update_fields=["keep_until", "keep_reason"])
        event = events.SessionKeepRequested(**workbench.facts_of(session), until=until.isoformat(), reason=reason)
        _record(session, event, actor_of(user), now)
    return until


def warn(session: ToolSession, *, now: datetime) -> datetime | None:
    """Warn the owner of an idle session. Returns when it ends; None if it is not idle, or warned already."""
    with unit_of_work():
        state = _locked(session)
        verdict = selectors.activity_of(session, now=now).verdict
        if verdict is None or verdict.step is not IdleStep.WARN:
            return None
        state.warned_at, state.ends_at = now, verdict.next_at
        state.save(update_fields=["warned_at", "ends_at"])
        event = events.SessionIdleWarned(
            **workbench.facts_of(session),
            owner=session.owner.username,
            idle_since=verdict.idle_since.isoformat(),
            ends_at=verdict.next_at.isoformat(),
            evidence=evidence_of(verdict),
        )
        _record(session, event, PLATFORM, now)
        return verdict.next_at


def end_idle(session: ToolSession, *, now: datetime) -> bool:
    """End a session whose grace time is over, with the evidence. Returns whether it was idle until now."""
    with unit_of_work():
        _locked(session)
        verdict = selectors.activity_of(session, now=now).verdict
        if verdict is None or verdict.step is not IdleStep.END:
            return False
        return workbench.end_idle(session, evidence_of(verdict), now=now)


def evidence_of(verdict: IdleVerdict) -> tuple[IdleSignal, ...]:
    """The signals of a verdict, for an event."""
    return tuple(
        IdleSignal(
            signal=one.signal,
            limit=one.limit,
            most=None if one.most is None else round(one.most * _UNITS) / _UNITS,
            active_at=one.active_at.isoformat() if one.active_at else "",
        )
        for one in verdict.evidence
    )


def _locked(session: ToolSession) -> SessionIdleness:
    """The state of a session, locked: of several processes, one decides."""
    SessionIdleness.objects.get_or_create(session=session)
    return SessionIdleness.objects.select_for_update(of=("self",)).get(session=session)


def _record(session: ToolSession, event: events.Event, actor: Actor, now: datetime) -> None:
    job = session.pod.job
    record(event, subject=f"job:{job.uid}", tenant=job.tenant_id, topics=[f"owner:{job.owner_id}"], actor=actor, at=now)
