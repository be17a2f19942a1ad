"""Gives the queues without an order of jobs one: the argument `default` (`job_order`).

Without the argument, or with an unknown order, the other plugins decide in those queues.
"""

from hekla.domain.queue_settings import JOB_ORDER
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine import job_order
from hekla.engine.inputs import Lack, Need
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

NEEDS = (
    Need(Input.QUEUE_ANNOTATIONS, Lack.PART, gettext_noop("All queues have the order in its argument “default”.")),
    Need(Input.JOB_ANNOTATIONS, Lack.PART, gettext_noop("The order “sla” is that of age.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Order the jobs of the queues that have no order of their own."""
    default = str(option.arguments.get("default", ""))
    job_order.apply(session, {q.name: default for q in session.queues.values() if JOB_ORDER not in q.annotations})
