"""Hekla under test: a console without pages, with the controller as in production, in separate processes."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx2
import psutil
from prometheus_client.parser import text_string_to_metric_families

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.bench.cluster.place import CPU, PATIENCE_SECONDS, BenchCluster
from hekla.domain.jobspec import JobSpec
from hekla.launcher.terminal import LaunchRefused
from hekla.launcher.up import roles
from hekla.lib import clock

_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_STOP_SECONDS = 30.0


class BenchConsole:
    """The rows of a console, with a person who submits jobs to clusters."""

    def __init__(self, home: Path, kubeconfig: Path) -> None:
        now = clock.now()
        self._home, self._submitted = home, 0
        (home / "kubeconfigs").mkdir(exist_ok=True)
        (home / "kubeconfigs" / "bench").write_text(kubeconfig.read_text())
        self._user = User.objects.create(username="bench", password="!", date_joined=now)  # noqa: S106  (unusable)
        self._tenant: Tenant = tenancy.create(slug="bench", name="Bench", actor=PLATFORM, now=now)
        Membership.objects.create(tenant=self._tenant, user=self._user, role="member", since=now)

    @contextmanager
    def cluster(self, namespace: str, *, adopts: bool = False) -> Iterator[str]:
        """Create a cluster with its pods in this namespace, and yield the name of its queue.

        `adopts`: Hekla also schedules external pods there. The cluster is paused afterwards.
        """
        external_pods = {"namespaces": {namespace: "bench"}, "queue": namespace, "owner": "bench"}
        config = {"kubeconfig": "bench", "namespace": namespace, "external_pods": external_pods if adopts else None}
        cluster = clusters.create(name=namespace, kind="kubernetes", config=config, actor=PLATFORM, now=clock.now())
        queues.create(cluster=cluster, name=namespace, tenants=[self._tenant], actor=PLATFORM, now=clock.now())
        try:
            yield namespace
        finally:
            clusters.change(cluster, {"is_paused": True}, actor=PLATFORM, now=clock.now())

    def submit(self, queue: str, replicas: int, seconds: float) -> tuple[str, float]:
        """Submit a gang. Returns its uid in hex, as in pod labels, and the time of the submission (monotonic clock)."""
        self._submitted += 1
        task = {
            "name": "worker", "replicas": replicas, "command": ["true"], "image": "none",
            "resources": {"cpu": CPU}, "env": {"HEKLA_SIM_SECONDS": f"{seconds:g}"},
        }  # fmt: skip
        spec = JobSpec.parse({"name": f"bench-{self._submitted}", "queue": queue, "tasks": [task]})
        job = jobs.submit(spec=spec, tenant=self._tenant, user=self._user, now=clock.now())
        return job.uid.hex, time.monotonic()

    @contextmanager
    def at_work(self) -> Iterator["Controller"]:
        """Run the controller and beat during the context."""
        port = _free_port()
        env = {**os.environ, "HEKLA_METRICS_PORT": str(port), "HEKLA_METRICS_HOST": "127.0.0.1"}
        control, _other = roles.workers(env)
        with ExitStack() as stack, (self._home / "workers.log").open("ab") as log:
            began = time.monotonic()
            started = [role.start(log.fileno()) for role in (control, roles.beat(self._home / "beat", env))]
            processes = cast("list[subprocess.Popen[bytes]]", started)  # without a launcher nothing is forked
            for process in processes:
                stack.callback(_end, process)
            yield Controller(processes[0], port, began)


@dataclass(frozen=True, slots=True)
class Controller:
    """The process that runs the controller. `began`: its start time by the monotonic clock, in seconds."""

    process: subprocess.Popen[bytes]
    port: int
    began: float

    def peak_mib(self) -> int:
        """Its peak memory in MiB; on systems without /proc its present memory."""
        status = Path(f"/proc/{self.process.pid}/status")
        if status.exists():
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
            return int(line.split()[1]) // 1024
        return int(psutil.Process(self.process.pid).memory_info().rss // 2**20)

    def cpu_seconds(self) -> float:
        """CPU seconds that it has used."""
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)

    def writes(self) -> dict[str, int]:
        """The number of its writes to the API server, by method and kind."""
        response = httpx2.get(f"http://127.0.0.1:{self.port}/metrics", timeout=30, trust_env=False)
        families = text_string_to_metric_families(response.raise_for_status().text)
        return {
            f"{one.labels['method']} {one.labels['kind']}": int(one.value)
            for family in families
            if family.name == "hekla_kubernetes_requests"
            for one in family.samples
            if one.name.endswith("_total") and one.labels["method"] in _WRITES
        }


def until_quiet(place: BenchCluster, namespace: str) -> None:
    """Wait until no pods are left in the namespace. Raises LaunchRefused after `PATIENCE_SECONDS`."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while any(True for _pod in place.pods(namespace)):
        if time.monotonic() > limit:
            raise LaunchRefused("Pods of jobs that are over stay on the cluster.")
        time.sleep(1.0)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
