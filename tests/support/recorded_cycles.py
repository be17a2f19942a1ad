"""Cycles of the controller over the rows of a recorded scenario (`recorded_rows`).

Recorded was Volcano's scheduler alone: between two cycles bound pods run, evicted ones are gone, and nothing replaces
them. So here the lifecycle of jobs stands still, and each reconcile decides once.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.recorded_rows import LaidScenario

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services import observations
from hekla.controller import cluster_controller, metrics
from hekla.controller.controllers import controllers
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, PodStatus
from hekla.lib import clock

IDLE = 'actions: "shuffle"\ntiers:\n- plugins: [{name: gang}]\n'
"""A policy that changes nothing."""


def play(laid: LaidScenario, policy: str, cycles: int, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The outcome of each cycle under this policy."""
    with monkeypatch.context() as patch:
        patch.setattr(services, "would_sync", lambda *_args: False)
        patch.setattr(observations, "advance", lambda *_args, **_kwargs: False)
        patch.setattr(cluster_controller, "_MAX_ROUNDS", 1)
        _start(laid)
        _set_policy(laid, policy)
        decided: list[tuple[ClusterState, Decisions]] = []
        _listen(patch, decided)
        return list(_outcomes(laid, cycles, decided))


def _start(laid: LaidScenario) -> None:
    """Start the pods that run, and cordon nodes; then set the phases of jobs, which this may have changed."""
    _set_policy(laid, IDLE)
    controllers.reconcile(laid.cluster)
    cordoned = [node.name for node in laid.state.nodes if node.unschedulable]
    Node.objects.filter(cluster=laid.cluster, name__in=cordoned).update(is_cordoned=True)
    controllers.get(laid.cluster.pk).cache.nodes.invalidate()
    for phase in set(laid.phases.values()):
        Job.objects.filter(pk__in=[pk for pk, own in laid.phases.items() if own is phase]).update(gang_phase=phase)


def _set_policy(laid: LaidScenario, text: str) -> None:
    clusters.set_policy(laid.cluster, text=text, note="", by=None, actor=PLATFORM, now=clock.now())


def _listen(patch: pytest.MonkeyPatch, decided: list[tuple[ClusterState, Decisions]]) -> None:
    cycle = metrics.cycle

    def listen(name: str, state: ClusterState, *args: Any, **kwargs: Any) -> Decisions:
        decisions = cycle(name, state, *args, **kwargs)
        decided.append((state, decisions))
        return decisions

    patch.setattr(metrics, "cycle", listen)


def _outcomes(
    laid: LaidScenario, cycles: int, decided: list[tuple[ClusterState, Decisions]]
) -> Iterator[dict[str, Any]]:
    controller = controllers.get(laid.cluster.pk)
    for number in range(cycles):
        controller.cache.invalidate(laid.phases)
        controller._acted_on = -1
        controllers.reconcile(laid.cluster)
        assert len(decided) == number + 1
        state, decisions = decided[-1]
        assert not decisions.faults, decisions.faults
        running = {pod.status for job in state.jobs for pod in job.pods}
        assert running <= {PodStatus.PENDING, PodStatus.RUNNING}, running
        _compare_rows(laid, decisions)
        yield _outcome(laid, state, decisions)
        Pod.objects.filter(pk__in=[int(one.pod) for one in decisions.evictions]).delete()


def _outcome(laid: LaidScenario, state: ClusterState, decisions: Decisions) -> dict[str, Any]:
    return {
        "binds": {laid.pods[bind.pod]: bind.node for bind in decisions.binds},
        "evicted": sorted(laid.pods[eviction.pod] for eviction in decisions.evictions),
        "pipelined": {laid.pods[pod]: node for pod, node in decisions.pipelined.items()},
        "podGroups": {
            laid.jobs[job.uid]: {"phase": str(decisions.phases.get(job.uid, job.phase)).capitalize()}
            for job in state.jobs
        },
    }


def _compare_rows(laid: LaidScenario, decisions: Decisions) -> None:
    """The rows hold what was decided."""
    binds = {int(bind.pod): bind.node for bind in decisions.binds}
    assert dict(Pod.objects.filter(pk__in=binds).values_list("pk", "node")) == binds
    evicted = Pod.objects.filter(pk__in=[int(one.pod) for one in decisions.evictions], evicted=True)
    assert evicted.count() == len(decisions.evictions)
