"""What programs do with a console: submit jobs, wait for them, read what they wrote, change them."""

import time
from collections.abc import Collection, Iterator, Mapping
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
"""A JobSpec document, or a manifest of Volcano, Kubeflow, Kubernetes or OpenPAI in YAML."""
JobRef = str | Mapping[str, Any]
"""A job: its uid, its name (the newest of that name is meant), or what a method here said of it."""


class Client(Transport):
    """A console as its owner of a token sees it.

    Without an address and a token it speaks to the console that the command `hekla` would: what `HEKLA_SERVER` and
    `HEKLA_TOKEN` say, what `hekla login` kept, or the one of this checkout. Every method raises a `ClientError` where
    there is no answer or the answer is no.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        server = (
            ServerCredentials(credentials.normalize_url(url), token)
            if url and token
            else credentials.from_environment(url, token)
        )
        super().__init__(server, timeout=timeout, retries=retries, transport=transport)

    def me(self) -> dict[str, Any]:
        """Whose token this is, and their tenants."""
        return cast("dict[str, Any]", self.get("me"))

    def submit(
        self, spec: JobSource, *, tenant: str | None = None, key: str | None = None, **notifications: Json
    ) -> SubmitResult:
        """Submit a job. Sent again with the same key it is the job of the first time; without one a key is made.

        `told`: of what one wants to hear, as REST knows it: `notify=["failed"]`, `notify_by=["mail"]`, …
        """
        return cast(
            "SubmitResult", self._describe("jobs", spec, tenant=tenant, key=key or uuid4().hex, **notifications)
        )

    def check(self, spec: JobSource, *, tenant: str | None = None, **notifications: Json) -> DryRunResult:
        """The job as it would be taken in; nothing is."""
        return cast("DryRunResult", self._describe("jobs", spec, tenant=tenant, dry_run="1", **notifications))

    def what_if(self, spec: JobSource, *, tenant: str | None = None) -> dict[str, Any]:
        """Whether a job would start now; else for what it would wait, until when, and what would help."""
        return cast("dict[str, Any]", self._describe("what-if", spec, tenant=tenant))

    def jobs(self, **filters: Json) -> Iterator[JobDocument]:
        """The jobs that one may see, newest first; narrowed by what REST knows: `phase="running"`, `mine=True`, …"""
        return self.each("jobs", **filters)

    def job(self, job: JobRef) -> JobDetail:
        """One job as it is now."""
        return cast("JobDetail", self.get(self._path(job)))

    def wait(self, job: JobRef, *, until: Collection[str] = FINAL_PHASES, timeout: float | None = None) -> JobDetail:
        """The job once it is in one of these phases, or over. Raises WaitTimeoutError after so many seconds."""
        path, began = self._path(job), time.monotonic()
        for pause in chain(_PAUSES, repeat(_LONGEST_PAUSE_SECONDS)):
            found = cast("JobDetail", self.get(path))
            if found["phase"] in until or found["phase"] in FINAL_PHASES:
                return found
            left = pause if timeout is None else began + timeout - time.monotonic()
            if left <= 0:
                raise WaitTimeoutError(f"{found['name']} is {found['phase']} after {timeout:g} seconds.")
            time.sleep(min(pause, left))
        raise AssertionError  # the pauses do not end

    def start(self, job: JobRef) -> dict[str, Any]:
        """When a job that waits will start, its place in line, and how well such times held."""
        return cast("dict[str, Any]", self.get(f"{self._path(job)}/start"))

    def waits(self, job: JobRef) -> dict[str, Any]:
        """Why it waited, stretch by stretch."""
        return cast("dict[str, Any]", self.get(f"{self._path(job)}/waits"))

    def abort(self, job: JobRef) -> JobDetail:
        """Stop it; it can be resumed."""
        return self._act(job, "AbortJob")

    def resume(self, job: JobRef) -> JobDetail:
        """Let a job that was aborted go on."""
        return self._act(job, "ResumeJob")

    def restart(self, job: JobRef, task: str | None = None, index: int | None = None) -> JobDetail:
        """Start it again from the beginning; or the pods of one task, or one replica of it, while the rest goes on."""
        if task is None:
            return self._act(job, "RestartJob")
        if index is None:
            return self._act(job, "RestartTask", task=task)
        return self._act(job, "RestartPod", task=task, index=index)

    def forget(self, job: JobRef) -> None:
        """Delete a job that is over, with its files; its logs and its history are kept for a time."""
        self.delete(self._path(job))

    def scale(
        self,
        job: JobRef,
        replicas: Mapping[str, int] | None = None,
        *,
        least: Mapping[str, int] | None = None,
        least_of_all: int | None = None,
        revision: int | None = None,
    ) -> SubmitResult:
        """Give tasks other numbers of pods; `least`: how few of a task will do, `least_of_all`: of all together.

        With a revision it is refused where the job changed since then. The warnings: what pods that run do not learn.
        """
        tasks: dict[str, dict[str, int]] = {task: {"replicas": number} for task, number in (replicas or {}).items()}
        for task, number in (least or {}).items():
            tasks.setdefault(task, {})["min_available"] = number
        size: dict[str, Any] = {"tasks": tasks} | ({} if least_of_all is None else {"min_available": least_of_all})
        return cast("SubmitResult", self.patch(f"{self._path(job)}/scale", size, revision=revision))

    def set_priority(self, job: JobRef, priority: int) -> JobDetail:
        """The higher one goes first in its queue."""
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
        """The lines that a pod wrote; with `follow` those to come too, until it ends.

        Which pod need not be said where there is only one. Raises LookupError where it is not clear.
        """
        found = self.wait(job, until={"running"}) if follow else self.job(job)
        pod = _the_pod(found, task, index)
        chosen = pod["attempt"] if attempt is None else attempt
        return logs.lines(self.log_pieces(found, pod, attempt=chosen, follow=follow))

    def log_pieces(self, job: JobRef, pod: PodDocument, *, attempt: int, follow: bool = False) -> Iterator[str]:
        """The same as it comes, in pieces that end anywhere."""
        return logs.pieces(self, f"{self._path(job)}/pods/{pod['task']}/{pod['index']}/log", attempt, follow=follow)

    def queues(self) -> list[dict[str, Any]]:
        """The queues that one may see."""
        return cast("list[dict[str, Any]]", self.get("queues"))

    def quotas(self, tenant: str) -> list[dict[str, Any]]:
        """What a tenant and its members may have, and have."""
        return cast("list[dict[str, Any]]", self.get(f"tenants/{tenant}/quotas"))

    def spans(self) -> list[dict[str, Any]]:
        """The names for queues of several clusters that one may submit to."""
        return cast("list[dict[str, Any]]", self.get("spans"))

    def clusters(self) -> list[dict[str, Any]]:
        """The places where pods run, and how they are."""
        return cast("list[dict[str, Any]]", self.get("clusters"))

    def nodes(self) -> list[dict[str, Any]]:
        """The machines, and what of them is in use."""
        return cast("list[dict[str, Any]]", self.get("nodes"))

    def uid(self, job: JobRef) -> str:
        """The uid of a job. Raises NotFound where there is none of that name."""
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
