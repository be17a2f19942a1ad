"""Stops flows early, and deletes flows."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.flows import selectors
from hekla.apps.flows.facts import facts_of, spec_of
from hekla.apps.flows.models import Flow
from hekla.apps.flows.services.advancing import write
from hekla.apps.flows.services.telling import tell
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.models import Job
from hekla.domain import events
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.flow_progress import evaluate_flow
from hekla.domain.policies import LifecycleAction


def stop(flow: Flow, *, user: User, now: datetime) -> Flow:
    """Start no more steps, and terminate the jobs that have not ended. Raises Forbidden; Refused for an ended flow."""
    _require_right(flow, user)
    with unit_of_work():
        flow = changes.locked(flow)
        if flow.ended_at is not None:
            raise Refused(_("The flow has finished already."))
        if flow.stopped_at is None:
            flow.stopped_at = now
            flow.save(update_fields=["stopped_at"])
            tell(flow, events.FlowStopped(name=flow.name), actor=actor_of(user), now=now)
        for job in _at_work(flow):
            job_services.command(job, LifecycleAction.TERMINATE_JOB, user=user, now=now)
        steps = selectors.steps_of(flow)
        write(flow, evaluate_flow(spec_of(flow), facts_of(flow, steps, {}), is_stopped=True), steps, now)
    return flow


def delete(flow: Flow, *, user: User, now: datetime) -> None:
    """Delete a flow that has ended; its jobs stay. Raises Forbidden; Refused if it has not ended."""
    _require_right(flow, user)
    with unit_of_work():
        flow = changes.locked(flow)
        if flow.ended_at is None:
            raise Refused(_("The flow has not finished. Stop it first, then delete it."))
        flow.deleted_at = now
        flow.save(update_fields=["deleted_at"])
        tell(flow, events.FlowDeleted(name=flow.name), actor=actor_of(user), now=now)


def _at_work(flow: Flow) -> list[Job]:
    """The flow's jobs that have not ended, locked until the end of the transaction."""
    mine = flow.steps.exclude(job=None).values("job_id")
    return [job for job in Job.objects.select_for_update().filter(pk__in=mine).order_by("pk") if not job.is_final]


def _require_right(flow: Flow, user: User) -> None:
    if not selectors.may_act(user, flow):
        raise Forbidden(_("Only the owner of the flow and tenant admins can do this."))
