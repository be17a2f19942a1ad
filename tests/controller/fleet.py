"""A Kubernetes cluster behind a proxy of the tests, the actions of its users, and an audit of the result.

The proxy records Hekla's requests to the API server. The audit compares them with the rows and the event log.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controller.conftest import World, describe
from tests.kubernetes.control_plane import ControlPlane, RequestRefused
from tests.kubernetes.proxy import Proxy, RequestFate
from tests.support import auditor

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.kubernetes.resource_paths import ATTACHED, resource_path
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.errors import Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import FINAL_JOB_PHASES, JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

SETTLED_WITHIN_SECONDS = 480
KINDS = ("pods", *ATTACHED)
ENDS_AT = "hekla.dev/test-ends-at"
RESTART = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]


@dataclass
class Fleet:
    """The world, the proxy between Hekla and its API server, and the namespace of its pods."""

    world: World
    proxy: Proxy
    plane: ControlPlane
    namespace: str

    @classmethod
    @contextmanager
    def of(
        cls, plane: ControlPlane, namespace: str, token: str, home: Path, labels: dict[str, str]
    ) -> Iterator["Fleet"]:
        """The cluster consists of the nodes with these labels."""
        controllers.reset()
        with Proxy(plane).listening() as proxy:
            (home / "kubeconfigs").mkdir(parents=True)
            (home / "kubeconfigs" / "test").write_text(json.dumps(proxy.kubeconfig(token)))
            config = {"kubeconfig": "test", "namespace": namespace, "node_labels": labels}
            world = World.found("kubernetes", config)
            yield cls(world, proxy, plane, namespace)
            backend_of(world.cluster).close()
        controllers.reset()

    @classmethod
    @contextmanager
    def with_own_nodes(cls, plane: ControlPlane, namespace: str, home: Path, *, machines: int) -> Iterator["Fleet"]:
        """Adds this many nodes for this test alone; Hekla is the user `hekla` of the namespace."""
        labels = {"hekla.dev/test": namespace}
        added = plane.add_nodes(machines, labels=labels)
        with cls.of(plane, namespace, plane.user_token, home, labels) as made:
            yield made
        plane.remove_nodes(added)

    def submit(
        self, name: str, replicas: int, seconds: float, *, exit_code: int = 0, mounts: Sequence[Any] = (), **more: Any
    ) -> Job:
        """Submits a gang that starts as a whole. Its pods know each other's addresses, and it brings a file."""
        env = {"HEKLA_SIM_SECONDS": f"{seconds:.2f}", "HEKLA_SIM_EXIT": str(exit_code)}
        task = {"name": "w", "replicas": replicas, "command": ["x"], "resources": {"cpu": "1"}, "env": env}
        task |= {"volume_mounts": list(mounts)}
        common = {"plugins": {"svc": []}, "files": {"note": "text"}, "max_retry": 1}
        document = {"name": name, "tasks": [task], **common, **more}
        spec = JobSpec.parse(document)
        return services.submit(spec=spec, tenant=self.world.tenant, user=self.world.alice, now=clock.now())

    def abort(self, job: Job) -> None:
        """Aborts as a person. If the phase of the job forbids it, nothing happens."""
        try:
            services.command(job, LifecycleAction.ABORT_JOB, user=self.world.alice, now=clock.now())
        except Refused:
            return

    def delete(self, job: Job) -> None:
        """Deletes a finished job, as a person."""
        services.delete(job, user=self.world.alice, now=clock.now())

    def remaining(self, job: Job | None = None) -> list[str]:
        """The objects in the namespace with Hekla's labels, of one job or of all jobs."""
        selector = f"hekla.dev/job={job.uid.hex}" if job else "hekla.dev/cluster"
        return [
            f"{kind}/{one['metadata']['name']}"
            for kind in KINDS
            for one in self.plane.request("GET", f"{resource_path(self._place, kind)}?labelSelector={selector}")[
                "items"
            ]
        ]

    def until(self, done: Callable[[], bool], more: Callable[[], object] = lambda: "") -> None:
        """Waits until the condition holds. `more` describes the state if it never does."""
        limit = time.monotonic() + SETTLED_WITHIN_SECONDS
        while not done():
            assert time.monotonic() < limit, f"{describe()}\n{self._describe_pods()}\n{more()}"
            time.sleep(0.1)

    def sweep(self) -> None:
        """Collects garbage until nothing is left, as the controller does every few minutes."""
        controllers.reset()
        limit = time.monotonic() + SETTLED_WITHIN_SECONDS
        while found := self.remaining():
            assert time.monotonic() < limit, found
            controllers.reset()
            controllers.reconcile(self.world.cluster)

    def pods(self) -> list[dict[str, Any]]:
        """The pods, as the API server has them."""
        found: list[dict[str, Any]] = self.plane.request("GET", f"{self._place}/pods")["items"]
        return found

    def end_endless_pods(self) -> None:
        """Ends the running pods without an end time.

        Their order names none, or the API server was killed before it was set.
        """
        change = {"metadata": {"annotations": {ENDS_AT: clock.now().isoformat()}}}
        for pod in self.pods():
            meta = pod["metadata"]
            if pod["status"].get("phase") == "Running" and ENDS_AT not in meta.get("annotations", {}):
                self._patch(meta["name"], change)

    def _patch(self, pod: str, change: dict[str, Any]) -> None:
        """Patches the pod, unless Hekla has deleted it."""
        with suppress(RequestRefused):
            path = f"{self._place}/pods/{pod}"
            self.plane.request("PATCH", path, change, content_type="application/merge-patch+json")

    def _describe_pods(self) -> list[str]:
        """Node and phase of each pod, for a failing test."""
        return [
            f"{one['metadata']['name']} {one['spec'].get('nodeName')} {one['status'].get('phase')}"
            for one in self.pods()
        ]

    @property
    def _place(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"


def is_over(job: Job) -> bool:
    """Whether the job has a final phase."""
    return JobPhase(Job.objects.get(pk=job.pk).phase).is_final


def is_cleaned(job: Job) -> bool:
    """Whether the row says that the objects attached to the job are gone."""
    return Job.objects.get(pk=job.pk).cleaned_at is not None


def are_all_over() -> bool:
    """Whether all jobs have a final phase."""
    return not Job.objects.exclude(phase__in=[phase.value for phase in FINAL_JOB_PHASES]).exists()


def audit(fleet: Fleet) -> None:
    """Rows, event log and API server agree, and nothing happened twice."""
    auditor.audit_everything()
    bound = Counter(one.name for one in fleet.proxy.done("POST pods/binding"))
    assert not [name for name, count in bound.items() if count > 1]
    rows = {key_of(pod).name: pod for pod in Pod.objects.select_related("job")}
    nodes = {one.name: one.body["target"]["name"] for one in fleet.proxy.done("POST pods/binding")}
    assert {name: rows[name].node for name in nodes} == nodes
    possibly_bound = set(nodes) | {one.name for one in fleet.proxy.may_be_done("POST pods/binding")}
    assert {name for name, pod in rows.items() if pod.started_at} <= possibly_bound
    assert not [str(pod) for pod in rows.values() if pod.phase == "lost" or pod.reason in ("Deleted", "Vanished")]
    _audit_starts()
    _audit_gangs(possibly_bound)


def _audit_starts() -> None:
    """The log has each start once."""
    starts = LoggedEvent.objects.filter(kind="PodPhaseChanged", payload__new="running")
    refs = Counter((one.subject, *(one.payload[part] for part in ("task", "index", "attempt"))) for one in starts)
    assert set(refs.values()) <= {1}


def _audit_gangs(bound: set[str]) -> None:
    """A gang is bound in one decision. If the job completed, all of its pods were bound."""
    for job in Job.objects.prefetch_related("pods"):
        decided = Counter(
            LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="PodBound").values_list("at", flat=True)
        )
        assert set(decided.values()) <= {job.replicas}, f"{job}: {decided}"
        if job.phase == JobPhase.COMPLETED:
            missing = [str(pod) for pod in job.pods.all() if pod.phase == "succeeded" and key_of(pod).name not in bound]
            assert not missing, f"{job}: {missing}"


def faulty(dice: random.Random, share: float) -> Callable[[object], RequestFate]:
    """Lets this share of the requests fail, in random ways."""
    wrong = [fate for fate in RequestFate if fate is not RequestFate.PASSED]
    return lambda _: dice.choice(wrong) if dice.random() < share else RequestFate.PASSED
