"""The Python client: submit jobs, wait for them, read their logs, change them."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any, cast
from uuid import UUID, uuid4

import httpx2

from hekla.client import credentials, logs
from hekla.client.credentials import ServerCredentials
from hekla.client.documents import DryRunResult, JobDetail, JobDocument, PodDocument, SubmitResult
from hekla.client.errors import NotFoundError, WaitTimeoutError
from hekla.client.transport import RETRIES, TIMEOUT_SECONDS, Json, Transport

FINAL_PHASES = frozenset({"completed", "failed", "aborted", "terminated"})
_PAUSES = (0.2, 0.3, 0.5, 0.8, 1.3, 2.0, 3.0)
_LONGEST_PAUSE_SECONDS = 5.0

JobSource = Mapping[str, Any] | str | bytes
"""A JobSpec document, or a manifest of Volcano, Kubeflow, Ray, Spark, Flink, Kubernetes or OpenPAI in YAML."""
JobRef = str | Mapping[str, Any]
"""A job: its uid, its name (the newest job of that name), or a document that a method here returned."""


class Client(Transport):
    """A client of the REST API, with the permissions of one token.

    Without an address or a token, it uses those of the command `hekla`: `HEKLA_SERVER` and `HEKLA_TOKEN`, the login
    that `hekla login` saved, or the server of this checkout. Every method raises a `ClientError` if the server does not
    respond or refuses the request.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx2.BaseTransport | None = None,
        **limits: Any,  # noqa: ANN401  (`limit_seconds` and `on_limit` of Transport)
    ) -> None:
        server = (
            ServerCredentials(credentials.normalize_url(url), token)
            if url and token
            else credentials.from_environment(url, token)
        )
        super().__init__(server, timeout=timeout, retries=retries, transport=transport, **limits)

    def me(self) -> dict[str, Any]:
        """The owner of the token, and their tenants."""
        return cast("dict[str, Any]", self.get("me"))

    def submit(
        self, spec: JobSource, *, tenant: str | None = None, key: str | None = None, **notifications: Json
    ) -> SubmitResult:
        """Submit a job. A second request with the same key returns the first job; by default each call has a new key.

        `notifications`: the notification settings, as in REST: `notify=["failed"]`, `notify_by=["mail"]`, …
        """
        return cast(
            "SubmitResult", self._describe("jobs", spec, tenant=tenant, key=key or uuid4().hex, **notifications)
        )

    def check(self, spec: JobSource, *, tenant: str | None = None, **notifications: Json) -> DryRunResult:
        """Validate a job without submitting it (a dry run)."""
        return cast("DryRunResult", self._describe("jobs", spec, tenant=tenant, dry_run="1", **notifications))

    def what_if(self, spec: JobSource, *, tenant: str | None = None) -> dict[str, Any]:
        """A preview: whether the job would start now; else why it would wait, until when, and what would help."""
        return cast("dict[str, Any]", self._describe("what-if", spec, tenant=tenant))

    def jobs(self, **filters: Json) -> Iterator[JobDocument]:
        """The jobs that you can see, newest first, filtered as in REST: `phase="running"`, `mine=True`, …"""
        return self.each("jobs", **filters)

    def job(self, job: JobRef) -> JobDetail:
        """The present state of one job."""
        return cast("JobDetail", self.get(self._path(job)))

    def wait(self, job: JobRef, *, until: Collection[str] = FINAL_PHASES, timeout: float | None = None) -> JobDetail:
        """Wait until the job enters one of these phases or ends. Raises WaitTimeoutError after `timeout` seconds."""
        path, began = self._path(job), time.monotonic()
        for pause in chain(_PAUSES, repeat(_LONGEST_PAUSE_SECONDS)):
            found = cast("JobDetail", self.get(path))
            if found["phase"] in until or found["phase"] in FINAL_PHASES:
                return found
            left = pause if timeout is None else began + timeout - time.monotonic()
            if left <= 0:
                raise WaitTimeoutError(f"{found['name']} is {found['phase']} after {timeout:g} seconds.")
            time.sleep(min(pause, left))
        raise AssertionError  # the pauses are endless

    def start_estimate(self, job: JobRef) -> dict[str, Any]:
        """The estimated start of a pending job, its position in the queue, and the accuracy of such estimates."""
        return cast("dict[str, Any]", self.get(f"{self._path(job)}/start"))

    def pending_periods(self, job: JobRef) -> dict[str, Any]:
        """Why the job was pending, period by period."""
        return cast("dict[str, Any]", self.get(f"{self._path(job)}/waits"))

    def autoscaling(self, job: JobRef) -> list[dict[str, Any]]:
        """The tasks with autoscaling: their utilization, and why their replicas change or stay."""
        return cast("list[dict[str, Any]]", self.get(f"{self._path(job)}/autoscaling"))

    def compare(self, jobs: Iterable[JobRef], **ranking: Json) -> dict[str, Any]:
        """Up to 50 jobs beside each other: the settings that differ, the metrics that they print, and the best job.

        `ranking`: as in REST: `metric="loss"`, `goal="min"`, `value="last"`; `points=True`: with curves of the metric.
        """
        return cast("dict[str, Any]", self.get("jobs/compare", job=[self.uid(job) for job in jobs], **ranking))

    def abort(self, job: JobRef) -> JobDetail:
        """Abort the job. It can be resumed."""
        return self._act(job, "AbortJob")

    def resume(self, job: JobRef) -> JobDetail:
        """Resume an aborted job."""
        return self._act(job, "ResumeJob")

    def restart(self, job: JobRef, task: str | None = None, index: int | None = None) -> JobDetail:
        """Restart the job, all pods of one task, or one replica of it; the rest keeps running."""
        if task is None:
            return self._act(job, "RestartJob")
        if index is None:
            return self._act(job, "RestartTask", task=task)
        return self._act(job, "RestartPod", task=task, index=index)

    def delete_job(self, job: JobRef) -> None:
        """Delete a finished job and its files. Its logs and history are kept for the retention period."""
        self.delete(self._path(job))

    def scale(
        self,
        job: JobRef,
        replicas: Mapping[str, int] | None = None,
        *,
        least: Mapping[str, int] | None = None,
        least_of_all: int | None = None,
        autoscaling: Mapping[str, Mapping[str, int] | None] | None = None,
        revision: int | None = None,
    ) -> SubmitResult:
        """Change the replicas of tasks, the minimum of a task (`least`), or the minimum of the job (`least_of_all`).

        `autoscaling`: by task, new values of `gpu_utilization`, `max_replicas` or `stabilization_seconds`; None: off.
        With a revision, the server refuses if the job has changed since. Warnings: what running pods do not notice.
        """
        tasks: dict[str, dict[str, Any]] = {task: {"replicas": number} for task, number in (replicas or {}).items()}
        for task, number in (least or {}).items():
            tasks.setdefault(task, {})["min_available"] = number
        for task, rule in (autoscaling or {}).items():
            tasks.setdefault(task, {})["autoscaling"] = rule
        size: dict[str, Any] = {"tasks": tasks} | ({} if least_of_all is None else {"min_available": least_of_all})
        return cast("SubmitResult", self.patch(f"{self._path(job)}/scale", size, revision=revision))

    def set_priority(self, job: JobRef, priority: int) -> JobDetail:
        """Change the priority. Higher priorities come first in the queue."""
        return cast("JobDetail", self.patch(f"{self._path(job)}/priority", {"priority": priority}))

    def logs(
        self,
        job: JobRef,
        task: str | None = None,
        index: int | None = None,
        *,
        attempt: int | None = None,
        follow: bool = False,
    ) -> Iterator[str]:
        """The lines of a pod's log; with `follow` also the later ones, until the pod ends.

        `task` and `index` are optional if the job has one pod. Raises LookupError if they do not select one pod.
        """
        found = self.wait(job, until={"running"}) if follow else self.job(job)
        pod = _the_pod(found, task, index)
        chosen = pod["attempt"] if attempt is None else attempt
        return logs.lines(self.log_pieces(found, pod, attempt=chosen, follow=follow))

    def log_pieces(self, job: JobRef, pod: PodDocument, *, attempt: int, follow: bool = False) -> Iterator[str]:
        """The log of a pod in pieces, which can end in the middle of a line."""
        return logs.pieces(self, f"{self._path(job)}/pods/{pod['task']}/{pod['index']}/log", attempt, follow=follow)

    def queues(self) -> list[dict[str, Any]]:
        """The queues that you can see."""
        return cast("list[dict[str, Any]]", self.get("queues"))

    def quotas(self, tenant: str) -> list[dict[str, Any]]:
        """The quotas of a tenant and its members, and their usage."""
        return cast("list[dict[str, Any]]", self.get(f"tenants/{tenant}/quotas"))

    def federated_queues(self) -> list[dict[str, Any]]:
        """The federated queues that you can submit to."""
        return cast("list[dict[str, Any]]", self.get("federated-queues"))

    def clusters(self) -> list[dict[str, Any]]:
        """The clusters and their health."""
        return cast("list[dict[str, Any]]", self.get("clusters"))

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes and their allocated resources."""
        return cast("list[dict[str, Any]]", self.get("nodes"))

    def uid(self, job: JobRef) -> str:
        """The uid of a job. Raises NotFoundError if no job has that name."""
        name = job if isinstance(job, str) else str(job["uid"])
        try:
            return str(UUID(name))
        except ValueError:
            found: list[JobDocument] = self.get("jobs", name=name, limit=1)["results"]
        if not found:
            raise NotFoundError(404, f"Unknown job “{name}”.", "not_found")
        return found[0]["uid"]

    def _path(self, job: JobRef) -> str:
        return f"jobs/{self.uid(job)}"

    def _describe(self, path: str, spec: JobSource, *, key: str = "", **query: Json) -> Json:
        if isinstance(spec, str | bytes):
            return self.post_yaml(path, spec, key=key, **query)
        return self.post(path, dict(spec), key=key, **query)

    def _act(self, job: JobRef, action: str, **part: str | int) -> JobDetail:
        return cast("JobDetail", self.post(f"{self._path(job)}/actions", {"action": action, **part}))


def _the_pod(job: JobDetail, task: str | None, index: int | None) -> PodDocument:
    found = [pod for pod in job["pods"] if task in (None, pod["task"]) and index in (None, pod["index"])]
    if len(found) != 1:
        names = ", ".join(f"{pod['task']}-{pod['index']}" for pod in job["pods"][:10]) or "none yet"
        raise LookupError(f"Name one pod of {job['name']} by its task and index; it has: {names}.")
    return found[0]
