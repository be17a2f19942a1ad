"""Fair shares between namespaces: jobs of the namespace with the smallest share for its weight come first.

A namespace's share is the largest part of any resource of the cluster that its jobs hold, pipelined pods included,
divided by its weight: the argument `weights: {team-a: 2}`, 1 by default. Between jobs of one namespace the plugins
after this one decide.
"""

from collections import defaultdict

import numpy as np

from hekla.engine.columns import Vector, share
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.policy import PluginOption, number
from hekla.engine.session import Session

NEEDS: tuple[Need, ...] = ()


def open_session(session: Session, option: PluginOption) -> None:
    """Order jobs by the current shares of their namespaces."""
    weights = {name: number(weight, 1.0) for name, weight in option.inner("weights").items()}
    held: dict[str, Vector] = defaultdict(lambda: np.zeros_like(session.total_resources))
    for job in session.jobs.values():
        held[job.group.namespace] += job.allocated

    def share_of(job: JobInfo) -> float:
        namespace = job.group.namespace
        weight = weights.get(namespace, 1.0)
        return share(held[namespace], session.total_resources) / (weight if weight > 0 else 1.0)

    def update(pod: PodInfo, _row: int, sign: int) -> None:
        held[pod.job.group.namespace] += sign * pod.request

    session.on_change.append(update)
    session.job_order_changes = True
    session.register(ExtensionPoint.JOB_ORDER, option, share_of)
