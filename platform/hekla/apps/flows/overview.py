"""The contents of the pages of flows, for the page itself and for its live fragments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.flows import drawing, labels, selectors
from hekla.apps.flows.drawing import Box, Drawing, StepEdge
from hekla.apps.flows.facts import current_pods, facts_of, spec_of
from hekla.apps.flows.models import Flow, FlowStep
from hekla.apps.job_history.history import TimelineEntry
from hekla.apps.jobs.models import Job
from hekla.domain.flow_progress import StepWait, evaluate_flow
from hekla.domain.flows import FlowSpec, Retain
from hekla.domain.phases import FlowPhase, JobPhase

_MOST_EVENTS = 200


@dataclass(frozen=True, slots=True)
class StepView:
    """The state of a step. `phase`: of its job, or `waits`, `skipped`, `gone`; `word`: the label of the last three."""

    name: str
    job: Job | None
    phase: str
    word: str
    template: str
    waits_for: Sequence[str]
    reasons: Sequence[str]
    started_at: Any

    @property
    def link(self) -> bool:
        """Whether its job has a page."""
        return self.job is not None and self.job.deleted_at is None


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """A layout with the state of its boxes, and whether the step at the start of each line has completed."""

    kind: str
    drawing: Drawing
    boxes: Sequence[tuple[Box, StepView]]
    lines: Sequence[tuple[StepEdge, bool]]


def detail(flow: Flow, user: User) -> dict[str, Any]:
    """The context of the flow's page."""
    spec, by_name = spec_of(flow), steps(flow, selectors.steps_of(flow))
    views = list(by_name.values())
    may_act = selectors.may_act(user, flow)
    events = selectors.history(flow).reverse()[:_MOST_EVENTS]
    described = [(event, labels.event(event.kind, event.payload)) for event in events]
    return {
        "flow": flow,
        "steps": views,
        "drawings": [_drawn("wide", drawing.wide(spec), by_name), _drawn("narrow", drawing.narrow(spec), by_name)],
        "done": sum(view.phase == JobPhase.COMPLETED for view in views),
        "at_work": sum(view.job is not None and not view.job.is_final for view in views),
        "is_simulated": any(view.job is not None and view.job.cluster.is_simulated for view in views),
        "deletes_jobs": spec.retain is Retain.DELETE,
        "may_stop": may_act and flow.ended_at is None and flow.stopped_at is None,
        "may_delete": may_act and flow.ended_at is not None,
        "timeline": [
            TimelineEntry(event.pk, event.at, state, sentence, "" if event.actor_id is None else event.who)
            for event, (state, sentence) in described
            if sentence
        ],
    }


def draft(spec: FlowSpec) -> list[FlowGraph]:
    """The drawings of a flow that is not started, with the template of each step."""
    views = {
        step.name: StepView(
            name=step.name,
            job=None,
            phase="waits",
            word=_("Job in the flow") if step.job else step.template_name,
            template=step.template_name,
            waits_for=spec.waits[step.name],
            reasons=(),
            started_at=None,
        )
        for step in spec.steps
    }
    return [_drawn("wide", drawing.wide(spec), views), _drawn("narrow", drawing.narrow(spec), views)]


def rows(flows: Sequence[Flow]) -> list[dict[str, Any]]:
    """The rows of a list of flows: each with the numbers of completed and of all steps."""
    counts = selectors.step_counts(flows)
    return [
        {"flow": flow, "done": counts.get(flow.pk, (0, 0))[0], "all": counts.get(flow.pk, (0, 0))[1]} for flow in flows
    ]


def steps(flow: Flow, found: Sequence[FlowStep]) -> dict[str, StepView]:
    """The state of the flow's steps, by name. `found`: their rows."""
    spec, views = spec_of(flow), {}
    facts = facts_of(flow, found, current_pods([(flow, found)]))
    stands = evaluate_flow(spec, facts, is_stopped=flow.stopped_at is not None)
    simulated = {step.name for step in found if step.job is not None and step.job.cluster.is_simulated}
    templates = {step.name: step.template_name for step in spec.steps}
    for step in found:
        phase = step.job.phase if step.job else _without_job(flow, step)
        views[step.name] = StepView(
            name=step.name,
            job=step.job,
            phase=phase,
            word="" if step.job else _WORDS[phase](),
            template=templates[step.name],
            waits_for=spec.waits[step.name],
            reasons=_reasons(step, stands.waits.get(step.name, ()), simulated),
            started_at=step.started_at,
        )
    return views


def _without_job(flow: Flow, step: FlowStep) -> str:
    if step.started_at is not None:
        return "gone"
    return "waits" if flow.phase in (FlowPhase.PENDING, FlowPhase.RUNNING) else "skipped"


def _reasons(step: FlowStep, waits: Sequence[StepWait], simulated: set[str]) -> list[str]:
    reasons = [labels.wait(reason, is_simulated=reason.target in simulated) for reason in waits]
    if step.refusal and step.job is None:
        reasons.append(_("Submission failed. Retrying: %(why)s") % {"why": step.refusal})
    return list(dict.fromkeys(reasons))


def _drawn(kind: str, one: Drawing, views: Mapping[str, StepView]) -> FlowGraph:
    return FlowGraph(
        kind,
        one,
        [(box, views[box.name]) for box in one.boxes],
        [(line, views[line.before].phase == JobPhase.COMPLETED) for line in one.lines],
    )


_WORDS = {"waits": lambda: _("Pending"), "skipped": lambda: _("Not started"), "gone": lambda: _("Deleted")}
