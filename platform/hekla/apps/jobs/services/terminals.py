"""Terminals in pods and SSH connections to them: who may open one, and the record of its begin and its end.

Who may abort or delete the job may run commands in its pods. The live part runs the terminal itself.
"""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import Actor, unit_of_work
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.services.commands import require_right
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events
from hekla.domain.errors import Refused
from hekla.domain.events import TerminalEnd
from hekla.domain.phases import PodPhase


def require_terminal(pod_id: int, user: User) -> Pod:
    """The pod, if this person may open a terminal in it now. Raises NotFound, Forbidden, Refused."""
    pod = selectors.pod(pod_id, user)
    require_right(pod.job, user)
    if reason := no_terminal(pod):
        raise Refused(reason)
    return pod


def no_terminal(pod: Pod) -> str:
    """Why nobody can open a terminal in this pod now; empty if one can be opened."""
    if pod.job.cluster.is_simulated:
        return _("The pods of this job are simulated and run no programs.")
    if pod.job.is_external:
        return _("The pods of this job are external. Hekla places them and runs no commands in them.")
    if pod.is_final:
        return _("The pod has ended. Terminals are for running pods.")
    if pod.phase != PodPhase.RUNNING:
        return _("The pod is not running yet. A terminal can be opened once it runs.")
    return ""


def record_terminal(pod_id: int, terminal: UUID, *, user: User, now: datetime) -> None:
    """Record that this person has opened a terminal. Raises NotFound, Forbidden, Refused."""
    with unit_of_work():
        pod = require_terminal(pod_id, user)
        tell(pod.job, events.TerminalOpened.model_validate(_facts(pod, terminal)), actor=actor_of(user), now=now)


def record_terminal_end(
    pod: Pod, terminal: UUID, reason: TerminalEnd, *, exit_code: int | None, seconds: float, owner: Actor, now: datetime
) -> None:
    """Record that the terminal of this person has ended."""
    with unit_of_work():
        facts = {**_facts(pod, terminal), "reason": reason, "exit_code": exit_code, "seconds": round(seconds, 1)}
        tell(pod.job, events.TerminalEnded.model_validate(facts), actor=owner, now=now)


def record_ssh(pod_id: int, connection: UUID, *, user: User, now: datetime) -> None:
    """Record that this person has connected to the pod by SSH. Raises NotFound, Forbidden, Refused."""
    with unit_of_work():
        pod = require_terminal(pod_id, user)
        facts = {**_place(pod), "connection": connection.hex}
        tell(pod.job, events.SshOpened.model_validate(facts), actor=actor_of(user), now=now)


def record_ssh_end(
    pod: Pod, connection: UUID, reason: TerminalEnd, *, counts: Mapping[str, float], owner: Actor, now: datetime
) -> None:
    """Record that the SSH connection of this person has ended. `counts`: `commands`, `forwards` and `seconds`."""
    with unit_of_work():
        facts = {**_place(pod), "connection": connection.hex, "reason": reason, **counts}
        tell(pod.job, events.SshEnded.model_validate(facts), actor=owner, now=now)


def _facts(pod: Pod, terminal: UUID) -> dict[str, str | int]:
    return {**_place(pod), "terminal": terminal.hex}


def _place(pod: Pod) -> dict[str, str | int]:
    return {"task": pod.task, "index": pod.index, "attempt": pod.attempt}
