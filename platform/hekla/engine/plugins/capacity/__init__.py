"""Queues own what they deserve, borrow up to their capability, and reclaim what they deserve (`volcano-spec` §5.3).

With `enableHierarchy`, queues form a tree, and the limits of its ancestors apply to a queue too.
"""

from collections.abc import Sequence

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.model import QueueSpec
from hekla.engine.plugins.capacity import attributes
from hekla.engine.plugins.capacity.admission import Admission
from hekla.engine.plugins.capacity.devices import Demand, counts_devices
from hekla.engine.plugins.capacity.order import CapacityOrder
from hekla.engine.plugins.capacity.reclaim import Reclaim
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_LEVEL = "ancestorReclaimLevel"

NEEDS = (
    Need(
        Input.DEVICES,
        Lack.PART,
        gettext_noop("Limits of queues on claimed devices have no effect."),
        lambda option, _policy: counts_devices(option),
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Track the attributes of queues, and register functions that use them."""
    is_tree = option.has("enableHierarchy")
    demand = Demand(session, option)
    by_queue = attributes.of_session(session, demand, is_tree=is_tree)
    admission, order = Admission(session, by_queue, demand), CapacityOrder(by_queue)
    reclaim = Reclaim(session, by_queue, option.whole(_LEVEL, 0) if is_tree else 0)
    weigh_all = not session.policy.follows_volcano

    def update(pod: PodInfo, _row: int, sign: int) -> None:
        attributes.update_allocated(by_queue, pod, sign * demand.of(pod), weigh_all=weigh_all)

    def share_with(queue: QueueSpec, more: Sequence[PodInfo], less: Sequence[PodInfo]) -> float:
        return by_queue[queue.name].share_with(demand.total(more) - demand.total(less))

    session.on_change.append(update)
    session.register(ExtensionPoint.QUEUE_ORDER, option, order.of_queues)
    session.register(ExtensionPoint.QUEUE_SHARE, option, share_with)
    session.register(ExtensionPoint.QUEUE_ACCOUNT, option, lambda queue: by_queue[queue.name])
    session.register(ExtensionPoint.VICTIM_QUEUE_ORDER, option, order.of_victims)
    session.register(ExtensionPoint.ALLOCATABLE, option, admission.allocatable, is_cacheable=True)
    session.register(ExtensionPoint.WHY_NOT_ALLOCATABLE, option, admission.why_not_allocatable)
    session.register(ExtensionPoint.JOB_ENQUEUEABLE, option, admission.enqueueable, is_cacheable=True)
    session.register(ExtensionPoint.JOB_ENQUEUED, option, admission.enqueued)
    session.register(ExtensionPoint.PREEMPTIVE, option, reclaim.preemptive, is_cacheable=True)
    session.register(ExtensionPoint.RECLAIMABLE, option, reclaim.reclaimable, is_cacheable=True)
    session.register(ExtensionPoint.EVICTABLE, option, reclaim.evictable, is_cacheable=True)
