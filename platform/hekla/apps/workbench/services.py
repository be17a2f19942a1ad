"""Sessions begin and end. Who may abort or delete the job may open ports of its pods, as with terminals."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.workbench import entry
from hekla.apps.workbench.encryption import make_secret
from hekla.apps.workbench.models import ToolSession
from hekla.domain import events
from hekla.domain.errors import Invalid, Problem, Refused
from hekla.domain.events import IdleSignal, ToolSessionEnd
from hekla.domain.phases import FINAL_POD_PHASES, PodPhase
from hekla.domain.tools import Tool

MAX_OF_PERSON, MAX_OF_POD = 16, 16
TOKEN_LIFETIME = timedelta(days=7)
"""Of the token of a session, which mostly ends earlier, with its session."""
LAST_PORT = 65535
MAX_MESSAGE = 4000
_SLUG_LETTERS, _SLUG_LENGTH = "abcdefghijklmnopqrstuvwxyz234567", 26
_BATCH = 500


def open_session(pod_id: int, tool: Tool, port: int = 0, *, user: User, now: datetime) -> tuple[ToolSession, bool]:
    """The person's session with this tool in the pod, or with this port of it; and whether it is new.

    A port is ready at once: its server may start later. Raises NotFound, Forbidden, Refused, Invalid.
    """
    if tool is Tool.PORT and not 1 <= port <= LAST_PORT:
        raise Invalid([Problem("port", _("A port is a number from 1 to 65535."))])
    with unit_of_work():
        pod = _require_pod(pod_id, user)
        Pod.objects.select_for_update(of=("self",), no_key=True).get(pk=pod.pk)  # one at a time
        own = ToolSession.objects.filter(pod=pod, owner=user, tool=tool, ended_at=None)
        found = own.filter(port=port).first() if tool is Tool.PORT else own.first()
        if found is not None:
            found.pod = pod
            return found, False
        _require_room(pod, user)
        is_port = tool is Tool.PORT
        session = ToolSession.objects.create(
            slug="".join(secrets.choice(_SLUG_LETTERS) for _letter in range(_SLUG_LENGTH)),
            pod=pod,
            owner=user,
            tool=tool,
            port=port if is_port else 0,
            secret=b"" if is_port else make_secret()[1],
            created_at=now,
            ready_at=now if is_port else None,
        )
        event = events.SessionOpened(**facts_of(session), port=session.port)
        _tell(pod.job, event, actor=actor_of(user), now=now)
    return session, True


def no_session(pod: Pod) -> str:
    """Why nobody can open a session with this pod now; empty if one can be opened."""
    if entry.lacks_domain():
        return _(
            "Sessions need a domain of their own. An operator of this console sets HEKLA_WORKBENCH_DOMAIN. Until then, "
            "this command brings port 8080 of a pod to your machine: hekla ssh %(job)s -N -L 8080:localhost:8080"
        ) % {"job": pod.job.name}
    if pod.job.cluster.is_simulated:
        return _("The pods of this job are simulated and run no programs.")
    if pod.job.is_external:
        return _("The pods of this job are external. Hekla places them and does not connect to them.")
    if pod.is_final:
        return _("The pod has ended. Tools and ports are those of running pods.")
    if pod.phase != PodPhase.RUNNING:
        return _("The pod is not running yet. Tools and ports can be opened once it runs.")
    return ""


def may_have_token(session: ToolSession) -> bool:
    """Whether the programs of the session may act as its owner: in a notebook, and not in another person's pod."""
    return session.tool == Tool.JUPYTERLAB and session.owner_id == session.pod.job.owner_id


def issue_token(session: ToolSession, *, now: datetime) -> str:
    """The secret of a token for the programs of a new session. Empty in the pod of another person's job.

    Whatever runs in the pod can read it: the job's own programs may act as the owner of the job, and as nobody else.
    """
    if not may_have_token(session):
        return ""
    with unit_of_work():
        token, secret = accounts.issue_session_token(
            session.owner, name=session.place, lifetime=TOKEN_LIFETIME, now=now
        )
        if ToolSession.objects.filter(pk=session.pk, ended_at=None, token=None).update(token=token):
            session.token = token
            return secret
        accounts.end_session_token(token.pk, now=now)
    return ""


