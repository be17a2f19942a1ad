"""Deletion leaves nothing in the cluster, in any phase of the pods and with controllers that die halfway.

`HEKLA_SEED` sets at which requests the controller dies.
"""

import os
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from tests.controller.fleet import Fleet, is_cleaned, is_over
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.proxy import ProxiedRequest, RequestFate
from tests.support.examples import examples

from hekla.apps.jobs.models import Job, Pod
from hekla.backends.kubernetes.api import Api
from hekla.backends.kubernetes.backend import KubernetesBackend
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.lib import clock

SEED = int(os.environ.get("HEKLA_SEED", "3"))
EACH = examples(10, least=1)
"""Jobs in each phase."""
_MOST_REQUESTS = 16
CLAIM = [{"name": "out", "volume_claim": {"storage": "1Gi"}}]
MOUNTS = [{"name": "out", "mount_path": "/out"}]

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def fleet(
    transactional_db: None, settings: Any, tmp_path: Path, small_cluster: ControlPlane, granted_namespace: str
) -> Iterator[Fleet]:
    settings.HEKLA_HOME = tmp_path / "home"
    with Fleet.with_own_nodes(small_cluster, granted_namespace, settings.HEKLA_HOME, machines=2) as made:
        yield made


class ControllerDied(DatabaseError):
    """The controller died."""


class Deaths:
    """Lets the controller die before or after a random request of each removal."""

    def __init__(self, patch: pytest.MonkeyPatch, dice: random.Random) -> None:
        self._dice, self._left, self.count = dice, 0, 0
        remove, answer = KubernetesBackend.remove, Api._response

        def remove_with_limit(backend: KubernetesBackend, job: str, **more: Any) -> None:
            self._left = self._dice.randint(1, _MOST_REQUESTS)
            remove(backend, job, **more)
            self._left = 0

        def send_with_limit(api: Api, *args: Any, **more: Any) -> Any:
            self._step()
            answered = answer(api, *args, **more)
            self._step()
            return answered

        patch.setattr(KubernetesBackend, "remove", remove_with_limit)
        patch.setattr(Api, "_response", send_with_limit)

    def reconcile(self, fleet: Fleet) -> None:
        """Reconciles, and starts a new controller if this one dies."""
        try:
            controllers.reconcile(fleet.world.cluster)
        except ControllerDied:
            controllers.reset()
            self.count += 1

    def _step(self) -> None:
        if self._left:
            self._left -= 1
            if not self._left:
                raise ControllerDied


class Phases:
    """Jobs whose pods are pending, created but not bound, running, stopping in vain, or over."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.ended = [self._submit("ended", 0.1, at) for at in range(EACH)]
        self._reconcile_until(lambda: all(map(is_over, self.ended)))
        self.running = [self._submit("running", 1000, at) for at in range(EACH)]
        self.stopping = [self._submit("stopping", 1000, at) for at in range(EACH)]
        self._reconcile_until(lambda: self._phases(self.running + self.stopping) == {"running"})
        self.bound = [self._submit("bound", 1000, at) for at in range(EACH)]
        fleet.proxy.judge = self._judge
        for job in self.stopping:
            fleet.abort(job)
        self._reconcile_until(lambda: self._phases(self.bound) == {"bound"} and all(map(fleet.remaining, self.bound)))
        self.pending = [fleet.submit(f"pending-{at}", 16, 1000) for at in range(EACH)]
        controllers.reconcile(fleet.world.cluster)

    @property
    def all(self) -> list[Job]:
        return [*self.ended, *self.running, *self.stopping, *self.bound, *self.pending]

    def _submit(self, phase: str, seconds: float, at: int) -> Job:
        """Submits a job with a file, secret keys and a claim of its own."""
        return self._fleet.submit(f"{phase}-{at}", 2, seconds, plugins={"ssh": []}, volumes=CLAIM, mounts=MOUNTS)

    def _judge(self, request: ProxiedRequest) -> RequestFate:
        """Lets no pod be bound or stopped."""
        return RequestFate.BROKEN if request.kind in ("POST pods/binding", "PATCH pods") else RequestFate.PASSED

    def _phases(self, jobs: list[Job]) -> set[str]:
        return set(Pod.objects.filter(job__in=jobs).values_list("phase", flat=True))

    def _reconcile_until(self, done: Callable[[], bool]) -> None:
        self._fleet.until(lambda: bool(controllers.reconcile(self._fleet.world.cluster)) or done())


@pytest.mark.slow
@pytest.mark.thorough
def test_deletion_in_any_phase_leaves_nothing_despite_dying_controllers(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = Phases(fleet)
    kinds = {one.partition("/")[0] for one in fleet.remaining()}
    assert kinds == {"pods", "services", "networkpolicies", "configmaps", "secrets", "persistentvolumeclaims"}
    Job.objects.filter(phase__in=["pending", "running", "aborting"]).update(phase="failed", finished_at=clock.now())
    for job in phases.all:
        fleet.delete(job)
    fleet.proxy.judge = lambda _: RequestFate.PASSED
    with monkeypatch.context() as patch:
        deaths = Deaths(patch, random.Random(SEED))
        fleet.until(lambda: bool(deaths.reconcile(fleet)) or all(map(is_cleaned, phases.all)))
    fleet.until(lambda: not fleet.remaining())
    assert deaths.count > len(phases.all) / 2
    assert not backend_of(fleet.world.cluster).inventory().present
    assert not Pod.objects.exclude(phase__in=["succeeded", "failed", "lost"]).exists()
    print({"seed": SEED, "deaths": deaths.count})


def test_objects_created_after_cleanup_are_swept(fleet: Fleet) -> None:
    """A controller stood still in the middle of a start. Its requests arrive after the job is gone."""
    held = fleet.submit("late", 2, 0.1, plugins={"ssh": []})
    fleet.until(lambda: bool(controllers.reconcile(fleet.world.cluster)) or is_over(held))
    backend, made = backend_of(fleet.world.cluster), fleet.proxy.done
    late = [made("POST services")[0], made("POST pods")[0]]
    fleet.delete(held)
    fleet.until(lambda: bool(controllers.reconcile(fleet.world.cluster)) or is_cleaned(held))
    for one in late:
        fleet.plane.request("POST", one.path, one.body)
    assert backend.inventory().present == {held.uid.hex}
    controller = controllers.get(fleet.world.cluster.pk)
    controller.full_look.every = timedelta()
    controllers.reconcile(fleet.world.cluster)
    assert fleet.remaining()
    controller.sweeping.every = timedelta()
    controllers.reconcile(fleet.world.cluster)
    fleet.until(lambda: not fleet.remaining())
