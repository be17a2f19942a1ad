"""Advances flows: level-triggered; each step starts in one transaction with its events.

A pass reads rows without locks and probes ports. Only if something is due, it locks the flow's row, and decides again
by what it finds then.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.flows import port_checks, selectors
from hekla.apps.flows.facts import current_pods, facts_of, spec_of
from hekla.apps.flows.models import Flow, FlowStep
from hekla.apps.flows.services.telling import tell
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.models import Pod
from hekla.domain import events
from hekla.domain.errors import HeklaError, Invalid
from hekla.domain.flow_progress import FlowProgress, PortProbe, evaluate_flow
from hekla.domain.flows import Retain
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import FlowPhase

log = logging.getLogger(__name__)
TRY_AGAIN_SECONDS = 15
"""The delay before a step that could not be submitted is tried again."""


def advance_all(*, now: datetime) -> None:
    """Start the steps that are due, and end the flows that are over. A flow that fails does not block others."""
    flows = [(flow, list(flow.steps.all())) for flow in selectors.in_progress() if _is_readable(flow)]
    pods = current_pods(flows)
    answers = port_checks.run_checks(
        [call for flow, steps in flows for call in port_checks.due_checks(flow, steps, pods)]
    )
    for flow, steps in flows:
        answered = answers.get(flow.pk, set())
        try:
            if _has_news(flow, steps, pods, answered, now):
                begin_what_is_due(flow.pk, answered=answered, now=now)
        except Exception:
            log.exception("flow %s cannot go on", flow.uid)


def _is_readable(flow: Flow) -> bool:
    """Whether this version can parse the flow's spec; logs the error if not."""
    try:
        spec_of(flow)
    except Invalid:
        log.exception("flow %s cannot go on", flow.uid)
        return False
    return True


def begin_what_is_due(pk: int, *, answered: Collection[PortProbe] = (), now: datetime) -> None:
    """Submit the jobs of the steps that are due, one after the other, and store the flow's phase."""
    while _begin_next(pk, answered, now):
        pass


def _has_news(
    flow: Flow, steps: Sequence[FlowStep], pods: dict[int, list[Pod]], answered: Collection[PortProbe], now: datetime
) -> bool:
    stands = _progress(flow, steps, pods, answered)
    return stands.is_over or stands.phase != flow.phase or _next(steps, stands, now) is not None


def _progress(
    flow: Flow, steps: Sequence[FlowStep], pods: dict[int, list[Pod]], answered: Collection[PortProbe] = ()
) -> FlowProgress:
    stopped = flow.stopped_at is not None
    return evaluate_flow(spec_of(flow), facts_of(flow, steps, pods), answered, is_stopped=stopped)


def _begin_next(pk: int, answered: Collection[PortProbe], now: datetime) -> bool:
    """Start the next step that is due, in one transaction. Returns whether there was one."""
    with unit_of_work():
        flow = Flow.objects.select_for_update(skip_locked=True).filter(pk=pk, ended_at=None).first()
        if flow is None:
            return False
        steps = selectors.steps_of(flow)
        stands = _progress(flow, steps, current_pods([(flow, steps)]), answered)
        write(flow, stands, steps, now)
        step = _next(steps, stands, now)
        if step is None:
            return False
        try:
            _begin(flow, step, now)
        except HeklaError as refusal:
            _refuse(flow, step, refusal, now)
        return True


def _next(steps: Sequence[FlowStep], stands: FlowProgress, now: datetime) -> FlowStep | None:
    """The first step that is due and was not refused within TRY_AGAIN_SECONDS, or None."""
    since = now - timedelta(seconds=TRY_AGAIN_SECONDS)
    due = (step for step in steps if step.name in stands.due)
    return next((step for step in due if step.refused_at is None or step.refused_at <= since), None)


def _begin(flow: Flow, step: FlowStep, now: datetime) -> None:
    # Time decides the order in a queue, so no two jobs get the same time.
    at = now + timedelta(microseconds=step.place)
    job = job_services.submit(spec=JobSpec.parse(step.spec), tenant=flow.tenant, user=flow.owner, now=at)
    step.job, step.started_at, step.refusal, step.refused_at = job, now, "", None
    step.save(update_fields=["job", "started_at", "refusal", "refused_at"])
    event = events.FlowStepStarted(step=step.name, job=str(job.uid), name=job.name)
    tell(flow, event, actor=PLATFORM, now=now)


def _refuse(flow: Flow, step: FlowStep, refusal: HeklaError, now: datetime) -> None:
    """Store why a step could not be submitted; it is retried later. The same reason records only one event."""
    why = str(refusal)[: events.MAX_MESSAGE]
    if why != step.refusal:
        tell(flow, events.FlowStepRefused(step=step.name, message=why), actor=PLATFORM, now=now)
    step.refusal, step.refused_at = why, now
    step.save(update_fields=["refusal", "refused_at"])


def write(flow: Flow, stands: FlowProgress, steps: Sequence[FlowStep], now: datetime) -> None:
    """Store the flow's phase and its end, with the event. Call with the flow's row locked."""
    if stands.phase != flow.phase:
        event = events.FlowPhaseChanged(old=FlowPhase(flow.phase), new=stands.phase)
        flow.phase = stands.phase
        tell(flow, event, actor=PLATFORM, now=now)
    if stands.is_over:
        flow.ended_at = now
        if stands.phase is FlowPhase.SUCCEEDED and spec_of(flow).retain is Retain.DELETE:
            _delete_jobs(steps, now)
    flow.save(update_fields=["phase", "ended_at"])


def _delete_jobs(steps: Sequence[FlowStep], now: datetime) -> None:
    for step in steps:
        if step.job is not None:
            job_services.delete_finished(step.job.pk, now=now)
