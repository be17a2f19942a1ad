"""Messages about flows: why a step waits, and what happened."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.domain.flow_progress import StepWait
from hekla.domain.flows import Probe, TaskState
from hekla.domain.phases import JobPhase


def wait(reason: StepWait, *, is_simulated: bool) -> str:
    """Why a step has not started, as one sentence."""
    facts = {"step": reason.target}
    if reason.probe is not None:
        return _probe(reason.probe, facts, is_simulated=is_simulated)
    if reason.phase is None:
        return _("Waiting for step %(step)s, which has not started.") % facts
    if reason.phase is JobPhase.ABORTED:
        return _("The job of step %(step)s was aborted. Resume it, or stop the flow.") % facts
    return _("Waiting for step %(step)s to complete.") % facts


def _probe(probe: Probe, facts: dict[str, str], *, is_simulated: bool) -> str:
    facts |= {"task": probe.task, "port": str(probe.port), "path": probe.path}
    if probe.state is TaskState.RUNNING:
        one, all_ = (
            _("Waiting for task %(task)s of step %(step)s to run."),
            _("Waiting for all tasks of step %(step)s to run."),
        )
        return (one if probe.task else all_) % facts
    if probe.state is TaskState.SUCCEEDED:
        one = _("Waiting for task %(task)s of step %(step)s to succeed.")
        return (one if probe.task else _("Waiting for all tasks of step %(step)s to succeed.")) % facts
    if is_simulated:
        return _("Waiting for step %(step)s to complete. Simulated pods have no ports to probe.") % facts
    if probe.path:
        return _("Waiting for a successful answer from port %(port)s of step %(step)s at %(path)s.") % facts
    return _("Waiting for port %(port)s of step %(step)s to accept connections.") % facts


def event(kind: str, facts: Mapping[str, Any]) -> tuple[str, str]:
    """The state (a colour) and the sentence of a flow's event; an empty sentence if the event is not shown."""
    teller = _TELLERS.get(kind)
    return teller(facts) if teller else ("neutral", "")


def _started(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "neutral", ngettext("Started with %(steps)s step.", "Started with %(steps)s steps.", facts["steps"]) % facts


def _step_started(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "admitted", _("Step %(step)s started: job %(name)s was submitted.") % facts


def _refused(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "failed", _("Step %(step)s could not be submitted. Retrying: %(message)s") % facts


def _stopped(_facts: Mapping[str, Any]) -> tuple[str, str]:
    return "stopped", _("Stop requested.")


def _phase(facts: Mapping[str, Any]) -> tuple[str, str]:
    state, word = _PHASES.get(facts["new"], ("neutral", lambda: facts["new"]))
    return state, str(word())


_TELLERS = {
    "FlowStarted": _started,
    "FlowStepStarted": _step_started,
    "FlowStepRefused": _refused,
    "FlowStopped": _stopped,
    "FlowPhaseChanged": _phase,
}
_PHASES = {
    "pending": ("waiting", lambda: _("Pending.")),
    "running": ("running", lambda: _("Running.")),
    "succeeded": ("done", lambda: _("All steps have completed.")),
    "failed": ("failed", lambda: _("A step failed. No further step starts.")),
    "terminated": ("stopped", lambda: _("Stopped. No further step starts.")),
}
