"""Bind external pods to the nodes in their rows.

A pod that the cluster does not bind there is pending again, with the reason, and the engine decides anew: at once if
its node is gone or can never have it, else after ten seconds of refused tries. If the next binds are refused too, they
are tried for longer and longer: the engine may know no better node.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from hekla.apps.external_pods import services
from hekla.apps.jobs.models import Pod
from hekla.backends.base import BackendError, NodeUnsuitable, StartDelayed, VolumePending
from hekla.backends.external_pods import BindRefused, ExternalBind, ExternalPods
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import RefusedBind
from hekla.domain.external_pods import ExternalPod

log = logging.getLogger(__name__)
_BIND_AGAIN_SECONDS = 10.0
"""The time until the watch reports a bind; before that, the bind is not repeated."""
GIVE_UP_SECONDS = 10.0
"""The time for which refused binds to one node are tried again."""
_MAX_SECONDS = 600.0
"""Also for a volume that is being made."""


def bind_pods(
    lease: LeaseContext, external: ExternalPods, pods: Sequence[tuple[Pod, ExternalPod]], *, now: datetime
) -> None:
    """Bind these pods, and return those to the engine that the cluster does not bind. Raises LeaseLost."""
    rows = {one.uid: pod for pod, one in pods}
    bound, moment = lease.state.external_pods.bound, time.monotonic()
    returned = {uid: _gone(pod) for uid, pod in rows.items() if pod.node not in lease.state.nodes}
    due = [
        ExternalBind(one, pod.node, pod.annotations)
        for pod, one in pods
        if one.uid not in returned and bound.get(one.uid, -_BIND_AGAIN_SECONDS) <= moment - _BIND_AGAIN_SECONDS
    ]
    for bind, error in external.bind_many(due, heartbeat=lease.ensure_leader):
        pod = bind.pod
        if error is None:
            bound[pod.uid] = moment
            continue
        log.warning("could not bind %s/%s to %s: %s", pod.namespace, pod.name, bind.node, error)
        if _gives_up(lease, pod.uid, error, moment):
            returned[pod.uid] = str(error)
    _return(lease, {rows[uid].pk: message for uid, message in returned.items()}, now)


def _gone(pod: Pod) -> str:
    return f"The node {pod.node} is not part of the cluster any more."


def _gives_up(lease: LeaseContext, uid: str, error: BackendError, moment: float) -> bool:
    """Whether this refusal ends the tries. Without an answer of the server there is no reason to give up."""
    if not isinstance(error, StartDelayed | NodeUnsuitable | BindRefused):
        return False
    refused = lease.state.external_pods.refused_binds
    is_first = uid not in refused
    known = refused.setdefault(uid, RefusedBind(moment, GIVE_UP_SECONDS))
    if isinstance(error, VolumePending) and moment - known.since < _MAX_SECONDS:
        return False
    if moment - known.since >= known.patience_seconds:
        refused[uid] = RefusedBind(moment, min(2 * known.patience_seconds, _MAX_SECONDS))
        return True
    return is_first and isinstance(error, NodeUnsuitable)


def _return(lease: LeaseContext, messages: Mapping[int, str], now: datetime) -> None:
    if messages:
        lease.ensure_leader()
        services.return_to_pending(lease.cluster_id, lease.epoch, messages, now=now)
