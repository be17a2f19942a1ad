"""Starts, looks after and ends tools in pods, by the backend's exec. What the pod answers is hostile, and checked."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import get_language, gettext_noop
from django.utils.translation import gettext as _

from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs.models import Pod
from hekla.apps.sentences import translated
from hekla.apps.workbench import entry, selectors, services
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.backends.base import Backend, BackendError, Exec, PodKey, PortForwarding
from hekla.backends.pool import get_backend
from hekla.domain.errors import HeklaError, Refused
from hekla.domain.tools import STARTED_TOOLS, Tool
from hekla.lib.text import strip_control_codes
from hekla.workbench import pod_bundle

log = logging.getLogger(__name__)
START_LIMIT = timedelta(minutes=3)
"""How long a tool may take until it answers."""
NO_CONSOLE = gettext_noop(
    "Pods of this cluster do not reach the console, so notebooks cannot submit jobs. An operator sets “console” in the "
    "configuration of the cluster."
)
_RUN_SECONDS, _PROBE_SECONDS, _PAUSE_SECONDS, _TOGETHER_SECONDS = 30.0, 2.0, 0.1, 20.0
_ENDS_AT_ONCE = 16
_MAX_OUTPUT = 64 * 1024
_LAST_PORT, _LAST_PROCESS = 65535, 2**31 - 1
_SCRIPT = (Path(__file__).parent / "pod_script.py").read_text()
_COMMAND = (
    "sh",
    "-c",
    'for one in python python3; do command -v "$one" > /dev/null && exec "$one" -c "$0"; done; exit 127',
    _SCRIPT,
)
_NO_PYTHON = 127


def start(session: ToolSession, *, now: datetime) -> None:
    """Start the tool of a new session in its pod. Raises Refused if it cannot, and then the session has ended."""
    secret = selectors.secret_of(session)
    request: dict[str, object] = {"do": "start", "session": session.uid.hex, "tool": session.tool, "secret": secret}
    request["base"] = entry.mount(session.slug)
    try:
        if services.may_have_token(session):
            request |= {"bundle": pod_bundle.bundle(), "env": _client_settings(session, now)}
        answer = _run(session.pod, request)
        port, process = _number(answer, "port", _LAST_PORT), _number(answer, "process", _LAST_PROCESS)
        if answer.get("missing") is True:
            raise Refused(_missing(session))
        if not port or not process:
            raise Refused(_("The tool could not be started in this pod. %s") % _text_of(answer))
    except BackendError as error:
        services.note_failure(session, str(error), now=now)
        raise Refused(translated(str(error))) from error
    except Refused as refusal:
        services.note_failure(session, refusal.message, now=now)
        raise
    if not services.note_start(session, port=port, process=process):  # somebody ended it meanwhile
        stop(session)
        raise Refused(_("This session has ended."))


def _client_settings(session: ToolSession, now: datetime) -> dict[str, str]:
    """The environment of the client in the pod, with a token of the session's owner, who owns the job too.

    If pods of the cluster do not reach the console, it has no token, and says why.
    """
    public, language = settings.PUBLIC_URL.rstrip("/"), get_language() or settings.LANGUAGE_CODE
    if not (server := _backend_of(session.pod).console_url(public)):
        return {"HEKLA_LANGUAGE": language, "HEKLA_UNAVAILABLE": _(NO_CONSOLE)}
    return {
        "HEKLA_LANGUAGE": language,
        "HEKLA_SERVER": server,
        "HEKLA_CONSOLE": public,
        "HEKLA_TOKEN": services.issue_token(session, now=now),
        "HEKLA_SESSION_JOB": str(session.pod.job.uid),
        "HEKLA_SESSION_TASK": session.pod.task,
    }


def look(session: ToolSession, *, now: datetime, seconds: float = 0.0) -> None:
    """Find out whether a starting tool answers now, and whether a tool has ended by itself. Records it.

    `seconds`: how long to wait for the answer of a tool that starts. While it starts, `message` of this object is what
    the tool has written so far; that is not stored.
    """
    if session.tool not in STARTED_TOOLS or session.state is SessionState.ENDED:
        return
    is_starting = session.state is SessionState.STARTING
    is_late = is_starting and now > session.created_at + START_LIMIT
    if not session.port:
        if is_late:  # the process that started it did not survive that
            stop(session)
            services.note_failure(session, "", now=now)
        return
    try:
        if _answers(session, seconds if is_starting else 0.0):
            services.note_ready(session, now=now)
            return
        limit = _RUN_SECONDS if is_starting else _PROBE_SECONDS  # a page waits for it
        answer = _run(session.pod, _request("look", session), limit)
    except BackendError as error:
        log.info("cannot look after a tool now: %s", error)
        return
    is_alive = answer.get("alive")
    if is_alive is False or is_late or (is_starting and is_alive is not True):
        stop(session)
        services.note_failure(session, _text_of(answer), now=now)
    elif is_starting:
        session.message = _text_of(answer)


def look_after_starts(*, now: datetime) -> None:
    """End tools that did not answer in time, also if nobody looks at them. Pods that hang are tried again later."""
    deadline = time.monotonic() + _TOGETHER_SECONDS
    for session in selectors.starting_since(now - START_LIMIT):
        look(session, now=now)
        if time.monotonic() > deadline:
            return


def stop(session: ToolSession) -> None:
    """End the tool in its pod, as far as the pod can be reached. Its port is nobody's then."""
    if session.state is not SessionState.ENDED:
        stop_processes([session])


