"""Watches sessions and jobs with GPUs: measures what keeps them, warns of idle ones, and ends those that stay idle.

One run measures all sessions together, then judges each. It needs no lease: amounts of a minute are stored as the
highest of several runs, and of several runs one warns and one ends a session.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings

from hekla.apps.clusters import selectors as clusters
from hekla.apps.idleness import job_selectors, job_services, recording, selectors, services
from hekla.apps.idleness.recording import Measured
from hekla.apps.usage import selectors as usage
from hekla.apps.usage.selectors import RecentUse
from hekla.apps.workbench import entry
from hekla.apps.workbench import selectors as workbench
from hekla.apps.workbench.models import ToolSession
from hekla.backends.base import PortForwarding
from hekla.backends.pool import get_backend
from hekla.domain.errors import HeklaError
from hekla.domain.idleness import IdleStep
from hekla.domain.tools import Tool
from hekla.lib.encryption import DecryptionError
from hekla.workbench import kernels, tools
from hekla.workbench.kernels import KernelServer

log = logging.getLogger(__name__)
_RECENT = timedelta(seconds=75)
"""Samples are taken every ten seconds; two of them are needed for a use of CPU."""


def watch(*, now: datetime) -> None:
    """Measure, then warn of idle sessions and end them."""
    sessions = selectors.open_sessions()
    if sessions:
        measure(sessions, now=now)
        act(sessions, now=now)
    act_on_jobs(now=now)
    recording.purge(now=now)


def measure(sessions: Sequence[ToolSession], *, now: datetime) -> None:
    """Store what keeps these sessions in this minute, as far as it can be measured."""
    recent = usage.recent({session.pod_id for session in sessions}, since=now - _RECENT)
    busy = _busy_kernels(sessions)
    found = []
    for session in sessions:
        use = recent.get(session.pod_id, RecentUse(None, None))
        gpu = use.gpu_percent if session.pod.cards else None
        found.append(Measured(session.pk, busy.get(session.pk), use.cpu_percent, gpu))
    recording.measure(found, now=now)


def act(sessions: Sequence[ToolSession], *, now: datetime) -> None:
    """Warn the owners of idle sessions, and end the sessions whose grace time is over.

    Their rows first: whoever comes back meanwhile is not cut off from a session that goes on.
    """
    ended: list[ToolSession] = []
    try:
        for activity in selectors.activities(selectors.quiet(sessions, now=now), now=now):
            step = activity.verdict.step if activity.verdict else IdleStep.KEEP
            try:
                if step is IdleStep.WARN:
                    services.warn(activity.session, now=now)
                elif step is IdleStep.END and services.end_idle(activity.session, now=now):
                    ended.append(activity.session)
            except HeklaError as error:
                log.warning("an idle session could not be handled: %s", error)
    finally:
        tools.stop_processes(ended)


def act_on_jobs(*, now: datetime) -> None:
    """Warn the owners of jobs that hold GPUs they do not use, and abort the jobs whose grace time is over."""
    for activity in job_selectors.activities(job_selectors.quiet(now=now), now=now):
        step = activity.verdict.step if activity.verdict else IdleStep.KEEP
        try:
            if step is IdleStep.WARN:
                job_services.warn(activity.job, now=now)
            elif step is IdleStep.END:
                job_services.abort_idle(activity.job, now=now)
        except HeklaError as error:
            log.warning("an idle job could not be handled: %s", error)


def _busy_kernels(sessions: Sequence[ToolSession]) -> Mapping[int, int | None]:
    found: dict[int, KernelServer] = {}
    for session in sessions:
        if session.tool == Tool.JUPYTERLAB and session.port and (ports := _ports(session)) is not None:
            try:
                secret = workbench.secret_of(session)
            except DecryptionError:
                continue
            key, base = tools.key_of(session.pod), entry.mount(session.slug)
            found[session.pk] = KernelServer(ports, key, session.port, secret, base)
    return dict(zip(found, kernels.count_busy(list(found.values())), strict=True))


def _ports(session: ToolSession) -> PortForwarding | None:
    try:
        return get_backend(**clusters.backend_facts(session.pod.job.cluster), home=settings.HEKLA_HOME).port_forwarding
    except HeklaError:  # the configuration of the cluster is wrong
        return None