def note_start(session: ToolSession, *, port: int, process: int) -> bool:
    """Record where the tool of a session listens in its pod, and its process group there.

    Returns whether the session is still open.
    """
    session.port, session.process = port, process
    return bool(ToolSession.objects.filter(pk=session.pk, ended_at=None).update(port=port, process=process))


def note_ready(session: ToolSession, *, now: datetime) -> None:
    """Record that the tool of a session answers."""
    ToolSession.objects.filter(pk=session.pk, ready_at=None).update(ready_at=now)
    session.ready_at = session.ready_at or now


def note_failure(session: ToolSession, message: str, *, now: datetime) -> None:
    """Record that the tool of a session ended by itself, or did not start, with its last lines."""
    with unit_of_work():
        if _end(session, ToolSessionEnd.TOOL, actor=PLATFORM, now=now):
            session.message = message[-MAX_MESSAGE:]
            ToolSession.objects.filter(pk=session.pk).update(message=session.message)


def end_session(session: ToolSession, *, user: User, now: datetime) -> bool:
    """End a session, also one of another person. Returns whether it was open. Raises Forbidden."""
    job_services.require_right(session.pod.job, user)
    with unit_of_work():
        return _end(session, ToolSessionEnd.CLOSED, actor=actor_of(user), now=now)


def end_idle(session: ToolSession, evidence: Sequence[IdleSignal], *, now: datetime) -> bool:
    """End a session because it was idle, which the caller has found out. Returns whether it was open."""
    with unit_of_work():
        return _end(session, ToolSessionEnd.IDLE, actor=PLATFORM, now=now, evidence=evidence)


def close_session(session: ToolSession, *, actor: Actor, now: datetime) -> bool:
    """End a session for a person whose right to it the caller has checked. Returns whether it was open."""
    with unit_of_work():
        return _end(session, ToolSessionEnd.CLOSED, actor=actor, now=now)


def end_with_pods(*, now: datetime) -> int:
    """Record the end of sessions whose pods have ended. They have no effect by then. Returns their number."""
    with unit_of_work():
        ended = ToolSession.objects.filter(ended_at=None, pod__phase__in=[str(phase) for phase in FINAL_POD_PHASES])
        found = list(ended.select_related("owner", "pod__job")[:_BATCH])
        return sum(_end(session, ToolSessionEnd.POD, actor=PLATFORM, now=now) for session in found)


def facts_of(session: ToolSession) -> dict[str, str | int]:
    """The fields that all events of a session have."""
    pod = session.pod
    return {
        "task": pod.task,
        "index": pod.index,
        "attempt": pod.attempt,
        "session": session.uid.hex,
        "tool": session.tool,
    }


def _require_pod(pod_id: int, user: User) -> Pod:
    """The pod, if this person may open sessions with it now. Raises NotFound, Forbidden, Refused."""
    pod = jobs.pod(pod_id, user)
    job_services.require_right(pod.job, user)
    if reason := no_session(pod):
        raise Refused(reason)
    return pod


def _require_room(pod: Pod, user: User) -> None:
    opened = ToolSession.objects.filter(ended_at=None, pod__phase=PodPhase.RUNNING)
    if opened.filter(owner=user).count() >= MAX_OF_PERSON:
        raise Refused(
            _("You have %(n)s open sessions, which is the most. End one on the page of its job, then try again.")
            % {"n": MAX_OF_PERSON}
        )
    if opened.filter(pod=pod).count() >= MAX_OF_POD:
        raise Refused(
            _("This pod has %(n)s open sessions, which is the most. End one of them first.") % {"n": MAX_OF_POD}
        )


def _end(
    session: ToolSession,
    reason: ToolSessionEnd,
    *,
    actor: Actor,
    now: datetime,
    evidence: Sequence[IdleSignal] = (),
) -> bool:
    changed = ToolSession.objects.filter(pk=session.pk, ended_at=None).update(ended_at=now, end_reason=reason)
    if not changed:
        return False
    session.ended_at, session.end_reason = now, reason
    if session.token_id is not None:
        accounts.end_session_token(session.token_id, now=now)
    facts = facts_of(session)
    event = events.SessionEnded(**facts, owner=session.owner.username, reason=reason, evidence=tuple(evidence))
    _tell(session.pod.job, event, actor=actor, now=now)
    return True


def _tell(job: Job, event: events.Event, *, actor: Actor, now: datetime) -> None:
    record(event, subject=f"job:{job.uid}", tenant=job.tenant_id, topics=[f"owner:{job.owner_id}"], actor=actor, at=now)
