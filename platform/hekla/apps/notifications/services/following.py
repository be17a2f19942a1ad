"""Follows the event log. The log alone decides who is notified, so lost wake-up messages lose no notifications."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.notifications import groups, selectors
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import NotificationCursor
from hekla.apps.notifications.services.telling import JobNotice, tell_all, tell_of_themselves
from hekla.domain.phases import FINAL_JOB_PHASES, JobPhase

OF_JOBS = ("JobPhaseChanged", "PodEvicted")
OF_CREDENTIALS = (
    *("PasswordChanged", "SignInLinkCreated", "TokenCreated", "TokenRevoked", "IdentityConnected"),
    *("IdentityDisconnected", "SecondFactorAdded", "SecondFactorRemoved", "SecurityKeyAdded", "SecurityKeyRemoved"),
    *("RecoveryCodesGenerated", "RecoveryCodeUsed", "MailAddressChanged"),
)
OF_IDLENESS = ("SessionIdleWarned", "JobIdleWarned")
KINDS = (*OF_JOBS, *OF_CREDENTIALS, "ImpersonationStarted", "GuestInvited", "OwnerReminded", *OF_IDLENESS)
_MOST = 500


def follow(*, now: datetime) -> int:
    """Create notifications for the events since the last call. Returns their number.

    One reader at a time. Its position is stored in the same transaction, so no event is processed twice or left out.
    """
    with unit_of_work():
        reader = _reader()
        if reader is None:
            return 0
        last = event_log.last_number()
        events = event_log.of_kinds_after(reader.number, KINDS, limit=_MOST)
        count = _tell_all([event for event in events if event.kind in OF_JOBS], now)
        count += sum(_notify_of_impersonation(event) for event in events if event.kind == "ImpersonationStarted")
        count += sum(_notify_of_idleness(event) for event in events if event.kind in OF_IDLENESS)
        count += sum(_notify_of_guest(event) for event in events if event.kind == "GuestInvited")
        count += sum(_notify_of_reminder(event) for event in events if event.kind == "OwnerReminded")
        count += sum(_notify_of_credential(event) for event in events if event.kind in OF_CREDENTIALS)
        reader.number = events[-1].pk if len(events) == _MOST else max(last, reader.number)
        reader.save(update_fields=["number"])
    return count


def _reader() -> NotificationCursor | None:
    """The reader, locked; None while another worker holds it. A new one starts at the newest event: no old news."""
    NotificationCursor.objects.get_or_create(pk=1, defaults={"number": event_log.last_number()})
    return NotificationCursor.objects.select_for_update(skip_locked=True).first()


def _tell_all(events: Sequence[LoggedEvent], now: datetime) -> int:
    known = {f"job:{job.uid}": job for job in jobs.with_uids({e.subject.removeprefix("job:") for e in events})}
    moments = [notice for group in _moments(events).values() if (notice := _notice(known.get(group[0].subject), group))]
    listeners = selectors.listeners([notice.job for notice in moments])
    batches = groups.groups_of([notice.job.uid for notice in moments])
    return tell_all(((notice, listeners[notice.job.uid]) for notice in moments), batches, now=now)


def _notify_of_impersonation(event: LoggedEvent) -> bool:
    user = _subject(event)
    if user is None:
        return False
    facts = {"admin": event.actor_name, "reason": event.payload["reason"]}
    return tell_of_themselves(user, Moment.ACTED_FOR, f"event:{event.pk}", at=event.at, facts=facts)


def _notify_of_guest(event: LoggedEvent) -> bool:
    """Tell the invited person, whose consent it needs."""
    user = User.objects.filter(username=event.payload["person"]).first()
    job = next(iter(jobs.with_uids({event.subject.removeprefix("job:")})), None)
    if user is None or job is None:
        return False
    facts = {"actor": event.actor_name, "tool": event.payload["tool"], "job": job.name}
    return tell_of_themselves(user, Moment.INVITED, f"event:{event.pk}", at=event.at, facts=facts)


def _notify_of_credential(event: LoggedEvent) -> bool:
    """Tell the person, whoever changed it: their session may be stolen.

    No news is what the console does itself, a program that signs in, a token that the person revokes, and a first email
    address. The old address hears of a new one, which may be a stranger's.
    """
    user = _subject(event)
    if user is None or event.actor_id is None or event.payload.get("is_sign_in"):
        return False
    if event.kind == "TokenRevoked" and event.actor_id == user.pk:
        return False
    if event.kind == "MailAddressChanged" and not event.payload["old"]:
        return False
    facts = {
        "kind": event.kind,
        "name": event.payload.get("name") or event.payload.get("provider") or "",
        "actor": event.actor_name if event.actor_id != user.pk else "",
    }
    notify = partial(tell_of_themselves, user, Moment.CREDENTIAL, f"event:{event.pk}", always_mail=True)
    return notify(at=event.at, facts=facts, mail=event.payload.get("old", ""))


def _notify_of_idleness(event: LoggedEvent) -> bool:
    """Warn the owner of an idle session or job, by mail too: they are not at its page."""
    job = next(iter(jobs.with_uids([event.subject.removeprefix("job:")])), None)
    if job is None:
        return False
    owner = event.payload.get("owner")
    user = User.objects.filter(username=owner).first() if owner else job.owner
    if user is None:
        return False
    facts = {"job": job.name, "job_uid": job.uid.hex, "ends_at": event.payload["ends_at"]}
    facts |= {name: event.payload[name] for name in ("session", "tool") if name in event.payload}
    return tell_of_themselves(user, Moment.IDLE, f"event:{event.pk}", at=event.at, facts=facts, always_mail=True)


def _notify_of_reminder(event: LoggedEvent) -> bool:
    """Tell the owner of a job that another person asks them to look at it, by mail too: GPUs wait for them."""
    job = next(iter(jobs.with_uids([event.subject.removeprefix("job:")])), None)
    if job is None:
        return False
    facts = {"actor": event.actor_name, "job": job.name, "job_uid": job.uid.hex, "cause": event.payload["cause"]}
    notify = partial(tell_of_themselves, job.owner, Moment.REMINDED, f"event:{event.pk}", always_mail=True)
    return notify(at=event.at, facts=facts)


def _subject(event: LoggedEvent) -> User | None:
    return User.objects.filter(pk=event.subject.removeprefix("user:")).first()


def _moments(events: Iterable[LoggedEvent]) -> dict[str, list[LoggedEvent]]:
    """The events of each notification, by its key. Pods of a job that were evicted at the same time are one."""
    found: dict[str, list[LoggedEvent]] = defaultdict(list)
    for event in events:
        together = event.kind == "PodEvicted"
        found[f"evicted:{event.subject}:{event.at.isoformat()}" if together else f"event:{event.pk}"].append(event)
    return found


def _notice(job: Any, group: Sequence[LoggedEvent]) -> JobNotice | None:  # noqa: ANN401  (a Job or None)
    first = group[0]
    moment = _moment(first)
    if job is None or moment is None:
        return None
    key = f"evicted:{first.subject}:{first.at.isoformat()}" if moment is Moment.EVICTED else f"event:{first.pk}"
    return JobNotice(job, moment, key, first.at, _facts(moment, group))


def _moment(event: LoggedEvent) -> Moment | None:
    if event.kind == "PodEvicted":
        return Moment.EVICTED
    new = JobPhase(event.payload["new"])
    if new is JobPhase.FAILED:
        return Moment.FAILED
    if new is JobPhase.RUNNING:
        return Moment.STARTED
    return Moment.ENDED if new in FINAL_JOB_PHASES else None


def _facts(moment: Moment, group: Sequence[LoggedEvent]) -> dict[str, Any]:
    payload = group[0].payload
    if moment is Moment.EVICTED:
        return {"pods": len(group), "action": payload["action"]}
    return {
        "phase": payload["new"],
        "message": payload["message"],
        "message_facts": list(payload.get("message_facts", ())),
    }