def stop_processes(sessions: Sequence[ToolSession]) -> None:
    """The same for sessions that have just ended: their pods run, and their tools too. Many at once: pods may hang."""
    commands: list[tuple[Exec, PodKey, Mapping[str, object]]] = []
    for session in sessions:
        try:
            found = _backend_of(session.pod).exec if session.tool in STARTED_TOOLS else None
        except HeklaError as error:  # the configuration of the cluster is wrong
            log.info("a tool could not be ended: %s", error)
            continue
        if found is not None:
            commands.append((found, key_of(session.pod), _request("end", session)))
    if commands:
        async_to_sync(_end_all)(commands)


async def _end_all(commands: Sequence[tuple[Exec, PodKey, Mapping[str, object]]]) -> None:
    places = asyncio.Semaphore(_ENDS_AT_ONCE)

    async def one(found: Exec, key: PodKey, request: Mapping[str, object]) -> None:
        async with places:
            try:
                await _run_script(found, key, request, _RUN_SECONDS)
            except BackendError as error:
                log.info("a tool could not be ended: %s", error)
            except Exception:  # the others are to be ended too
                log.exception("a tool could not be ended")

    await asyncio.gather(*(one(*command) for command in commands))


def key_of(pod: Pod) -> PodKey:
    """The key of a pod at its backend."""
    return PodKey(pod.job.uid.hex, pod.task, pod.index, pod.attempt, tenant=pod.job.tenant.slug)


def _run(pod: Pod, request: Mapping[str, object], seconds: float = _RUN_SECONDS) -> Mapping[str, Any]:
    """Run the script in the pod with this request. Returns what it answers, unchecked. Raises BackendError."""
    commands = _backend_of(pod).exec  # here, because the database cannot be read within the event loop
    if commands is None:
        raise BackendError("This cluster runs no commands in pods.")
    return async_to_sync(_run_script)(commands, key_of(pod), request, seconds)


async def _run_script(commands: Exec, key: PodKey, request: Mapping[str, object], seconds: float) -> Mapping[str, Any]:
    output, errors = b"", b""
    try:
        async with asyncio.timeout(seconds), commands.run(key, _COMMAND) as running:
            await running.send(json.dumps(request).encode() + b"\n")
            while (piece := await running.receive()) is not None:
                if piece.is_error:
                    errors = (errors + piece.data)[-_MAX_OUTPUT:]
                else:
                    output = (output + piece.data)[-_MAX_OUTPUT:]
            exit_code = running.exit_code
    except TimeoutError as error:
        raise BackendError("The pod does not answer.") from error
    if exit_code == _NO_PYTHON:
        return {"missing": True}
    with suppress(ValueError, RecursionError):
        answer = json.loads(output)
        if isinstance(answer, dict):
            return answer
    return {"text": errors.decode(errors="replace")}


def _answers(session: ToolSession, seconds: float) -> bool:
    """Whether a server answers at the port of the session, at once or within so many seconds."""
    ports = _backend_of(session.pod).port_forwarding
    return ports is not None and async_to_sync(_probe_until)(ports, key_of(session.pod), session.port, seconds)


async def _probe_until(ports: PortForwarding, key: PodKey, port: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (found := await _probe(ports, key, port)) and time.monotonic() < deadline:
        await asyncio.sleep(_PAUSE_SECONDS)
    return found


async def _probe(ports: PortForwarding, key: PodKey, port: int) -> bool:
    with suppress(BackendError, TimeoutError):
        async with asyncio.timeout(_PROBE_SECONDS), ports.connect(key, port) as stream:
            await stream.send(b"GET /api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return bool(await stream.receive())
    return False


def _missing(session: ToolSession) -> str:
    if session.tool == Tool.CODE_SERVER:
        return _(
            "This pod has no code-server on its PATH, or no Python to start it. Add it to the image of the job, or run "
            "“npm install code-server” in the working folder of the pod. Then start it again."
        )
    return _("This pod has no %(tool)s. Add “%(package)s” to the requirements of its environment, or to its image.") % {
        "tool": Tool(session.tool).label,
        "package": session.tool,
    }


def _request(action: str, session: ToolSession) -> Mapping[str, object]:
    return {"do": action, "session": session.uid.hex, "process": session.process}


def _text_of(answer: Mapping[str, Any]) -> str:
    text = answer.get("text")
    if not isinstance(text, str):
        return ""
    storable = text[-services.MAX_MESSAGE :].encode(errors="replace").decode()  # halves of surrogate pairs are not
    return strip_control_codes(storable)


def _number(answer: Mapping[str, Any], name: str, most: int) -> int:
    """A positive number in an answer; 0 if there is none."""
    value = answer.get(name)
    return value if type(value) is int and 0 < value <= most else 0


def _backend_of(pod: Pod) -> Backend:
    return get_backend(**clusters.backend_facts(pod.job.cluster), home=settings.HEKLA_HOME)
